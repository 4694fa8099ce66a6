"""What follows from `environment.history`: the program that records runs."""

from __future__ import annotations

from catalog import versions
from plans.history import HistoryPlan
from stacks.derive.programs import program_files
from stacks.settings.environment import EnvironmentConfig


def history_plan(wanted: EnvironmentConfig) -> HistoryPlan | None:
    """None where the stack file wants no history."""
    if wanted.history is None:
        return None
    return HistoryPlan(
        image=versions.PYTHON_IMAGE,
        files=program_files("history"),
        days=wanted.history.days,
    )
