"""The namespace from which the directories of teams are made, on stores whose drivers make none: its
pods mount such a store as a whole. Nobody of a team enters it.

The directories themselves: components/stores/lustre_directory.py.
"""

from __future__ import annotations

from collections.abc import Mapping

import pulumi
import pulumi_kubernetes as k8s

from components.jobs.namespace import JobNamespace, Volume
from components.stores.store import Roots
from trainyard.plans.jobs import JobNamespacePlan


class DirectoryRoots(pulumi.ComponentResource):
    """Namespace, claims, and a network policy: its pods reach nobody, and nobody reaches them."""

    roots: Roots

    def __init__(
        self,
        name: str,
        plan: JobNamespacePlan,
        *,
        volumes: Mapping[str, Volume],
        drivers: Mapping[str, pulumi.Resource],
        group_id: pulumi.Input[str],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """`group_id`: security group of the system nodes."""
        super().__init__("trainyard:teams:DirectoryRoots", name, None, opts)
        own = pulumi.ResourceOptions(parent=self)
        space = JobNamespace(name, plan, volumes=volumes, drivers=drivers, opts=own)
        k8s.networking.v1.NetworkPolicy(
            f"{name}-network",
            metadata={"name": "network", "namespace": space.namespace},
            spec=k8s.networking.v1.NetworkPolicySpecArgs(
                pod_selector=k8s.meta.v1.LabelSelectorArgs(), policy_types=["Ingress", "Egress"]
            ),
            opts=own,
        )
        self.roots = Roots(claims=space.claims, group_id=group_id)
        self.register_outputs({})
