"""GPU instance types for training, as facts. A new type is a new row here and in zones.py.

Sources: EC2 DescribeInstanceTypes (as shipped in moto 5.2.5); allocatable memory and max pods from Karpenter 1.14.1's
reference/instance-types page, which is what its scheduler believes until the first node of a type has joined.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class InstanceType:
    """One GPU instance type."""

    gpu: str
    """Karpenter's `instance-gpu-name`, lower case."""
    gpus: int
    efa: int
    """EFA devices at most: what a node gets from us, and what a whole-node pod asks for."""
    cards: int
    """Network cards. One more than `efa` means that card 0 takes no EFA."""
    vcpus: int
    memory_mib: int
    allocatable_mib: int
    """Memory a pod may request, by Karpenter's estimate."""
    nvme_gb: int
    nvlink: bool
    gpudirect: bool
    """GPUDirect RDMA over EFA: P-series from p4d only (aws-ofi-nccl#547)."""
    quota: str
    """The Service Quotas family the vCPUs count against: "P" or "G"."""


INSTANCE_TYPES: dict[str, InstanceType] = {
    "g5.48xlarge": InstanceType(
        gpu="a10g", gpus=8, efa=1, cards=1, vcpus=192, memory_mib=786432, allocatable_mib=721682,
        nvme_gb=7600, nvlink=False, gpudirect=False, quota="G"),
    "g6.48xlarge": InstanceType(
        gpu="l4", gpus=8, efa=1, cards=1, vcpus=192, memory_mib=786432, allocatable_mib=721682,
        nvme_gb=7520, nvlink=False, gpudirect=False, quota="G"),
    "g6e.12xlarge": InstanceType(
        gpu="l40s", gpus=4, efa=1, cards=1, vcpus=48, memory_mib=393216, allocatable_mib=360157,
        nvme_gb=3800, nvlink=False, gpudirect=False, quota="G"),
    "g6e.24xlarge": InstanceType(
        gpu="l40s", gpus=4, efa=2, cards=2, vcpus=96, memory_mib=786432, allocatable_mib=721682,
        nvme_gb=3800, nvlink=False, gpudirect=False, quota="G"),
    "g6e.48xlarge": InstanceType(
        gpu="l40s", gpus=8, efa=4, cards=4, vcpus=192, memory_mib=1572864, allocatable_mib=1449132,
        nvme_gb=7600, nvlink=False, gpudirect=False, quota="G"),
    "p4d.24xlarge": InstanceType(
        gpu="a100", gpus=8, efa=4, cards=4, vcpus=96, memory_mib=1179648, allocatable_mib=1082712,
        nvme_gb=8000, nvlink=True, gpudirect=True, quota="P"),
    "p4de.24xlarge": InstanceType(
        gpu="a100", gpus=8, efa=4, cards=4, vcpus=96, memory_mib=1179648, allocatable_mib=1082712,
        nvme_gb=8000, nvlink=True, gpudirect=True, quota="P"),
    "p5.48xlarge": InstanceType(
        gpu="h100", gpus=8, efa=32, cards=32, vcpus=192, memory_mib=2097152, allocatable_mib=1938410,
        nvme_gb=30400, nvlink=True, gpudirect=True, quota="P"),
    "p5e.48xlarge": InstanceType(
        gpu="h200", gpus=8, efa=32, cards=32, vcpus=192, memory_mib=2097152, allocatable_mib=1938410,
        nvme_gb=30400, nvlink=True, gpudirect=True, quota="P"),
    "p5en.48xlarge": InstanceType(
        gpu="h200", gpus=8, efa=16, cards=16, vcpus=192, memory_mib=2097152, allocatable_mib=1937332,
        nvme_gb=30400, nvlink=True, gpudirect=True, quota="P"),
    "p6-b200.48xlarge": InstanceType(
        gpu="b200", gpus=8, efa=8, cards=8, vcpus=192, memory_mib=2097152, allocatable_mib=1937332,
        nvme_gb=30400, nvlink=True, gpudirect=True, quota="P"),
    "p6-b300.48xlarge": InstanceType(
        gpu="b300", gpus=8, efa=16, cards=17, vcpus=192, memory_mib=4194304, allocatable_mib=3877198,
        nvme_gb=30400, nvlink=True, gpudirect=True, quota="P"),
}
