"""Stack files for tests: small edits of the two in the checkout, read and planned as `make check` does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stacks.config import Reading, read
from stacks.plan import EnvironmentPlan, Planned, TeamPlan, plan_stack
from tests.recording import CHECKOUT, stack_values

ENVIRONMENT, TEAM = "trainyard:environment", "trainyard:team"
Edit = Callable[[dict[str, Any]], object]


def at(path: str, value: Any) -> Edit:
    """An edit that sets one value: at("pools.g6e.max_nodes", 9)."""

    def edit(settings: dict[str, Any]) -> None:
        *way, last = path.split(".")
        for step in way:
            settings = settings.setdefault(step, {})
        settings[last] = value

    return edit


def without(path: str) -> Edit:
    """An edit that takes one value away."""

    def edit(settings: dict[str, Any]) -> None:
        *way, last = path.split(".")
        for step in way:
            settings = settings[step]
        del settings[last]

    return edit


def values(*edits: Edit, stack: str = "dev") -> dict[str, Any]:
    """A stack file's configuration, with its environment or team edited."""
    found = stack_values(stack)
    for edit in edits:
        edit(found[ENVIRONMENT if ENVIRONMENT in found else TEAM])
    return found


def reading(*edits: Edit, stack: str = "dev") -> Reading:
    return read(values(*edits, stack=stack), stack=stack, project="trainyard")


def planned(*edits: Edit, stack: str = "dev") -> Planned:
    return plan_stack(reading(*edits, stack=stack), CHECKOUT)


def faults(*edits: Edit, stack: str = "dev") -> list[str]:
    return [str(fault) for fault in planned(*edits, stack=stack).faults]


def environment_plan(*edits: Edit) -> EnvironmentPlan:
    plan = planned(*edits).accepted()
    assert isinstance(plan, EnvironmentPlan)
    return plan


def team_plan(*edits: Edit) -> TeamPlan:
    plan = planned(*edits, stack="team-vision").accepted()
    assert isinstance(plan, TeamPlan)
    return plan
