"""What follows from `environment.history`: the program that records runs, and what jobs tell it."""

from __future__ import annotations

from trainyard.catalog import versions
from trainyard.derive.programs import program_files
from trainyard.derive.stores import job_verdict
from trainyard.objects.programs.history import HistoryPlan
from trainyard.plans.parts import GOODPUT, INTERVAL
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.job import JobConfig


def history_plan(wanted: EnvironmentConfig) -> HistoryPlan | None:
    """None where the stack file wants no history."""
    if wanted.history is None:
        return None
    return HistoryPlan(
        image=versions.PYTHON_IMAGE,
        files=program_files("history"),
        days=wanted.history.days,
        progress=wanted.history.progress,
    )


def progress_notes(job: JobConfig, wanted: EnvironmentConfig, region: str) -> dict[str, str]:
    """Annotations of a job with what is planned of it, where the history measures it."""
    if not (wanted.history and wanted.history.progress and job.checkpoints):
        return {}
    planned, minutes = job_verdict(job, wanted, region), job.checkpoints.interval_minutes
    seconds = minutes * 60 if minutes else planned and planned.interval_seconds
    return {
        **({INTERVAL: f"{seconds:.0f}"} if seconds else {}),
        **({GOODPUT: f"{planned.goodput:.3f}"} if planned else {}),
    }
