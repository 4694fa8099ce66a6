"""The program that records runs, and what jobs tell it."""

from __future__ import annotations

from trainyard.catalog import versions
from trainyard.objects.metrics.metrics import Target
from trainyard.objects.programs.history import APP, HistoryPlan
from trainyard.parts.part import Around, Part
from trainyard.parts.programs import more_kinds, program_files, program_pod, program_target
from trainyard.plans.identity import Identity
from trainyard.plans.jobs import GOODPUT, INTERVAL
from trainyard.plans.system_nodes import SystemPod
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.history import HistoryConfig
from trainyard.settings.job import JobConfig
from trainyard.stores.goodput import Verdict


class History(Part[HistoryConfig, HistoryPlan]):
    """`environment.history`: runs are known after their job is deleted."""

    name = section = "history"
    namespace = APP

    def plan(self, me: Identity, settings: HistoryConfig, around: Around) -> HistoryPlan:
        return HistoryPlan(
            image=versions.PYTHON_IMAGE,
            files=program_files("history"),
            days=settings.days,
            progress=settings.progress,
            more_kinds=more_kinds(around.wanted),
        )

    def system_pods(
        self, settings: HistoryConfig, wanted: EnvironmentConfig
    ) -> tuple[SystemPod, ...]:
        return (program_pod(APP),)

    def targets(self, settings: HistoryConfig) -> tuple[Target, ...]:
        return (program_target(APP),) if settings.progress else ()

    def for_teams(self, settings: HistoryConfig) -> HistoryConfig | None:
        return HistoryConfig(progress=True) if settings.progress else None

    def job_notes(
        self, settings: HistoryConfig, job: JobConfig, verdict: Verdict | None
    ) -> dict[str, str]:
        """Planned figures of the job, which the history compares with what it measures."""
        if not (settings.progress and job.checkpoints):
            return {}
        minutes = job.checkpoints.interval_minutes
        seconds = minutes * 60 if minutes else verdict and verdict.interval_seconds
        return {
            **({INTERVAL: f"{seconds:.0f}"} if seconds else {}),
            **({GOODPUT: f"{verdict.goodput:.3f}"} if verdict else {}),
        }
