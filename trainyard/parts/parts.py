"""The table of parts, and what the rest of the program asks about all of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from trainyard.objects.queues.queues import QueuesPlan
from trainyard.parts.budget import Budget
from trainyard.parts.dispatch import Dispatch
from trainyard.parts.gangs import Gangs
from trainyard.parts.history import History
from trainyard.parts.logs import Logs
from trainyard.parts.metrics import Metrics
from trainyard.parts.part import Around, HasParts, Part
from trainyard.parts.repair import Repair
from trainyard.parts.told import Told
from trainyard.plans.identity import Identity
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.job import JobConfig
from trainyard.stores.goodput import Verdict
from trainyard.stores.kinds import SERVICES as OF_STORES

AnyPart = Part[Any, Any]

BUDGET, DISPATCH, GANGS, HISTORY = Budget(), Dispatch(), Gangs(), History()
LOGS, METRICS, REPAIR, TOLD = Logs(), Metrics(), Repair(), Told()
PARTS: tuple[AnyPart, ...] = (LOGS, METRICS, REPAIR, HISTORY, GANGS, DISPATCH, BUDGET, TOLD)
"""Every part, in the order in which reports and rules name them."""
SERVICES = (*OF_STORES, *(service for part in PARTS for service in part.services))
"""Services of AWS that only some stores or parts use."""


def wanted_parts(wanted: EnvironmentConfig) -> Iterator[tuple[AnyPart, Any]]:
    """The parts that the stack file has sections for, each with its settings."""
    for part in PARTS:
        if (settings := part.settings(wanted)) is not None:
            yield part, settings


def part_plans(
    me: Identity,
    wanted: EnvironmentConfig,
    queues: QueuesPlan | None,
    efa_instance_types: tuple[str, ...],
) -> dict[str, Any]:
    """Name of each part → its plan; None where the environment does without it. `efa_instance_types`: of
    pools that have EFA devices."""
    found = [*wanted_parts(wanted)]
    around = Around(
        wanted=wanted,
        efa_instance_types=efa_instance_types,
        queues=queues,
        targets=tuple(each for part, settings in found for each in part.targets(settings)),
    )
    plans = dict[str, Any].fromkeys(part.name for part in PARTS)
    return plans | {part.name: part.plan(me, settings, around) for part, settings in found}


def planned_parts(environment: HasParts) -> Iterator[tuple[AnyPart, Any]]:
    """The parts of an environment, each with its plan."""
    for part in PARTS:
        if (plan := part.of(environment)) is not None:
            yield part, plan


def monthly_limit(environment: HasParts) -> Decimal | None:
    """USD that the environment is meant to cost in a calendar month, at most; None without a limit."""
    limits = [part.monthly_limit(its) for part, its in planned_parts(environment)]
    return min((usd for usd in limits if usd), default=None)


def cost_tags(environment: HasParts) -> dict[str, str]:
    """Key of each tag by which AWS must count costs for a part → the setting of the part."""
    found = {part.cost_tag(plan): part.section for part, plan in planned_parts(environment)}
    return {key: f"environment.{section}" for key, section in found.items() if key}


def part_types(environment: HasParts) -> set[str]:
    """The types of AWS resources that an environment has because of its parts."""
    return {kind for part, plan in planned_parts(environment) for kind in part.resource_types(plan)}


def job_notes(
    wanted: EnvironmentConfig, jobs: Mapping[str, JobConfig], verdicts: Mapping[str, Verdict]
) -> dict[str, dict[str, str]]:
    """Job → annotations that parts of its environment read. `verdicts`: what the checkpoints of jobs
    take."""
    found = [*wanted_parts(wanted)]
    return {
        name: {
            key: note
            for part, settings in found
            for key, note in part.job_notes(settings, job, verdicts.get(name)).items()
        }
        for name, job in jobs.items()
    }


def parts_for_teams(wanted: EnvironmentConfig) -> dict[str, Any]:
    """Section of each part that the plan of a team reads → its settings, without what the plan does not
    read."""
    found = {part.section: part.for_teams(its) for part, its in wanted_parts(wanted)}
    return {name: settings for name, settings in found.items() if settings is not None}


def job_variables(wanted: EnvironmentConfig) -> dict[str, str]:
    """Environment variables by which pods of jobs find parts of their environment."""
    return {
        name: value
        for part, settings in wanted_parts(wanted)
        for name, value in part.job_variables(settings).items()
    }
