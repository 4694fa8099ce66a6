"""Another environment that hands the jobs of its teams to this one: how it enters, and what it may do.

Who: `queues.manager` in the stack file. Its rights: trainyard/objects/programs/dispatch.py.
"""

from __future__ import annotations

from collections.abc import Mapping

import pulumi
import pulumi_aws as aws
import pulumi_kubernetes as k8s

from components.base.rbac import RBAC, bind_cluster_role, cluster_role, group_subject
from components.cluster.cluster_access import ClusterAccess
from trainyard.objects.programs.dispatch import ENTERS, SEES, STARTS
from trainyard.objects.queues.queues import MANAGERS


class QueueManager(pulumi.ComponentResource):
    """It sees all jobs, and starts them in namespaces of teams only."""

    def __init__(
        self,
        name: str,
        role_arn: str,
        *,
        cluster: ClusterAccess,
        teams: Mapping[str, tuple[str, pulumi.Resource]],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """`teams`: name → its namespace, and what makes that."""
        super().__init__("trainyard:queues:Manager", name, None, opts)
        called = f"{ENTERS}-sees"
        sees = cluster_role(self, f"{name}-sees", called, SEES)
        starts = cluster_role(self, f"{name}-starts", ENTERS, STARTS)
        sight = bind_cluster_role(self, f"{name}-sees", called, sees.metadata["name"], MANAGERS)
        bound = [
            k8s.rbac.v1.RoleBinding(
                f"{name}-starts-{team}",
                metadata={"name": ENTERS, "namespace": namespace},
                role_ref={
                    "api_group": RBAC,
                    "kind": "ClusterRole",
                    "name": starts.metadata["name"],
                },
                subjects=[group_subject(MANAGERS)],
                # The namespace is known by its name only.
                opts=pulumi.ResourceOptions(parent=self, depends_on=[made]),
            )
            for team, (namespace, made) in teams.items()
        ]
        aws.eks.AccessEntry(
            name,
            cluster_name=cluster.name,
            principal_arn=role_arn,
            kubernetes_groups=[MANAGERS],
            type="STANDARD",
            tags=cluster.identity.tags(name),
            # Whoever enters without rights is refused, and Kueue waits up to five minutes longer.
            opts=pulumi.ResourceOptions(parent=self, depends_on=[sight, *bound]),
        )
        self.register_outputs({})
