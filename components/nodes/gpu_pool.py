"""Nodes for jobs: an EC2NodeClass a type that says what a node is, a NodePool that says how many
and when.

Type, size, kind of capacity: `pools` in the stack file. What follows from them, the EFA layout too:
trainyard/derive/pools.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pulumi
import pulumi_aws as aws
import pulumi_kubernetes as k8s

from trainyard.catalog.limits import EMPTY_NODE_MINUTES, POOL_DELETE_MINUTES, POOL_MINUTES
from trainyard.catalog.upstream import gpu_operator
from trainyard.catalog.upstream.bottlerocket import FAMILY, LABEL, SYSTEM_GIB, is_bottlerocket
from trainyard.objects.jobs.lnet import with_lnet_over_efa, with_lustre_client
from trainyard.objects.jobs.pod_template import GPU, NODES_FOR, POOL, TAINT_VALUE
from trainyard.plans.pools import GpuPoolPlan, NodeTypePlan

READY = {"pulumi.com/waitFor": "condition=Ready"}
"""Annotation of an awaited NodePool, whose Ready contains its class's. A class never gets
it: before Karpenter knows a class's NodePool it tries the class with a type of the region chosen at
random, and EC2 refuses a type that the zone does not sell. It tries again, and then with the NodePool's
type (karpenter-provider-aws 1.14, pkg/controllers/nodeclass/validation.go)."""
TIMEOUTS = pulumi.CustomTimeouts(
    create=f"{POOL_MINUTES}m", update=f"{POOL_MINUTES}m", delete=f"{POOL_DELETE_MINUTES}m"
)


FAST_PULL = """apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  featureGates:
    FastImagePull: true
