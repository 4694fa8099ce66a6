"""The teams that an environment lists, and what keeps them apart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pulumi

from components.cluster.cluster import Cluster
from components.cluster.cluster_access import ClusterAccess
from components.jobs.namespace import Volume
from components.jobs.queue_manager import QueueManager
from components.network.network import Network
from components.stores.directory_roots import DirectoryRoots
from components.stores.store import Roots, Store
from components.teams.team import Team
from components.teams.team_rules import TeamRules
from stacks.pace import answered
from stacks.training import Training
from trainyard.objects.iam.secrets import ADD_ON
from trainyard.objects.teams.team_network import Ranges
from trainyard.plan import EnvironmentPlan


async def share(
    plan: EnvironmentPlan,
    access: ClusterAccess,
    training: Training,
    *,
    network: Network,
    cluster: Cluster,
    reached: pulumi.Output[dict[str, Any]],
    stores: Mapping[str, Store],
    volumes: Mapping[str, Volume],
    add_ons: Mapping[str, pulumi.Resource],
) -> list[pulumi.Resource]:
    """Make the teams that the stack file lists, each with what it may use of the environment; returns
    the way in of each.

    `reached`: how the cluster is reached, as the contract says it."""
    opts, queues, dispatch = access.opts, training.queues, training.dispatch
    manager = plan.queues.manager if plan.queues else None
    isolation = _isolation(plan, add_ons, managed=manager is not None, opts=opts)
    roots = _roots(plan, volumes, add_ons, cluster.security_group_id, opts)
    teams: dict[str, Team] = {}
    for key, team in plan.teams.items():
        teams[key] = Team(
            f"team-{key}",
            team,
            cluster=access,
            reached=reached,
            stores=stores,
            roots=roots,
            drivers=add_ons,
            isolation=isolation,
            controllers=training.controllers,
            queues=[*(queues.ready if queues else []), *(dispatch.ready if dispatch else [])],
            ranges=Ranges(vpc=network.cidrs, services=cluster.service_cidr),
            opts=opts,
        )
        await answered(teams[key].ready)
    if manager:
        QueueManager(
            "queue-manager",
            manager,
            cluster=access,
            teams={key: (plan.teams[key].workspace.namespace, made) for key, made in teams.items()},
            opts=opts,
        )
    return [each.ready for each in teams.values()]


def _isolation(
    plan: EnvironmentPlan,
    add_ons: Mapping[str, pulumi.Resource],
    *,
    managed: bool,
    opts: pulumi.ResourceOptions,
) -> list[pulumi.Resource]:
    """Admission policies of all teams, and the VPC CNI, which enforces their network policies."""
    if not plan.teams:
        return []
    rules = TeamRules(
        "teams",
        queues=plan.queues is not None,
        managed=managed,
        secrets=ADD_ON in add_ons,
        schedules=any(team.schedules for team in plan.teams.values()),
        opts=opts,
    )
    return [*rules.ready, add_ons["vpc-cni"]]


def _roots(
    plan: EnvironmentPlan,
    volumes: Mapping[str, Volume],
    add_ons: Mapping[str, pulumi.Resource],
    group_id: pulumi.Input[str],
    opts: pulumi.ResourceOptions,
) -> Roots:
    """From which directories of the teams are made."""
    if not plan.directory_roots:
        return Roots()
    return DirectoryRoots(
        "directories",
        plan.directory_roots,
        volumes=volumes,
        drivers=add_ons,
        group_id=group_id,
        opts=opts,
    ).roots
