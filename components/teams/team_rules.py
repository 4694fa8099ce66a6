"""Rules that hold for all teams of a cluster, and exist once: roles, and policies that judge pods.

Roles: trainyard/objects/teams/team_access.py. Policies: trainyard/objects/teams/team_admission.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pulumi
import pulumi_kubernetes as k8s

from components.base.admission_policy import admission_policy
from components.base.rbac import RBAC, cluster_role, group_subject
from trainyard.objects.teams import queue_admission
from trainyard.objects.teams.team_access import (
    EVERYBODY,
    OF_STARTER,
    OF_THE_CLUSTER,
    ROLES,
    STARTS,
    grants,
    role_name,
)
from trainyard.objects.teams.team_admission import binding, policies


class TeamRules(pulumi.ComponentResource):
    """Cluster-wide objects; a cluster without teams has none of them."""

    ready: list[pulumi.Resource]
    """Objects that must exist before anybody of a team enters."""

    def __init__(
        self,
        name: str,
        *,
        queues: bool,
        managed: bool,
        secrets: bool,
        schedules: bool,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """`queues`: the environment has them. `managed`: another environment hands its jobs to
        this one. `secrets`: it mounts those of Secrets Manager. `schedules`: jobs of a team can have
        them."""
        super().__init__("trainyard:teams:Rules", name, None, opts)
        of_roles = {
            role: grants(role, queues=queues, secrets=secrets, schedules=schedules)
            for role in ROLES
        } | ({STARTS: OF_STARTER} if schedules else {})
        roles = [
            cluster_role(self, f"{name}-{role}", role_name(role), given)
            for role, given in of_roles.items()
        ]
        rules = policies(queues=queues, secrets=secrets, schedules=schedules) | (
            {
                queue_admission.POLICY: queue_admission.policy(
                    managed=managed, schedules=schedules
                ),
                queue_admission.RUNTIME_POLICY: queue_admission.runtime_policy(),
                queue_admission.DELETION_POLICY: queue_admission.deletion_policy(),
            }
            if queues
            else {}
        )
        self.ready = [*roles, self._everybody(name), *self._policies(name, rules)]
        self.register_outputs({})

    def _everybody(self, name: str) -> pulumi.Resource:
        """Objects outside of namespaces that all roles of all teams read. Their group is one, so
        that a new team changes nothing here."""
        called = role_name("everybody")
        role = cluster_role(self, f"{name}-everybody", called, OF_THE_CLUSTER)
        return k8s.rbac.v1.ClusterRoleBinding(
            f"{name}-everybody",
            metadata={"name": called},
            role_ref={"api_group": RBAC, "kind": "ClusterRole", "name": called},
            subjects=[group_subject(EVERYBODY)],
            # The name of the role stands in no output.
            opts=pulumi.ResourceOptions(parent=self, depends_on=[role]),
        )

    def _policies(self, name: str, rules: Mapping[str, Any]) -> list[pulumi.Resource]:
        """Make admission policies, each with its binding; returns the bindings. `rules`: name of a
        policy → its spec."""
        return [
            admission_policy(
                self,
                f"{name}-{policy.rpartition('-')[2]}",
                policy,
                spec=spec,
                binding=binding(policy),
            )
            for policy, spec in rules.items()
        ]
