"""What follows from `environment.logs`: Fluent Bit, and the log group that it writes to."""

from __future__ import annotations

from trainyard.catalog import versions
from trainyard.objects.programs.pod_logs import PodLogsPlan, group_name
from trainyard.plans.parts import Identity
from trainyard.settings.environment import EnvironmentConfig


def pod_logs_plan(me: Identity, wanted: EnvironmentConfig) -> PodLogsPlan | None:
    """None where the logs of pods go with their pods."""
    if wanted.logs is None:
        return None
    return PodLogsPlan(
        image=versions.FLUENT_BIT_IMAGE,
        role_name=me.name("pod-logs"),
        group_name=group_name(me),
        region=me.region,
        days=wanted.logs.days,
    )
