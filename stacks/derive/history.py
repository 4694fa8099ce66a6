"""What follows from `environment.history`: the program that records runs."""

from __future__ import annotations

from pathlib import Path

from catalog import versions
from plans.history import HistoryPlan
from stacks.settings.environment import EnvironmentConfig

PROGRAM = Path(__file__).resolve().parents[2] / "workloads" / "history"


def history_plan(wanted: EnvironmentConfig) -> HistoryPlan | None:
    """None where the stack file wants no history."""
    if wanted.history is None:
        return None
    return HistoryPlan(
        image=versions.PYTHON_IMAGE,
        files={file.name: file.read_text() for file in sorted(PROGRAM.glob("*.py"))},
        days=wanted.history.days,
    )
