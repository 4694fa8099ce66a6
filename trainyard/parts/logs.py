"""Fluent Bit, and the log group that it writes to."""

from __future__ import annotations

from collections.abc import Mapping

from trainyard.catalog import versions
from trainyard.catalog.aws.endpoints import LOGS
from trainyard.objects.programs.pod_logs import PodLogsPlan, group_name
from trainyard.parts.part import Around, Part
from trainyard.plans.identity import Identity
from trainyard.settings.logs import LogsConfig
from trainyard.stores.figures import UsageCost


class Logs(Part[LogsConfig, PodLogsPlan]):
    """`environment.logs`: the logs of pods stay after their pods."""

    name = section = "logs"

    def plan(self, me: Identity, settings: LogsConfig, around: Around) -> PodLogsPlan:
        return PodLogsPlan(
            image=versions.FLUENT_BIT_IMAGE,
            role_name=me.name("pod-logs"),
            group_name=group_name(me),
            region=me.region,
            days=settings.days,
        )

    def log_days(self, settings: LogsConfig) -> Mapping[str, int]:
        return {"logs.days": settings.days}

    def node_images(self, settings: LogsConfig, *, efa: bool) -> tuple[str, ...]:
        return (versions.FLUENT_BIT_IMAGE,)

    def for_teams(self, settings: LogsConfig) -> LogsConfig | None:
        return LogsConfig()

    def apis(self, settings: LogsConfig) -> tuple[str, ...]:
        return (LOGS,)

    def resource_types(self, plan: PodLogsPlan) -> tuple[str, ...]:
        return ("aws:cloudwatch/logGroup:LogGroup",)

    def usage_costs(self, plan: PodLogsPlan) -> tuple[UsageCost, ...]:
        return (UsageCost(what="logs of pods", service="logs", sku="ingested"),)
