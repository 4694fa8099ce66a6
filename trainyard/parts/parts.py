"""The table of parts, and what the rest of the program asks about all of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trainyard.parts.budget import Budget
from trainyard.parts.part import HasParts, Part
from trainyard.plans.parts import Identity
from trainyard.settings.environment import EnvironmentConfig

AnyPart = Part[Any, Any]

BUDGET = Budget()
PARTS: tuple[AnyPart, ...] = (BUDGET,)
"""Every part, in the order in which reports name them."""


def part_plans(me: Identity, wanted: EnvironmentConfig) -> dict[str, Any]:
    """Name of each part → its plan; None where the environment does without it."""
    plans = dict[str, Any].fromkeys(part.name for part in PARTS)
    return plans | {part.name: part.plan(me, settings) for part, settings in wanted_parts(wanted)}


def wanted_parts(wanted: EnvironmentConfig) -> Iterator[tuple[AnyPart, Any]]:
    """The parts that the stack file has sections for, each with its settings."""
    for part in PARTS:
        if (settings := part.settings(wanted)) is not None:
            yield part, settings


def planned_parts(environment: HasParts) -> Iterator[tuple[AnyPart, Any]]:
    """The parts of an environment, each with its plan."""
    for part in PARTS:
        if (plan := part.of(environment)) is not None:
            yield part, plan
