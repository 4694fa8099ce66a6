"""The managed node group that controllers run on, so that Karpenter never runs on nodes it could
remove.

Type and number: `system_nodes` in the stack file.
"""

from __future__ import annotations

from collections.abc import Sequence

import pulumi
import pulumi_aws as aws

from components.role import role
from plans.parts import SystemNodesPlan
from plans.policies import trust

NODE_POLICIES = (
    "arn:aws:iam::aws:policy/AmazonEKSWorkerNodePolicy",
    "arn:aws:iam::aws:policy/AmazonEC2ContainerRegistryPullOnly",
)
"""What a node itself may do; addresses and volumes are the business of pods with identities of
their own."""
TUNNEL_POLICY = "arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore"
"""What the agent of Systems Manager on a node needs to open a tunnel. EKS's AMIs have the agent."""


class SystemNodes(pulumi.ComponentResource):
    """Nodes in every zone of the network but for GPUs."""

    ready: pulumi.Resource

    def __init__(
        self,
        name: str,
        plan: SystemNodesPlan,
        *,
        cluster_name: pulumi.Input[str],
        subnet_ids: list[pulumi.Output[str]],
        needs: Sequence[pulumi.Resource],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("trainyard:nodes:SystemNodes", name, None, opts)
        nodes, attached = role(
            self,
            name,
            plan.identity,
            plan.role_name,
            trust("ec2.amazonaws.com"),
            managed=(*NODE_POLICIES, *([TUNNEL_POLICY] if plan.tunnel else [])),
        )
        self.ready = aws.eks.NodeGroup(
            name,
            cluster_name=cluster_name,
            node_group_name=plan.name,
            node_role_arn=nodes.arn,
            subnet_ids=subnet_ids,
            instance_types=[plan.instance_type],
            ami_type="AL2023_x86_64_STANDARD",
            disk_size=plan.disk_gib,
            labels={"trainyard.io/nodes": "system"},
            tags=plan.identity.tags(name),
            scaling_config=aws.eks.NodeGroupScalingConfigArgs(
                min_size=plan.nodes, max_size=plan.nodes + 1, desired_size=plan.nodes
            ),
            update_config=aws.eks.NodeGroupUpdateConfigArgs(max_unavailable=1),
            # A node joins with its role's policies, reaches registries through NAT and turns Ready
            # with the CNI: three edges that no input shows.
            opts=pulumi.ResourceOptions(parent=self, depends_on=[*attached, *needs]),
        )
        self.register_outputs({})
