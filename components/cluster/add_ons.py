"""EKS add-ons, in the two groups that work: what nodes need to become Ready, then what needs nodes.

Versions: trainyard/catalog/versions.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pulumi
import pulumi_aws as aws

from components.base.role import role, together
from components.cluster.cluster_access import ClusterAccess
from trainyard.catalog.limits import ADD_ON_UPDATE_MINUTES
from trainyard.objects.iam.policies import ROLE_NAME, Document, as_text, document, unlike
from trainyard.plans.clusters import AddOnPlan

CNI_POLICY = "arn:aws:iam::aws:policy/AmazonEKS_CNI_Policy"


Statements = Mapping[str, Sequence[pulumi.Output[list[Document]]]]
"""Add-on → what its pods may do."""


class AddOns(pulumi.ComponentResource):
    """Some add-ons of a cluster."""

    ready: dict[str, pulumi.Resource]
    """name → add-on."""

    def __init__(
        self,
        name: str,
        plan: Sequence[AddOnPlan],
        *,
        cluster: ClusterAccess,
        statements: Statements | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """`statements`: None before there are stores that pods could mount."""
        super().__init__("trainyard:cluster:AddOns", name, None, opts)
        self._cluster = cluster
        self.ready = {
            add_on.name: self._add_on(add_on, self._pod_role(add_on, statements)) for add_on in plan
        }
        self.register_outputs({})

    def _pod_role(self, add_on: AddOnPlan, statements: Statements | None) -> list[pulumi.Resource]:
        """A role for the pods of an add-on that call AWS, in place before they start."""
        if statements is None or not add_on.service_account:
            return []
        identity = self._cluster.identity
        allowed = together(statements[add_on.name])
        pods, attached = role(
            self,
            add_on.name,
            identity,
            identity.short_name(add_on.name, ROLE_NAME),
            self._cluster.trusts,
            inline={"stores": allowed.apply(lambda all_: as_text(document(*unlike(all_))))},
        )
        association = self._cluster.association(
            self,
            add_on.name,
            pods,
            namespace="kube-system",
            service_account=add_on.service_account,
            attached=attached,
        )
        return [association]

    def _add_on(self, add_on: AddOnPlan, pod_role: Sequence[pulumi.Resource]) -> aws.eks.Addon:
        return aws.eks.Addon(
            add_on.name,
            cluster_name=self._cluster.name,
            addon_name=add_on.name,
            addon_version=add_on.version,
            configuration_values=add_on.configuration,
            resolve_conflicts_on_create="OVERWRITE" if add_on.overwrites else "NONE",
            resolve_conflicts_on_update="PRESERVE",
            tags=self._cluster.identity.tags(add_on.name),
            # A Deployment without a node to run on never becomes available, and no data says so.
            # Pods get their role only if its association was there before they started.
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=[*self._cluster.nodes, *pod_role],
                custom_timeouts=pulumi.CustomTimeouts(update=f"{ADD_ON_UPDATE_MINUTES}m"),
            ),
        )


class CniIdentity(pulumi.ComponentResource):
    """Role with which aws-node attaches addresses, so that no node role carries the permission."""

    ready: pulumi.Resource

    def __init__(
        self,
        name: str,
        *,
        cluster: ClusterAccess,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("trainyard:cluster:CniIdentity", name, None, opts)
        identity = cluster.identity
        cni, attached = role(
            self, name, identity, identity.name(name), cluster.trusts, managed=[CNI_POLICY]
        )
        self.ready = cluster.association(
            self,
            name,
            cni,
            namespace="kube-system",
            service_account="aws-node",
            # The first address is asked for seconds after the pod starts; the policy must be there
            # by then.
            attached=attached,
        )
        self.register_outputs({})
