"""Roles that look at the whole cluster and change nothing.

Names: `cluster.viewers` in the stack file. Rights: trainyard/objects/viewers.py.
"""

from __future__ import annotations

from collections.abc import Sequence

import pulumi
import pulumi_aws as aws
import pulumi_kubernetes as k8s

from components.base.rbac import RBAC
from components.cluster.cluster_access import ClusterAccess
from trainyard.objects.viewers import GRANTS, ROLE, VIEW, VIEWERS
from trainyard.plans.access import NamedRole


class Viewers(pulumi.ComponentResource):
    """Their access entries, and the rights of their group. A cluster without viewers has none of them."""

    def __init__(
        self,
        name: str,
        viewers: Sequence[NamedRole],
        *,
        cluster: ClusterAccess,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("trainyard:cluster:Viewers", name, None, opts)
        for viewer in viewers:
            self._entry(f"{name}-{viewer.name}", viewer, cluster)
        self._bind(f"{name}-view", VIEW, called=f"{ROLE}-view")
        self._bind(name, self._role(name), called=ROLE)
        self.register_outputs({})

    def _entry(self, name: str, viewer: NamedRole, cluster: ClusterAccess) -> None:
        aws.eks.AccessEntry(
            name,
            cluster_name=cluster.name,
            principal_arn=viewer.arn,
            kubernetes_groups=[VIEWERS],
            type="STANDARD",
            tags=cluster.identity.tags(name),
            opts=pulumi.ResourceOptions(parent=self),
        )

    def _role(self, name: str) -> pulumi.Input[str]:
        made = k8s.rbac.v1.ClusterRole(
            name,
            metadata=k8s.meta.v1.ObjectMetaArgs(name=ROLE),
            rules=[
                k8s.rbac.v1.PolicyRuleArgs(
                    api_groups=[grant.group], resources=[*grant.resources], verbs=[*grant.verbs]
                )
                for grant in GRANTS
            ],
            opts=pulumi.ResourceOptions(parent=self),
        )
        return made.metadata.name

    def _bind(self, name: str, role: pulumi.Input[str], *, called: str) -> None:
        k8s.rbac.v1.ClusterRoleBinding(
            name,
            metadata=k8s.meta.v1.ObjectMetaArgs(name=called),
            role_ref=k8s.rbac.v1.RoleRefArgs(api_group=RBAC, kind="ClusterRole", name=role),
            subjects=[k8s.rbac.v1.SubjectArgs(kind="Group", api_group=RBAC, name=VIEWERS)],
            opts=pulumi.ResourceOptions(parent=self),
        )
