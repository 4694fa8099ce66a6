"""Roles of the cluster, and what binds them to a group: everything that an access entry leads to."""

from __future__ import annotations

from collections.abc import Sequence

import pulumi
import pulumi_kubernetes as k8s

from trainyard.objects.teams.team_access import Grant

RBAC = "rbac.authorization.k8s.io"
"""The API group of roles in the cluster, and of what binds them to somebody."""


def cluster_role(
    parent: pulumi.Resource, name: str, called: str, may: Sequence[Grant]
) -> k8s.rbac.v1.ClusterRole:
    """The ClusterRole `called` so, with these rights."""
    return k8s.rbac.v1.ClusterRole(
        name,
        metadata={"name": called},
        rules=[
            k8s.rbac.v1.PolicyRuleArgs(
                api_groups=[each.group], resources=[*each.resources], verbs=[*each.verbs]
            )
            for each in may
        ],
        opts=pulumi.ResourceOptions(parent=parent),
    )


def group_subject(group: str) -> k8s.rbac.v1.SubjectArgs:
    """The group of an access entry, as a binding names it."""
    return k8s.rbac.v1.SubjectArgs(kind="Group", api_group=RBAC, name=group)


def bind_cluster_role(
    parent: pulumi.Resource, name: str, called: str, role: pulumi.Input[str], group: str
) -> k8s.rbac.v1.ClusterRoleBinding:
    """Give a group the rights of a ClusterRole in the whole cluster. `role`: its name, an output where the stack makes
    it, so that the binding comes after it."""
    return k8s.rbac.v1.ClusterRoleBinding(
        name,
        metadata={"name": called},
        role_ref={"api_group": RBAC, "kind": "ClusterRole", "name": role},
        subjects=[group_subject(group)],
        opts=pulumi.ResourceOptions(parent=parent),
    )
