"""The managed node group that controllers run on, so that Karpenter never runs on nodes it could
remove.

Type and number: `system_nodes` in the stack file.
"""

from __future__ import annotations

from collections.abc import Sequence

import pulumi
import pulumi_aws as aws

from components.base.role import role
from components.cluster.add_ons import CNI_POLICY
from trainyard.catalog.limits import NODE_UPDATE_MINUTES
from trainyard.objects.iam.policies import trust
from trainyard.objects.jobs.pod_template import NODES_FOR
from trainyard.plans.system_nodes import SystemNodesPlan
from trainyard.plans.upgrades import refusal

NODE_POLICIES = (
    "arn:aws:iam::aws:policy/AmazonEKSWorkerNodePolicy",
    "arn:aws:iam::aws:policy/AmazonEC2ContainerRegistryPullOnly",
)
"""AWS's policies of a node itself; addresses and volumes are the business of pods with identities
of their own."""
AGENT_POLICY = "arn:aws:iam::aws:policy/AmazonSSMManagedInstanceCore"
"""AWS's policy that the agent of Systems Manager on a node needs to open a tunnel or a terminal. EKS's AMIs
have the agent."""


class SystemNodes(pulumi.ComponentResource):
    """CPU nodes for controllers: one group across all zones of the network."""

    ready: pulumi.Resource

    def __init__(
        self,
        name: str,
        plan: SystemNodesPlan,
        *,
        cluster_name: pulumi.Input[str],
        subnet_ids: Sequence[pulumi.Input[str]],
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
            managed=(
                *NODE_POLICIES,
                *([AGENT_POLICY] if plan.tunnel else []),
                *([CNI_POLICY] if plan.cni else []),
            ),
        )
        # EKS makes an entry where there is none, and then refuses ours.
        entry = [self._entry(name, plan, cluster_name, nodes)] if plan.entry else []
        template = self._template(name, plan)
        self.ready = aws.eks.NodeGroup(
            name,
            cluster_name=cluster_name,
            node_group_name=plan.name,
            node_role_arn=nodes.arn,
            subnet_ids=subnet_ids,
            instance_types=[plan.instance_type],
            ami_type="AL2023_x86_64_STANDARD",
            # Without them EKS never upgrades the nodes, nor patches them.
            version=plan.version,
            release_version=plan.release,
            launch_template=aws.eks.NodeGroupLaunchTemplateArgs(
                id=template.id,
                version=template.latest_version.apply(lambda number: str(int(number))),
            ),
            labels={NODES_FOR: "system"},
            tags=plan.identity.tags(name),
            scaling_config=aws.eks.NodeGroupScalingConfigArgs(
                min_size=plan.nodes, max_size=plan.nodes + 1, desired_size=plan.nodes
            ),
            update_config=aws.eks.NodeGroupUpdateConfigArgs(max_unavailable=1),
            # A node joins with its role's policies, reaches registries through NAT and turns Ready
            # with the CNI: three edges that no input shows.
            opts=pulumi.ResourceOptions(
                parent=self,
                depends_on=[*attached, *entry, *needs],
                hooks=_one_minor_at_a_time(name),
                custom_timeouts=pulumi.CustomTimeouts(
                    update=f"{60 + NODE_UPDATE_MINUTES * plan.nodes}m"
                ),
            ),
        )
        self.register_outputs({})

    def _entry(
        self,
        name: str,
        plan: SystemNodesPlan,
        cluster_name: pulumi.Input[str],
        nodes: aws.iam.Role,
    ) -> aws.eks.AccessEntry:
        """Let the nodes join."""
        return aws.eks.AccessEntry(
            name,
            cluster_name=cluster_name,
            principal_arn=nodes.arn,
            type="EC2_LINUX",
            tags=plan.identity.tags(name),
            opts=pulumi.ResourceOptions(parent=self),
        )

    def _template(self, name: str, plan: SystemNodesPlan) -> aws.ec2.LaunchTemplate:
        tags = plan.identity.tags(name)
        return aws.ec2.LaunchTemplate(
            name,
            name=plan.template_name,
            update_default_version=True,
            # Pods must not read the credentials of their node.
            metadata_options=aws.ec2.LaunchTemplateMetadataOptionsArgs(
                http_tokens="required", http_put_response_hop_limit=1
            ),
            block_device_mappings=[
                aws.ec2.LaunchTemplateBlockDeviceMappingArgs(
                    device_name="/dev/xvda",
                    ebs=aws.ec2.LaunchTemplateBlockDeviceMappingEbsArgs(
                        volume_type="gp3",
                        volume_size=plan.disk_gib,
                        encrypted="true",
                        kms_key_id=plan.identity.kms_key_arn,
                        delete_on_termination="true",
                    ),
                )
            ],
            tag_specifications=[
                aws.ec2.LaunchTemplateTagSpecificationArgs(
                    resource_type=kind, tags={**dict(plan.node_tags), **tags}
                )
                for kind in ("instance", "volume")
            ],
            tags=tags,
            opts=pulumi.ResourceOptions(parent=self),
        )


def _one_minor_at_a_time(name: str) -> pulumi.ResourceHookBinding:
    """EKS refuses another step only during `up`. The nodes have the version of the control plane,
    and their hook, unlike that of a resource inside a remote component, runs in a preview too."""

    def check(change: pulumi.ResourceHookArgs) -> None:
        now, wanted = (
            (inputs or {}).get("version") for inputs in (change.old_inputs, change.new_inputs)
        )
        if now and wanted and (problem := refusal(str(now), str(wanted))):
            raise ValueError(str(problem))

    hook = pulumi.ResourceHook(
        f"{name}-one-minor-at-a-time", check, pulumi.ResourceHookOptions(on_dry_run=True)
    )
    return pulumi.ResourceHookBinding(before_update=[hook])
