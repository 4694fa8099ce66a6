"""A team that the environment lists: its namespace with everything in it that the team cannot
change, who enters, and the contract that its stack reads.

Which teams there are: `teams` in the stack file. What a role may do: trainyard/objects/teams/team_access.py.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pulumi
import pulumi_aws as aws
import pulumi_kubernetes as k8s

from components.base.rbac import RBAC, group_subject
from components.cluster.cluster_access import ClusterAccess
from components.jobs.namespace import JobNamespace
from components.stores.store import Roots, Store
from components.teams.team_identity import TeamIdentity
from components.teams.team_queue import TeamQueue
from trainyard.objects.teams import team_limits
from trainyard.objects.teams.team_access import ROLES, STARTS, group_name, role_name
from trainyard.objects.teams.team_network import Ranges, policy_spec
from trainyard.objects.teams.teams import STARTER, TeamEntryPlan


class Team(pulumi.ComponentResource):
    """Namespace, limits, roles, access entries and contract of one team."""

    ready: pulumi.Resource
    """The deployer's way in, before which everything else stands."""

    def __init__(
        self,
        name: str,
        plan: TeamEntryPlan,
        *,
        cluster: ClusterAccess,
        reached: pulumi.Output[dict[str, Any]],
        stores: Mapping[str, Store],
        roots: Roots,
        drivers: Mapping[str, pulumi.Resource],
        isolation: Sequence[pulumi.Resource],
        controllers: Sequence[pulumi.Resource],
        queues: Sequence[pulumi.Resource],
        ranges: Ranges,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """`reached`: how the cluster is reached, as the contract says it. `roots`: creates the
        directories of the team. `isolation`: admission policies and the network policy engine, which
        must exist before anybody of the team enters. `controllers`: controllers of jobs. `queues`:
        resources that a queue needs. `ranges`: address ranges of the network."""
        super().__init__("trainyard:teams:Team", name, None, opts)
        self._controllers = controllers
        own = pulumi.ResourceOptions(parent=self)
        directories = {
            key: stores[key].directory(each, roots, own) for key, each in plan.directories.items()
        }
        volumes = {key: store.volume for key, store in stores.items()} | directories
        space = JobNamespace(
            name, plan.workspace, volumes=volumes, drivers=drivers, at_once=True, opts=own
        )
        inside = [
            self._count(name, plan, space),
            self._requests(name, space),
            *self._bindings(name, plan, space),
            self._network(name, plan, ranges, space),
        ]
        if plan.schedules:
            inside.append(self._starter(name, space))
        if plan.queue:
            queue = TeamQueue(name, plan.queue, space=space, needs=queues, opts=own)
            inside.append(queue.ready)
        if plan.pods:
            pods = TeamIdentity(
                name,
                plan.pods,
                # What the team has in AWS carries its name.
                cluster=replace(cluster, identity=plan.identity),
                mounts=[each.statements for each in directories.values() if each.statements],
                opts=own,
            )
            inside.append(pods.ready)
        entries = self._entries(name, plan, cluster.name, [*isolation, *inside, space])
        self.ready = entries["deployer"]
        self._publish(name, plan, reached)
        self.register_outputs({})

    def _publish(
        self, name: str, plan: TeamEntryPlan, reached: pulumi.Output[dict[str, Any]]
    ) -> None:
        aws.ssm.Parameter(
            name,
            name=plan.parameter,
            type="String",
            tier=plan.tier,
            # Nothing in it is secret, and a preview shows what changes.
            insecure_value=reached.apply(
                lambda cluster: json.dumps({**plan.contract, "cluster": cluster})
            ),
            tags=plan.identity.tags(name),
            opts=pulumi.ResourceOptions(parent=self),
        )

    def _entries(
        self,
        name: str,
        plan: TeamEntryPlan,
        cluster_name: pulumi.Input[str],
        isolation: Sequence[pulumi.Resource],
    ) -> dict[str, pulumi.Resource]:
        return {
            entrant: aws.eks.AccessEntry(
                f"{name}-{entrant}",
                cluster_name=cluster_name,
                principal_arn=wanted.role_arn,
                kubernetes_groups=[*wanted.groups],
                type="STANDARD",
                tags=plan.identity.tags(f"{name}-{entrant}"),
                # Nobody enters before the limits stand, and everybody is out before they go: EKS
                # knows nothing of objects in the cluster.
                opts=pulumi.ResourceOptions(parent=self, depends_on=[*isolation]),
            )
            for entrant, wanted in plan.entrants.items()
        }

    def _count(self, name: str, plan: TeamEntryPlan, space: JobNamespace) -> pulumi.Resource:
        return k8s.core.v1.ResourceQuota(
            f"{name}-objects",
            metadata={"name": "objects", "namespace": space.namespace},
            spec=team_limits.counts(plan),
            # Kubernetes looks for new kinds every 30 s, and at a quota that is older than a kind in
            # it only every 5 min: until then it refuses all jobs of that kind.
            opts=pulumi.ResourceOptions(
                parent=self, depends_on=[*self._controllers], deleted_with=space.goes_with
            ),
        )

    def _requests(self, name: str, space: JobNamespace) -> pulumi.Resource:
        return k8s.core.v1.LimitRange(
            f"{name}-requests",
            metadata={"name": "requests", "namespace": space.namespace},
            spec=team_limits.requests(),
            opts=pulumi.ResourceOptions(parent=self, deleted_with=space.goes_with),
        )

    def _network(
        self, name: str, plan: TeamEntryPlan, ranges: Ranges, space: JobNamespace
    ) -> pulumi.Resource:
        return k8s.networking.v1.NetworkPolicy(
            f"{name}-network",
            metadata={"name": "network", "namespace": space.namespace},
            spec=policy_spec(ranges, pod_identity=plan.pods is not None, pushes=plan.pushes),
            opts=pulumi.ResourceOptions(parent=self, deleted_with=space.goes_with),
        )

    def _starter(self, name: str, space: JobNamespace) -> pulumi.Resource:
        """The service account of schedules, and the binding of its rights."""
        gone = pulumi.ResourceOptions(parent=self, deleted_with=space.goes_with)
        account = k8s.core.v1.ServiceAccount(
            f"{name}-schedules",
            metadata={"name": STARTER, "namespace": space.namespace},
            opts=gone,
        )
        return k8s.rbac.v1.RoleBinding(
            f"{name}-schedules",
            metadata={"name": STARTER, "namespace": space.namespace},
            role_ref={"api_group": RBAC, "kind": "ClusterRole", "name": role_name(STARTS)},
            subjects=[
                {
                    "kind": "ServiceAccount",
                    "name": account.metadata.name,
                    "namespace": space.namespace,
                }
            ],
            opts=gone,
        )

    def _bindings(
        self, name: str, plan: TeamEntryPlan, space: JobNamespace
    ) -> list[pulumi.Resource]:
        """A RoleBinding of each role that somebody has, to its group."""
        taken = {entrant.role for entrant in plan.entrants.values()}
        return [
            k8s.rbac.v1.RoleBinding(
                f"{name}-{role}s",
                metadata={"name": role_name(role), "namespace": space.namespace},
                role_ref={
                    "api_group": RBAC,
                    "kind": "ClusterRole",
                    "name": role_name(role),
                },
                subjects=[group_subject(group_name(plan.workspace.namespace, role))],
                opts=pulumi.ResourceOptions(parent=self, deleted_with=space.goes_with),
            )
            for role in ROLES
            if role in taken
        ]
