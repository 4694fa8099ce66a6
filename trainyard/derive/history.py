"""What follows from `environment.history`: the program that records runs, and what jobs tell it."""

from __future__ import annotations

from collections.abc import Mapping

from trainyard.catalog import versions
from trainyard.derive.programs import program_files
from trainyard.objects.programs.history import HistoryPlan
from trainyard.plans.parts import GOODPUT, INTERVAL
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.history import HistoryConfig
from trainyard.settings.job import JobConfig
from trainyard.stores.goodput import Verdict


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


def progress_notes(
    history: HistoryConfig | None, jobs: Mapping[str, JobConfig], verdicts: Mapping[str, Verdict]
) -> dict[str, dict[str, str]]:
    """Job → annotations with what is planned of it, where the history measures it. `verdicts`: what the
    checkpoints of jobs take."""
    if history is None or not history.progress:
        return {}
    return {name: _notes(job, verdicts.get(name)) for name, job in jobs.items()}


def _notes(job: JobConfig, planned: Verdict | None) -> dict[str, str]:
    if job.checkpoints is None:
        return {}
    minutes = job.checkpoints.interval_minutes
    seconds = minutes * 60 if minutes else planned and planned.interval_seconds
    return {
        **({INTERVAL: f"{seconds:.0f}"} if seconds else {}),
        **({GOODPUT: f"{planned.goodput:.3f}"} if planned else {}),
    }
