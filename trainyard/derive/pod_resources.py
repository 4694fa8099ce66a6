"""Requests of a job's pod to its node: devices, vCPUs, memory. Which nodes it may run on, and how
many such pods a node takes.

A pod that requests nothing is the first that kubelet kills and the last that gets CPU (Kubernetes,
Pod Quality of Service Classes: BestEffort). So every pod requests its share of the node.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from trainyard.catalog.aws.instances import InstanceType
from trainyard.objects.jobs.pod_template import EFA, GPU, POOL
from trainyard.settings.job import JobConfig
from trainyard.settings.pools import PoolConfig

NODE_PERCENT = 90
"""Part of a node's vCPUs and memory that the pods of a job request by default."""
DAEMON_MILLICPUS, DAEMON_MIB = 500, 1024
"""Resources that no pod of a job can have: the requests of the DaemonSets (VPC CNI, kube-proxy, Pod
Identity agent, CSI drivers, device plugins), rounded up."""
SHARED_MEMORY_GIB = 64
"""Size of /dev/shm by default, where the pod has twice as much memory."""


def devices(job: JobConfig, kind: InstanceType) -> dict[str, int]:
    """GPUs and EFA devices of a pod; on a CPU node its vCPUs.

    A pod of a gang without the node's EFA devices falls back to TCP, silently; one node needs no
    fabric.
    """
    if not kind.gpus:
        return {"cpu": job.cpus_per_node or cpu_node_cpus(kind)}
    gpus = kind.gpus if job.gpus_per_node is None else job.gpus_per_node
    return ({GPU: gpus} if gpus else {}) | ({EFA: kind.efa} if kind.efa and job.nodes > 1 else {})


def cpus(job: JobConfig, kinds: Sequence[InstanceType]) -> int | None:
    """vCPUs that a pod requests on GPU nodes; None on CPU nodes, where `devices` says them. `kinds`:
    the types that its pool may launch."""
    if not kinds[0].gpus:
        return None
    return job.cpus_per_node or _least(job, kinds, node_cpus)


def processes(job: JobConfig, kinds: Sequence[InstanceType]) -> int | str:
    """Number of ranks of a pod, or auto: one for each GPU."""
    if job.processes_per_node == "cpu":
        return cpus(job, kinds) or devices(job, kinds[0])["cpu"]
    return "auto" if job.processes_per_node == "gpu" else job.processes_per_node


def memory_gib(job: JobConfig, kinds: Sequence[InstanceType]) -> int:
    """Memory of a pod, in GiB."""
    return job.memory_gib or _least(job, kinds, node_memory_gib)


def shared_memory_gib(job: JobConfig, kinds: Sequence[InstanceType]) -> int:
    """Size of /dev/shm, in GiB."""
    return job.shared_memory_gib or max(1, min(SHARED_MEMORY_GIB, memory_gib(job, kinds) // 2))


def node_cpus(kind: InstanceType) -> int:
    """vCPUs that pods may request on a node, in all."""
    return int(node_amount(kind, "cpu"))


def cpu_node_cpus(kind: InstanceType) -> int:
    """vCPUs that a pod of a CPU node has at most: all but one, for kubelet and the DaemonSets. Of 384 vCPUs
    kubelet alone keeps more than one (Karpenter's types.go, 1.14.1)."""
    return min(kind.vcpus - 1, kind.allocatable_millicpus // 1000)


def node_memory_gib(kind: InstanceType) -> int:
    """Memory that pods may request on a node, in all, in GiB."""
    return int(node_amount(kind, "memory"))


def node_amount(kind: InstanceType, resource: str) -> Fraction:
    """Most of a resource that pods may request on a node, in all: vCPUs, GiB or devices. 0 for what
    nodes do not have, such as hugepages: no node is set up for them, and Karpenter launches none
    for a pod that requests them (aws/karpenter-provider-aws#3315)."""
    if resource == "cpu":
        return Fraction(kind.allocatable_millicpus - DAEMON_MILLICPUS, 1000)
    if resource == "memory":
        return Fraction(kind.allocatable_mib - DAEMON_MIB, 1024)
    return Fraction(kind.efa if resource == EFA else 0)


def node_disk_gib(kind: InstanceType, pool: PoolConfig) -> Fraction:
    """Most ephemeral storage that pods may request on a node, in all: of its NVMe disks, or else of its
    root volume. kubelet keeps 1 GiB and a tenth (karpenter-provider-aws v1.14.1, instancetype/types.go:
    ephemeralStorage, kubeReservedResources, evictionThreshold)."""
    size = Fraction(kind.nvme_gb * 10**9, 2**30) if kind.nvme_gb else pool.root_volume_gib
    return size * Fraction(9, 10) - 1


def node_selector(name: str, pool: PoolConfig, zone: str, *, has_workers: bool) -> dict[str, str]:
    """Node selector of a pool's jobs: the pool, and of it one type in one zone where it has no
    more. A worker has a zone of its own, and its pool of that name launches nodes there."""
    kind = (
        {"node.kubernetes.io/instance-type": pool.instance_types[0]}
        if len(pool.instance_types) == 1
        else {}
    )
    several = pool.fallback_zones or has_workers
    zones = {} if several else {"topology.kubernetes.io/zone": zone}
    return {POOL: name, **kind, **zones}


def pods_per_node(job: JobConfig, kind: InstanceType) -> int:
    """Number of pods of the job that fit on a node of the type; 0 where none does."""
    wanted = devices(job, kind)
    fits = [node_memory_gib(kind) // memory_gib(job, [kind])]
    if kind.gpus:
        fits += [kind.gpus // wanted[GPU]] if GPU in wanted else []
        fits += [node_cpus(kind) // (cpus(job, [kind]) or 1)]
    else:
        fits += [cpu_node_cpus(kind) // wanted["cpu"]]
    if EFA in wanted:
        fits += [kind.efa // wanted[EFA]]
    return min(fits)


def _least(
    job: JobConfig, kinds: Sequence[InstanceType], of_node: Callable[[InstanceType], int]
) -> int:
    """The pod's share of a node, of the type that has least."""
    return max(1, min(_share(job, kind, of_node(kind)) for kind in kinds))


def _share(job: JobConfig, kind: InstanceType, whole: int) -> int:
    usual = whole * NODE_PERCENT // 100
    if not kind.gpus:
        return usual * devices(job, kind)["cpu"] // cpu_node_cpus(kind)
    return usual * (job.gpus_per_node or kind.gpus) // kind.gpus
