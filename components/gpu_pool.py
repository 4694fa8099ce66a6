"""GPU nodes of one type in one zone: an EC2NodeClass that says what a node is, a NodePool that says how many and when.

Type, size and limits: `pools` in the stack file. The EFA layout: stacks/plan.py, efa_interfaces.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pulumi
import pulumi_kubernetes as k8s

from components.plans import GpuPoolPlan
from components.trainer_objects import GPU, TAINT_VALUE

READY = {"pulumi.com/waitFor": "condition=Ready"}
DRAIN = pulumi.CustomTimeouts(create="10m", delete="30m")
"""Deleting a NodePool ends when its last node is gone; a p5 takes more than a quarter of an hour."""


class GpuPool(pulumi.ComponentResource):
    """A pool that costs nothing until a job asks for its nodes."""

    ready: pulumi.Resource

    def __init__(self, name: str, plan: GpuPoolPlan, *, subnet_id: pulumi.Input[str],
                 security_group_ids: list[pulumi.Input[str]], profile_name: pulumi.Input[str],
                 needs: Sequence[pulumi.Resource], opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("trainyard:nodes:GpuPool", name, None, opts)
        node_class = k8s.apiextensions.CustomResource(
            f"{name}-class", api_version="karpenter.k8s.aws/v1", kind="EC2NodeClass",
            metadata={"name": plan.name, "annotations": READY},
            spec=node_class_spec(plan, subnet_id=subnet_id, security_group_ids=security_group_ids,
                                 profile_name=profile_name),
            # Its controller and webhook-free CRDs must live before it and after it, and nodes must be let in.
            opts=pulumi.ResourceOptions(parent=self, depends_on=list(needs), custom_timeouts=DRAIN))
        self.ready = k8s.apiextensions.CustomResource(
            f"{name}-pool", api_version="karpenter.sh/v1", kind="NodePool",
            metadata={"name": plan.name, "annotations": READY}, spec=node_pool_spec(plan),
            # Refers to the class by name only; deleted first, while the class can still drain its nodes.
            opts=pulumi.ResourceOptions(parent=self, depends_on=[node_class], custom_timeouts=DRAIN))
        self.register_outputs({})


def node_class_spec(plan: GpuPoolPlan, *, subnet_id: pulumi.Input[str], security_group_ids: list[pulumi.Input[str]],
                    profile_name: pulumi.Input[str]) -> dict[str, Any]:
    """EC2NodeClass.spec: image, disk, identity, and one subnet of one zone."""
    return {
        "amiSelectorTerms": [{"alias": plan.ami}],
        "instanceProfile": profile_name,
        "subnetSelectorTerms": [{"id": subnet_id}],
        "securityGroupSelectorTerms": [{"id": group} for group in security_group_ids],
        "networkInterfaces": [{"networkCardIndex": i.card, "deviceIndex": i.device, "interfaceType": i.kind}
                              for i in plan.interfaces],
        # Images, logs and ephemeral volumes on the local NVMe; lost with the node, as checkpoints must not be.
        "instanceStorePolicy": "RAID0",
        "blockDeviceMappings": [{"deviceName": "/dev/xvda", "rootVolume": True, "ebs": {
            "volumeSize": f"{plan.root_volume_gib}Gi", "volumeType": "gp3", "throughput": 1000, "iops": 4000,
            "encrypted": True, "deleteOnTermination": True}}],
        "metadataOptions": {"httpTokens": "required", "httpPutResponseHopLimit": 1},
        "kubelet": {"maxPods": plan.max_pods},
        "tags": plan.identity.tags(f"{plan.name}-node"),
    }


def node_pool_spec(plan: GpuPoolPlan) -> dict[str, Any]:
    """NodePool.spec: one type, one zone, one kind of capacity, and never a disruption under a running gang."""
    return {
        "template": {
            "metadata": {"labels": {"trainyard.io/nodes": "gpu"}},
            "spec": {
                "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": plan.name},
                "requirements": [
                    {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [plan.instance_type]},
                    {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [plan.zone]},
                    {"key": "karpenter.sh/capacity-type", "operator": "In", "values": [plan.capacity_type]},
                    {"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
                    {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
                ],
                "taints": [{"key": GPU, "value": TAINT_VALUE, "effect": "NoSchedule"}],
                "expireAfter": "Never",  # the default of 720h kills long runs
            },
        },
        "limits": {"nodes": str(plan.max_nodes), GPU: str(plan.max_nodes * plan.gpus)},
        "disruption": {
            "consolidationPolicy": "WhenEmpty",
            "consolidateAfter": "15m",  # longer than a gang takes to assemble or to restart
            "budgets": [{"nodes": "0", "reasons": ["Drifted", "Underutilized"]},
                        {"nodes": "100%", "reasons": ["Empty"]}],
        },
    }
