"""The program that counts pods where Kueue does not."""

from __future__ import annotations

from trainyard.catalog import versions
from trainyard.catalog.job_kinds import JOB_KINDS
from trainyard.objects.programs.gangs import APP, GangsPlan
from trainyard.parts.part import Around, Part
from trainyard.parts.programs import program_files, program_pod
from trainyard.plans.identity import Identity
from trainyard.plans.system_nodes import SystemPod
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.queues import QueuesConfig


class Gangs(Part[QueuesConfig, GangsPlan]):
    """`environment.queues`: half gangs give their nodes back, where queues start jobs whose pods Kueue
    does not count."""

    name = "gangs"
    section = "queues"
    namespace = APP

    def plan(self, me: Identity, settings: QueuesConfig, around: Around) -> GangsPlan | None:
        queues = around.queues
        if queues is None or all(JOB_KINDS[each].ready_as_a_whole for each in queues.job_kinds):
            return None
        return GangsPlan(
            image=versions.PYTHON_IMAGE,
            files=program_files("gangs"),
            # No runtime, so no model that one fetches. Most gangs that it counts have lost a pod.
            ready_minutes=queues.recovery_minutes - queues.fetch_minutes,
            longest_backoff_seconds=queues.longest_backoff_seconds,
        )

    def system_pods(
        self, settings: QueuesConfig, wanted: EnvironmentConfig
    ) -> tuple[SystemPod, ...]:
        # Of kinds of jobs, only those of the training-operator are not ready as a whole.
        return (program_pod(APP),) if wanted.training_operator else ()
