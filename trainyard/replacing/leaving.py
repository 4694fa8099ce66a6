"""Deletions by an update that must be known before: teams, the right of teams to have schedules, and placement
groups of pools.

The namespace of a team goes with every job in it, so the team's own stack must go first: afterwards its
role does not reach the cluster any more.

`pulumi preview` and `pulumi up` ask these rules, and `trainyard check` does not: what is deployed, the
engine knows.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from trainyard.catalog.job_kinds import ENGINE_TYPES
from trainyard.objects.teams.teams import CRON_JOBS
from trainyard.plan import EnvironmentPlan
from trainyard.problems import At, InputError, InputWarning, few
from trainyard.replacing.deployed import (
    SHOWN,
    Ask,
    Deployed,
    Show,
    UnknownStackError,
    ends_one,
    going,
)
from trainyard.settings.reading.reader import read_file, stack_files

TEAM, PREFIX = "trainyard:teams:Team", "team-"
"""Type and beginning of the name of a team among the resources of its environment."""
JOBS = frozenset(ENGINE_TYPES.values())
TEAMS = "environment.teams"
GROUP = "aws:ec2/placementGroup:PlacementGroup"
NAMESPACE = "kubernetes:core/v1:Namespace"
SERVICE_ACCOUNT = "kubernetes:core/v1:ServiceAccount"
"""Type of the service account of a team's schedules."""
TYPES = frozenset({TEAM, GROUP, NAMESPACE, SERVICE_ACCOUNT})
"""Types of resources that the rules look at."""


def team_errors(
    plan: EnvironmentPlan,
    deployed: Deployed,
    *,
    ask: Ask,
    show: Show,
    folder: Path = Path(),
) -> Iterator[InputError]:
    """Teams that leave while the stack of a stack file in this checkout has jobs of theirs, or while jobs that
    somebody else has sent go on in their namespace; and teams that lose what their schedules need. `ask`: tells
    which jobs a stack has. `show`: what is in the cluster."""
    for team in leaving(plan, deployed):
        yield from _of_stacks(plan, team, ask, folder) or _going(team, deployed, show)
    yield from _schedules(plan, deployed, show)


def _schedules(plan: EnvironmentPlan, deployed: Deployed, show: Show) -> Iterator[InputError]:
    """Teams that stay and lose `schedules: true` while they have schedules: at each of their times a pod would
    ask for a service account that is gone."""
    kubeconfig = deployed.kubeconfig
    for team, entry in plan.teams.items():
        space = deployed.output(SERVICE_ACCOUNT, f"{PREFIX}{team}-schedules", "metadata.namespace")
        if entry.schedules or kubeconfig is None or space is None:
            continue
        if there := [each["metadata"]["name"] for each in show(kubeconfig, CRON_JOBS, space)]:
            yield At(f"{TEAMS}.{team}.schedules").must(
                "stay true while the team has schedules",
                got=f"false, and in {space} {few(sorted(there), SHOWN)}",
                fix="write schedules: true. First delete each `schedule` in the team's stack file and run `pulumi"
                f" up` there, or `kubectl --namespace {space} delete cronjob <name>`",
            )


def _of_stacks(plan: EnvironmentPlan, team: str, ask: Ask, folder: Path) -> list[InputError]:
    """Jobs of the team's own stack."""
    found = list[InputError]()
    for stack in _stacks(plan.identity.stack, team, folder):
        if jobs := _jobs_of(stack, ask):
            found += [
                InputError(
                    path=f"{TEAMS}.{team}",
                    must=f"stay while stack {stack} has jobs of the team",
                    got=f"no entry, and there {', '.join(sorted(jobs))}",
                    fix=(
                        f"write the entry again, run `pulumi destroy --stack {stack}`, and delete the"
                        " entry then. Where nobody can destroy that stack, `pulumi stack rm --force"
                        f" --preserve-config --stack {stack}` forgets it; jobs that go on must then be"
                        " deleted with kubectl"
                    ),
                )
            ]
    return found


def _going(team: str, deployed: Deployed, show: Show) -> list[InputError]:
    """Jobs in the namespace of a team that have not ended, whoever sent them."""
    kubeconfig = deployed.kubeconfig
    space = deployed.output(NAMESPACE, f"{PREFIX}{team}", "metadata.name")
    if kubeconfig is None or space is None:
        return []
    named = [f"{kind} {job['metadata']['name']}" for kind, job in going(show, kubeconfig, space)]
    error = At(f"{TEAMS}.{team}").must(
        "stay while jobs go on in its namespace, whoever sent them",
        got=f"no entry, and in {space} {few(named, SHOWN)}",
        fix=f"write the entry again, and delete it when they have ended; {ends_one(space)}",
    )
    return [error] if named else []


def team_warnings(plan: EnvironmentPlan, deployed: Deployed) -> Iterator[InputWarning]:
    """Warnings about what leaves with each team."""
    for team in leaving(plan, deployed):
        yield InputWarning(
            path=TEAMS,
            text=(
                f"this update deletes team {team}: its namespace, and every job in it, whoever sent"
                " it. Files on stores stay. Destroy the team's own stack before: afterwards its role"
                " does not reach the cluster any more"
            ),
        )


def leaving_warnings(plan: EnvironmentPlan, deployed: Deployed) -> Iterator[InputWarning]:
    """Placement groups that the update deletes while their pools stay. EC2 refuses that as long as an
    instance runs in one (InvalidPlacementGroup.InUse), the provider does not wait
    (terraform-provider-aws, ec2_placement_group.go), and Karpenter leaves running nodes where they
    are."""
    for name, pool in plan.pools.items():
        was = deployed.output(GROUP, f"{name}-nodes", "name")
        own = pool.placement_group if pool.own_placement_group else None
        if was not in (None, own):
            yield InputWarning(
                path="environment.zone" if own else f"environment.pools.{name}.placement",
                text=(
                    f"this update deletes the placement group {was}, which EC2 refuses while a node"
                    " runs in it. The update then fails: run `pulumi up` again when the nodes that"
                    f" pool {name} has now are gone"
                ),
            )


def leaving(plan: EnvironmentPlan, deployed: Deployed) -> list[str]:
    """Teams that are deployed and that the stack file does not list."""
    there = {name.removeprefix(PREFIX) for name in deployed.names(TEAM)}
    return sorted(there - plan.teams.keys())


def _stacks(environment: str, team: str, folder: Path) -> list[str]:
    """Stacks of the team whose stack files are in the folder."""
    configs = {stack: read_file(stack, folder).config for stack in stack_files(folder)}
    return [
        stack
        for stack, config in configs.items()
        if config
        and config.team
        and (config.team.environment, config.team.name) == (environment, team)
    ]


def _jobs_of(stack: str, ask: Ask) -> set[str]:
    """Jobs that the stack holds; none where there is no such stack, or its state is elsewhere. An engine
    that cannot read the state ends the update: the jobs would end with the team's namespace."""
    try:
        return ask(JOBS, stack).names(*JOBS)
    except UnknownStackError:
        return set()
