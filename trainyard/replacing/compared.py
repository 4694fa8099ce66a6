"""The plan of an update beside what is deployed: what `pulumi preview` and `pulumi up` refuse, warn of and start."""

from __future__ import annotations

from dataclasses import replace

from trainyard.plan import EnvironmentPlan, Planned, TeamPlan
from trainyard.replacing import (
    ending,
    entries,
    immutable,
    kept_data,
    leaving,
    moving,
    new_runs,
    pinned,
    replacing,
    runtimes,
    stores,
    upgrading,
)
from trainyard.replacing.deployed import Ask, Show
from trainyard.settings.reading.yaml_file import Lines

_RULES = (
    entries,
    immutable,
    kept_data,
    leaving,
    moving,
    pinned,
    replacing,
    runtimes,
    stores,
)
_TYPES = frozenset().union(*(rules.TYPES for rules in _RULES))
"""Types of resources that rules about environments look at."""


def compared(planned: Planned, lines: Lines, ask: Ask, show: Show) -> Planned:
    """The plan, refused where it would replace something by accident, with the runs that it starts. `lines`: of
    the stack file. `ask`: tells what is deployed. `show`: what is in the cluster."""
    plan = planned.plan
    if plan is None:
        return planned.located(lines)
    more = _TYPES if isinstance(plan, EnvironmentPlan) else immutable.OF_A_TEAM
    deployed = ask(more | new_runs.TYPES, None)
    ended = new_runs.ended_runs(plan, deployed, show)
    going = ending.ending_jobs(plan, deployed, show)
    errors = [
        *planned.errors,
        *new_runs.run_errors(plan, deployed, ended),
        *ending.ending_errors(plan, deployed, going),
    ]
    warnings = [
        *planned.warnings,
        *new_runs.run_warnings(plan, deployed, ended),
        *ending.ending_warnings(plan, deployed, going),
    ]
    if isinstance(plan, TeamPlan):
        errors += immutable.own_runtime_errors(plan, deployed)
    else:
        errors += [
            *replacing.replacing_errors(plan, deployed),
            *stores.store_errors(plan, deployed),
            *immutable.immutable_errors(plan, deployed),
            *entries.entry_errors(plan, deployed),
            *kept_data.kept_errors(plan, deployed),
            *leaving.team_errors(plan, deployed, ask=ask, show=show),
            *moving.moving_errors(plan, deployed, show),
            *pinned.pin_errors(plan, deployed, show),
            *runtimes.runtime_errors(plan, deployed, show),
        ]
        warnings += [
            *replacing.replacing_warnings(plan, deployed),
            *replacing.growing_warnings(plan, deployed),
            *stores.store_warnings(plan, deployed),
            *upgrading.upgrade_warnings(plan, deployed),
            *moving.moving_warnings(plan, deployed),
            *pinned.fewer_warnings(plan, deployed, show),
            *runtimes.runtime_warnings(plan, deployed, show),
            *leaving.leaving_warnings(plan, deployed),
            *leaving.team_warnings(plan, deployed),
        ]
    starts = new_runs.starting(plan, deployed)
    compared_with = replace(planned, errors=(*errors,), warnings=(*warnings,), starts=starts)
    return compared_with.located(lines)