"""
"""SOCI's parallel pull and unpack: a training image of 9 GB in 40 s instead of 131
(karpenter-blueprints). Karpenter puts its own NodeConfig behind this one; an EKS AMI older than the
gate would not boot (amazon-eks-ami#2352)."""
BOTTLEROCKET_SETTINGS = """[settings.container-runtime]
snapshotter = "soci"

[settings.container-runtime-plugins.soci-snapshotter]
pull-mode = "parallel-pull-unpack"

[settings.container-runtime-plugins.soci-snapshotter.parallel-pull-unpack]
max-concurrent-downloads-per-image = 20
concurrent-download-chunk-size = "16mb"
max-concurrent-unpacks-per-image = 12
discard-unpacked-layers = true

[settings.kubelet-device-plugins.nvidia]
device-list-strategy = "volume-mounts"

[settings.kernel.sysctl]
"vm/nr_hugepages" = "0"

[settings.metrics]
send-metrics = false
"""
"""User data of Bottlerocket; Karpenter adds its own settings (amifamily/bootstrap/bottlerocket.go), and drops
what it does not know below settings.kubernetes alone. The pull: as the AMI of AL2023 has it by default
(karpenter-blueprints, soci-snapshotter). The devices: a container sees the GPUs that its pod requests, whatever
NVIDIA_VISIBLE_DEVICES says, and the exporter of DCGM all of them by its CAP_SYS_ADMIN (bottlerocket#3992).
The pages: where EFA is attached, Bottlerocket would keep 220 MiB for each vCPU as huge pages, 41 GiB of a p5.48xlarge,
which a pod has only if it requests them, and none does (bottlerocket-core-kit, sources/api/corndog,
generate-hugepages-setting, which leaves a setting of ours as it is: sundog; bottlerocket#4290).
Bottlerocket would report each boot to its makers."""


class GpuPool(pulumi.ComponentResource):
    """A pool that costs nothing until a job asks for its nodes, unless its plan keeps some."""

    ready: list[pulumi.Resource]
    """Its NodePools, each Ready if the plan says that they are awaited."""

    def __init__(
        self,
        name: str,
        plan: GpuPoolPlan,
        *,
        subnet_ids: list[pulumi.Input[str]],
        security_group_ids: list[pulumi.Input[str]],
        profile_name: pulumi.Input[str],
        needs: Sequence[pulumi.Resource],
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        super().__init__("trainyard:nodes:GpuPool", name, None, opts)
        group = (
            self._placement_group(name, plan) if plan.own_placement_group else plan.placement_group
        )
        self.ready = []
        for kind in plan.types:
            node_class = k8s.apiextensions.CustomResource(
                f"{kind.name}-class",
                api_version="karpenter.k8s.aws/v1",
                kind="EC2NodeClass",
                metadata={"name": kind.name},
                spec=node_class_spec(
                    plan,
                    kind,
                    subnet_ids=subnet_ids,
                    security_group_ids=security_group_ids,
                    profile_name=profile_name,
                    placement_group=group,
                ),
                # Its controller and webhook-free CRDs must live before it and after it, and nodes
                # must be let in.
                opts=pulumi.ResourceOptions(
                    parent=self, depends_on=list(needs), custom_timeouts=TIMEOUTS
                ),
            )
            self.ready.append(
                k8s.apiextensions.CustomResource(
                    f"{kind.name}-pool",
                    api_version="karpenter.sh/v1",
                    kind="NodePool",
                    metadata=node_pool_metadata(plan, kind),
                    spec=node_pool_spec(plan, kind),
                    # Refers to the class by name only; deleted first, while the class can still
                    # drain its nodes.
                    opts=pulumi.ResourceOptions(
                        parent=self, depends_on=[node_class], custom_timeouts=TIMEOUTS
                    ),
                )
            )
        self.register_outputs({})

    def _placement_group(self, name: str, plan: GpuPoolPlan) -> pulumi.Output[str]:
        """Nodes close together; EC2 deletes it only when they are gone, which the NodeClass's edge
        to it sees to."""
        return aws.ec2.PlacementGroup(
            f"{name}-nodes",
            name=plan.placement_group,
            strategy="cluster",
            tags=plan.identity.tags(f"{name}-nodes"),
            opts=pulumi.ResourceOptions(parent=self),
        ).name


def node_class_spec(
    plan: GpuPoolPlan,
    kind: NodeTypePlan,
    *,
    subnet_ids: list[pulumi.Input[str]],
    security_group_ids: list[pulumi.Input[str]],
    profile_name: pulumi.Input[str],
    placement_group: pulumi.Input[str] | None = None,
) -> dict[str, Any]:
    """EC2NodeClass.spec: image, disk, identity, and where nodes may stand."""
    spec = {
        "amiSelectorTerms": [{"alias": plan.ami}],
        "instanceProfile": profile_name,
        "subnetSelectorTerms": [{"id": subnet} for subnet in subnet_ids],
        "securityGroupSelectorTerms": [{"id": group} for group in security_group_ids],
        "networkInterfaces": [
            {"networkCardIndex": i.card, "deviceIndex": i.device, "interfaceType": i.kind}
            for i in kind.interfaces
        ],
        # Images, logs and ephemeral volumes on the local NVMe; lost with the node, as checkpoints
        # must not be.
        "instanceStorePolicy": "RAID0",
        "userData": BOTTLEROCKET_SETTINGS if is_bottlerocket(plan.ami) else user_data(kind),
        "blockDeviceMappings": _disks(plan),
        "metadataOptions": {"httpTokens": "required", "httpPutResponseHopLimit": 1},
        "kubelet": {"maxPods": kind.max_pods},
        "tags": plan.identity.tags(f"{kind.name}-node"),
    }
    if plan.reservation_id:
        spec["capacityReservationSelectorTerms"] = [{"id": plan.reservation_id}]
    if placement_group is not None:
        spec["placementGroupSelector"] = {"name": placement_group}
    return spec


def _disks(plan: GpuPoolPlan) -> list[dict[str, Any]]:
    """EBS volumes of a node. Bottlerocket has its system on one of them and containers on the other, whose
    size Karpenter takes for that of the node by its name: no volume may be called rootVolume."""
    key = plan.identity.kms_key_arn
    ends = {
        "encrypted": True,
        **({"kmsKeyID": key} if key else {}),
        "deleteOnTermination": True,
    }
    containers = {
        "volumeSize": f"{plan.root_volume_gib}Gi",
        "volumeType": "gp3",
        "throughput": plan.root_volume_mbps,
        "iops": plan.root_volume_iops,
        **ends,
    }
    if not is_bottlerocket(plan.ami):
        return [{"deviceName": "/dev/xvda", "rootVolume": True, "ebs": containers}]
    system = {"volumeSize": f"{SYSTEM_GIB}Gi", "volumeType": "gp3", **ends}
    return [
        {"deviceName": "/dev/xvda", "ebs": system},
        {"deviceName": "/dev/xvdb", "ebs": containers},
    ]


def user_data(kind: NodeTypePlan) -> str:
    """User data of AL2023 that the node reads at boot before Karpenter's own part."""
    if kind.lnet_efa:
        return with_lnet_over_efa(FAST_PULL, efa=kind.efa, devices=kind.lnet_efa)
    return with_lustre_client(FAST_PULL) if kind.lustre else FAST_PULL


def node_pool_metadata(plan: GpuPoolPlan, kind: NodeTypePlan) -> dict[str, Any]:
    """NodePool.metadata. The first job on an idle pool adds the annotation, the last one takes it
    away: both change the NodePool in place, and neither touches its nodes."""
    return {"name": kind.name, **({"annotations": READY} if plan.awaited else {})}


def node_pool_spec(plan: GpuPoolPlan, kind: NodeTypePlan) -> dict[str, Any]:
    """NodePool.spec: one type, one kind of capacity, and never a disruption under a running
    gang."""
    return {
        **_size(plan, kind),
        "template": {
            "metadata": {
                "labels": {
                    NODES_FOR: "training",
                    POOL: plan.name,
                    **({LABEL: FAMILY} if is_bottlerocket(plan.ami) else {}),
                    # Drivers and a plugin of devices are there.
                    **(gpu_operator.OFF if kind.gpus else {}),
                }
            },
            "spec": {
                "nodeClassRef": {
                    "group": "karpenter.k8s.aws",
                    "kind": "EC2NodeClass",
                    "name": kind.name,
                },
                "requirements": _requirements(plan, kind),
                "taints": [
                    {
                        "key": GPU if kind.gpus else POOL,
                        "value": TAINT_VALUE,
                        "effect": "NoSchedule",
                    }
                ],
                "expireAfter": "Never",  # the default of 720h kills long runs
                **(
                    {"terminationGracePeriod": f"{plan.drain_minutes}m"}
                    if plan.drain_minutes
                    else {}
                ),
            },
        },
        "disruption": {
            "consolidationPolicy": "WhenEmpty",
            "consolidateAfter": f"{EMPTY_NODE_MINUTES}m",
            "budgets": [
                {"nodes": "0", "reasons": ["Drifted", "Underutilized"]},
                {"nodes": "100%", "reasons": ["Empty"]},
            ],
        },
    }


def _size(plan: GpuPoolPlan, kind: NodeTypePlan) -> dict[str, Any]:
    """Number of nodes, and the order in which Karpenter tries NodePools. With `replicas` the CRD
    takes no limit but that of nodes, and no weight.

    For pods that come at once, Karpenter subtracts from a limit what an instance type has of it, and no type
    has nodes: it launches more than max_nodes unless GPUs or vCPUs are limited, too (kubernetes-sigs/karpenter
    1.14.1 and 1.15.0, scheduling/scheduler.go, subtractMax; #2657). Limits are no part of what makes nodes
    drift (NodePool.Hash)."""
    limits = {"nodes": str(plan.max_nodes)}
    if plan.replicas is not None:
        return {"limits": limits, "replicas": plan.replicas}
    resource, of_node = (GPU, kind.gpus) if kind.gpus else ("cpu", kind.vcpus)
    limits[resource] = str(plan.max_nodes * of_node)
    return {"limits": limits, **({} if kind.weight is None else {"weight": kind.weight})}


def _requirements(plan: GpuPoolPlan, kind: NodeTypePlan) -> list[dict[str, Any]]:
    """Requirements on the nodes that Karpenter may launch: label of the node → values that it may
    have."""
    labels = {
        "node.kubernetes.io/instance-type": [kind.instance_type],
        "topology.kubernetes.io/zone": list(plan.zones),
        "karpenter.sh/capacity-type": [plan.capacity_type],
        "kubernetes.io/arch": ["amd64"],
        "kubernetes.io/os": ["linux"],
    }
    return [{"key": label, "operator": "In", "values": values} for label, values in labels.items()]
