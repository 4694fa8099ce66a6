"""Queues whose jobs run in other environments, and the program that renews the passes to them."""

from __future__ import annotations

from trainyard.catalog import versions
from trainyard.objects.iam.policies import ROLE_NAME
from trainyard.objects.programs.dispatch import APP, DispatchPlan
from trainyard.parts.part import Around, Part
from trainyard.parts.programs import program_files, program_pod
from trainyard.plans.identity import Identity
from trainyard.plans.system_nodes import SystemPod
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.queues import QueuesConfig


class Dispatch(Part[QueuesConfig, DispatchPlan]):
    """`environment.queues.workers`: jobs of teams get to other environments."""

    name = "dispatch"
    section = "queues"
    setting = "workers"
    namespace = APP

    def plan(self, me: Identity, settings: QueuesConfig, around: Around) -> DispatchPlan | None:
        if not settings.workers:
            return None
        return DispatchPlan(
            workers=settings.workers,
            role_name=me.short_name("queues", ROLE_NAME),
            region=me.region,
            image=versions.PYTHON_IMAGE,
            files=program_files("passes"),
        )

    def system_pods(
        self, settings: QueuesConfig, wanted: EnvironmentConfig
    ) -> tuple[SystemPod, ...]:
        return (program_pod(APP),) if settings.workers else ()
