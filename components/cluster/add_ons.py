"""EKS add-ons, in the two groups that work: what nodes need to become Ready, then what needs nodes.

Versions: trainyard/catalog/versions.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from components.base.role import role, together
from trainyard.objects.iam.policies import ROLE_NAME, Document, as_text, document, unlike
from trainyard.plans.node_parts import AddOnPlan
from trainyard.plans.parts import Identity

CNI_POLICY = "arn:aws:iam::aws:policy/AmazonEKS_CNI_Policy"


@dataclass(frozen=True, kw_only=True)
class PodRoles:
    """What the roles of add-ons' pods trust and may do."""

    trusts: pulumi.Output[Document]
    statements: Mapping[str, Sequence[pulumi.Output[list[Document]]]]
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
        identity: Identity,
        cluster_name: pulumi.Input[str],
        nodes: Sequence[pulumi.Resource] = (),
        roles: PodRoles | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("trainyard:cluster:AddOns", name, None, opts)
        self.ready = {
            add_on.name: self._add_on(
                add_on,
                identity,
                cluster_name,
                [*nodes, *self._pod_role(add_on, identity, cluster_name, roles)],
            )
            for add_on in plan
        }
        self.register_outputs({})

    def _pod_role(
        self,
        add_on: AddOnPlan,
        identity: Identity,
        cluster_name: pulumi.Input[str],
        roles: PodRoles | None,
    ) -> list[pulumi.Resource]:
        """A role for the pods of an add-on that call AWS, in place before they start."""
        if roles is None or not add_on.service_account:
            return []
        allowed = together(roles.statements[add_on.name])
        pods, attached = role(
            self,
            add_on.name,
            identity,
            identity.short_name(add_on.name, ROLE_NAME),
            roles.trusts,
            inline={"stores": allowed.apply(lambda all_: as_text(document(*unlike(all_))))},
        )
        association = aws.eks.PodIdentityAssociation(
            add_on.name,
            cluster_name=cluster_name,
            namespace="kube-system",
            service_account=add_on.service_account,
            role_arn=pods.arn,
            tags=identity.tags(add_on.name),
            opts=pulumi.ResourceOptions(parent=self, depends_on=attached),
        )
        return [association]

    def _add_on(
        self,
        add_on: AddOnPlan,
        identity: Identity,
        cluster_name: pulumi.Input[str],
        nodes: Sequence[pulumi.Resource],
    ) -> aws.eks.Addon:
        return aws.eks.Addon(
            add_on.name,
            cluster_name=cluster_name,
            addon_name=add_on.name,
            addon_version=add_on.version,
            configuration_values=add_on.configuration,
            resolve_conflicts_on_create="OVERWRITE" if add_on.overwrites else "NONE",
            resolve_conflicts_on_update="PRESERVE",
            tags=identity.tags(add_on.name),
            # A Deployment without a node to run on never becomes available, and no data says so.
            # Pods get their role only if its association was there before they started.
            opts=pulumi.ResourceOptions(parent=self, depends_on=list(nodes)),
        )


class CniIdentity(pulumi.ComponentResource):
    """What lets aws-node attach addresses: its own role, so that no node role carries the
    permission."""

    ready: pulumi.Resource

    def __init__(
        self,
        name: str,
        identity: Identity,
        *,
        cluster_name: pulumi.Input[str],
        trusts: pulumi.Output[Document],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("trainyard:cluster:CniIdentity", name, None, opts)
        cni, attached = role(
            self, name, identity, identity.name(name), trusts, managed=[CNI_POLICY]
        )
        self.ready = aws.eks.PodIdentityAssociation(
            name,
            cluster_name=cluster_name,
            namespace="kube-system",
            service_account="aws-node",
            role_arn=cni.arn,
            # The first address is asked for seconds after the pod starts; the policy must be there
            # by then.
            tags=identity.tags(name),
            opts=pulumi.ResourceOptions(parent=self, depends_on=attached),
        )
        self.register_outputs({})
