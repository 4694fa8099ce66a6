"""Roles that look at the whole cluster and change nothing.

Names: `cluster.viewers` in the stack file. Rights: trainyard/objects/viewers.py.
"""

from __future__ import annotations

from collections.abc import Sequence

import pulumi
import pulumi_aws as aws

from components.base.rbac import bind_cluster_role, cluster_role
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
        bind_cluster_role(self, f"{name}-view", f"{ROLE}-view", VIEW, VIEWERS)
        ours = cluster_role(self, name, ROLE, GRANTS)
        bind_cluster_role(self, name, ROLE, ours.metadata["name"], VIEWERS)
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
