"""The identity that every GPU node has: role, instance profile, and the access entry without which
none joins."""

from __future__ import annotations

import pulumi
import pulumi_aws as aws

from components.base.role import role
from components.cluster.add_ons import CNI_POLICY
from components.nodes.system_nodes import AGENT_POLICY, NODE_POLICIES
from trainyard.objects.iam.policies import Document, account_of, pod_identity_trust, trust
from trainyard.plans.pools import GpuNodesPlan


class GpuNodes(pulumi.ComponentResource):
    """Owned by the graph and not by Karpenter: profiles that Karpenter makes outlive a destroy and
    block the role."""

    role_arn: pulumi.Output[str]
    pod_identity_trust: pulumi.Output[Document]
    """Trust policy for roles that pods of this cluster get. The account in it is read from the
    role's ARN, which is known minutes before the cluster's: roles and their policies do not wait
    for the cluster."""
    profile_name: pulumi.Output[str]
    ready: list[pulumi.Resource]

    def __init__(
        self,
        name: str,
        plan: GpuNodesPlan,
        *,
        cluster_name: pulumi.Input[str],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("trainyard:nodes:GpuNodes", name, None, opts)
        nodes, attached = role(
            self,
            name,
            plan.identity,
            plan.role_name,
            trust("ec2.amazonaws.com"),
            managed=(
                *NODE_POLICIES,
                *([AGENT_POLICY] if plan.sessions else []),
                *([CNI_POLICY] if plan.cni else []),
            ),
        )
        profile = aws.iam.InstanceProfile(
            name,
            name=plan.profile_name,
            role=nodes.name,
            tags=plan.identity.tags(name),
            opts=pulumi.ResourceOptions(parent=self),
        )
        entry = aws.eks.AccessEntry(
            name,
            cluster_name=cluster_name,
            principal_arn=nodes.arn,
            type="EC2_LINUX",
            tags=plan.identity.tags(name),
            opts=pulumi.ResourceOptions(parent=self),
        )
        self.role_arn = nodes.arn
        self.pod_identity_trust = nodes.arn.apply(
            lambda arn: pod_identity_trust(
                account=account_of(arn), region=plan.identity.region, cluster=plan.cluster_name
            )
        )
        self.profile_name = profile.name
        self.ready = [entry, *attached]
        self.register_outputs({})
