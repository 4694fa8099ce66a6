"""The plan of an update beside what is deployed: what `pulumi preview` and `pulumi up` refuse, warn of and start."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from trainyard.plan import EnvironmentPlan, Planned, TeamPlan
from trainyard.problems import InputWarning
from trainyard.replacing import (
    control_plane,
    ending,
    entries,
    immutable,
    kept_data,
    leaving,
    moving,
    new_runs,
    replacing,
    stores,
    upgrading,
)
from trainyard.replacing.deployed import Ask, Deployed, Show
from trainyard.replacing.jobs import (
    admission,
    controllers,
    mount_targets,
    mounted,
    namespaces,
    pinned,
    queues,
    runtimes,
)
from trainyard.settings.reading.yaml_file import Lines

_RULES = (
    admission,
    controllers,
    entries,
    immutable,
    kept_data,
    leaving,
    mount_targets,
    mounted,
    moving,
    namespaces,
    pinned,
    queues,
    replacing,
    runtimes,
    stores,
    upgrading,
)
_TYPES = frozenset().union(*(rules.TYPES for rules in _RULES))
"""Types of resources that rules about environments look at."""
_OF_A_TEAM = immutable.OF_A_TEAM | namespaces.TYPES
"""Types of resources that rules about the stack of a team look at."""
_ERRORS = (
    controllers.operator_errors,
    mount_targets.target_errors,
    mounted.mount_errors,
    pinned.pin_errors,
    queues.queue_errors,
    runtimes.runtime_errors,
)
_WARNINGS = (
    admission.admission_warnings,
    pinned.fewer_warnings,
    pinned.over_warnings,
    queues.queue_warnings,
    runtimes.runtime_warnings,
    upgrading.held_warnings,
)
"""Rules about what is in a cluster: jobs that have not ended, and budgets."""


def compared(planned: Planned, lines: Lines, ask: Ask, show: Show, *, asks: bool = True) -> Planned:
    """The plan, refused where it would replace something by accident, with the runs that it starts. `lines`: of
    the stack file. `ask`: tells what is deployed. `show`: what is in the cluster. `asks`: False where this machine
    cannot ask a cluster."""
    plan = planned.plan
    if plan is None:
        return planned.located(lines)
    more = _TYPES if isinstance(plan, EnvironmentPlan) else _OF_A_TEAM
    deployed = ask(more | new_runs.TYPES, None)
    ended = new_runs.ended_runs(plan, deployed, show)
    going = ending.ending_jobs(plan, deployed, show)
    errors = [
        *planned.errors,
        *new_runs.run_errors(plan, deployed, ended),
        *ending.ending_errors(plan, deployed, going),
        *namespaces.namespace_errors(plan, deployed, show),
        *ending.waiting_errors(plan, deployed, going, show),
    ]
    warnings = [
        *planned.warnings,
        *new_runs.run_warnings(plan, deployed, ended),
        *ending.ending_warnings(plan, deployed, going),
        *namespaces.namespace_warnings(plan, deployed),
        *(() if asks else _unasked(plan, deployed)),
    ]
    if isinstance(plan, TeamPlan):
        errors += immutable.own_runtime_errors(plan, deployed)
    else:
        errors += [
            *replacing.replacing_errors(plan, deployed),
            *stores.store_errors(plan, deployed),
            *mount_targets.name_errors(plan, deployed),
            *immutable.immutable_errors(plan, deployed),
            *entries.entry_errors(plan, deployed),
            *kept_data.kept_errors(plan, deployed),
            *upgrading.version_errors(plan, deployed),
            *leaving.team_errors(plan, deployed, ask=ask, show=show),
            *moving.moving_errors(plan, deployed, show),
            *(each for errors_of in _ERRORS for each in errors_of(plan, deployed, show)),
        ]
        warnings += [
            *replacing.replacing_warnings(plan, deployed),
            *replacing.growing_warnings(plan, deployed),
            *stores.store_warnings(plan, deployed),
            *upgrading.upgrade_warnings(plan, deployed),
            *upgrading.stalling_warnings(plan, deployed),
            *upgrading.node_warnings(plan, deployed),
            *control_plane.tier_warnings(plan, deployed),
            *moving.moving_warnings(plan, deployed),
            *(each for warnings_of in _WARNINGS for each in warnings_of(plan, deployed, show)),
            *leaving.leaving_warnings(plan, deployed),
            *leaving.team_warnings(plan, deployed),
        ]
    starts = new_runs.starting(plan, deployed)
    compared_with = replace(planned, errors=(*errors,), warnings=(*warnings,), starts=starts)
    return compared_with.located(lines)


def _unasked(plan: EnvironmentPlan | TeamPlan, deployed: Deployed) -> Iterator[InputWarning]:
    """A cluster that exists, on a machine that cannot ask it: every rule about jobs that go on then finds none, and
    no run waits for the end of the one before it (components/jobs/run_before.py)."""
    if deployed.kubeconfig is not None:
        yield InputWarning(
            path=new_runs.jobs_path(plan),
            text=(
                "what runs in the cluster was not asked, because this machine has no kubectl: nothing refuses an update"
                " that takes from jobs what they run on, or tells of those that it ends, and a new run does not wait"
                " for the pods of the run before it. Install kubectl"
            ),
        )
