"""Instance types for training, as facts. A new type is a new row here and a run of `python -m
trainyard.catalog.refresh`.

Sources: EC2 DescribeInstanceTypes (as shipped in moto 5.2.5, 2026-10), which
tests/trainyard/catalog/aws/test_instances.py compares field by field; RDMA from aws-ofi-nccl's platform table
(src/platform-aws.cpp, 2026-08-21); NVLink from awsome-distributed-training's efa-cheatsheet
(2025-08-31); AMX from Intel: Sapphire and Granite Rapids have it, which 7i and 8i are. Of g7 no table
names RDMA: a public record of two g7.48xlarge (2026-09-10, NCCL 2.30.4, aws-ofi-nccl 1.19.0) has
"GDR 0" in NCCL's log. Its cards need driver 595, which the EKS AMIs have beside 580 since
v20260917 and choose at the first boot (amazon-eks-ami#2768).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True, kw_only=True)
class InstanceType:
    """One instance type."""

    name: str
    gpu: str
    """Karpenter's `instance-gpu-name`, lower case; empty where there is none."""
    gpus: int
    gpu_memory_mib: int
    """Memory of one GPU."""
    nvlink: bool
    gpudirect: bool
    """GPUDirect RDMA over EFA."""
    efa: int
    """EFA devices at most: what a node gets from us, and what a whole-node pod asks for."""
    cards: int
    """Network cards. One more than `efa` means that card 0 takes no EFA."""
    network_gbps: float
    """All cards together; the baseline where AWS says "up to"."""
    card_gbps: float
    """Card 0, which carries all that is not EFA."""
    interfaces: int
    """Network interfaces that card 0 takes; the VPC CNI uses no other card."""
    addresses_per_interface: int
    """IPv4 addresses that an interface holds, its own among them."""
    vcpus: int
    memory_mib: int
    nvme_gb: int
    capacity_block: bool
    """Sold as Capacity Block for ML."""
    spot: bool
    amx: bool = False
    """Intel AMX, for training on CPUs; not recorded for types with GPUs."""
    architecture: str = "amd64"

    @property
    def profiles_itself(self) -> bool:
        """DCGM reads the profiling fields of its GPUs from the driver. Of older ones it needs a library, which the
        DCGM of EKS's node monitoring agent lacks (Ampere and Ada; docs.nvidia.com, DCGM, Profiling: GPM from Hopper
        on; eks-node-monitoring-agent 1.7.0, Dockerfile, copies no libnvperf)."""
        return self.gpu not in ("a10g", "a100", "l4", "l40s")

    @property
    def family(self) -> str:
        """Text before the dot of an instance type, such as p5."""
        return self.name.partition(".")[0]

    @property
    def quota(self) -> str:
        """The Service Quotas family its vCPUs count against: a key of QUOTAS."""
        return {"p": "P", "g": "G"}.get(self.name[0], "standard")

    @property
    def spot_quota(self) -> str | None:
        """The Service Quotas code for spot; None for p6, of which public text says two different
        ones."""
        return quota_of(self.name, "spot")

    @property
    def max_pods(self) -> int:
        """Karpenter's figure on our nodes, where an efa-only interface takes one of card 0 (its
        ENILimitedPods)."""
        return self._pods(self.pod_interfaces)

    @property
    def pod_interfaces(self) -> int:
        """Interfaces of card 0 that can have addresses on our nodes, the node's own among them: an efa-only one
        takes one of card 0, where that has EFA."""
        return self.interfaces - (1 if self.efa and self.efa == self.cards else 0)

    @cached_property
    def allocatable_mib(self) -> int:
        """Memory a pod may request, by Karpenter's estimate until the first node has joined: 7.5 %
        is held back for the hypervisor, then kubelet's 11 MiB a pod and 255 MiB, and 100 MiB for
        eviction (its types.go, 1.14.1)."""
        held_back = math.ceil(self.memory_mib * 0.075)
        return self.memory_mib - held_back - 11 * self._pods(self.interfaces) - 355

    @cached_property
    def allocatable_millicpus(self) -> int:
        """CPU a pod may request, in thousandths of a vCPU."""
        return allocatable_millicpus(self.vcpus)

    def _pods(self, interfaces: int) -> int:
        return interfaces * (self.addresses_per_interface - 1) + 2


def allocatable_millicpus(vcpus: int) -> int:
    """CPU that pods may request on a node, in thousandths of a vCPU: less what kubelet keeps, which is 6 % of
    the first vCPU, 1 % of the second, 0.5 % of the next two and 0.25 % of the rest (Karpenter's
    types.go, 1.14.1)."""
    steps = ((1, 60.0), (1, 10.0), (2, 5.0), (math.inf, 2.5))
    kept, left = 0.0, float(vcpus)
    for most, millicpus in steps:
        kept += min(left, most) * millicpus
        left = max(0.0, left - most)
    return vcpus * 1000 - math.ceil(kept)


# links: between GPUs, and RDMA to other nodes. card-0, ENIs and IPs: Gb/s, interfaces and addresses
# of card 0.
_GPU = """
type             gpu                 n    MiB links       efa cards Gb/s card-0 ENIs IPs vCPUs  GiB  NVMe sold
g5.xlarge        a10g                1  22888 -             0     1  2.5    2.5    4  15     4   16   250 spot
g5.2xlarge       a10g                1  22888 -             0     1    5      5    4  15     8   32   450 spot
g5.4xlarge       a10g                1  22888 -             0     1   10     10    8  30    16   64   600 spot
g5.8xlarge       a10g                1  22888 -             1     1   25     25    8  30    32  128   900 spot
g5.12xlarge      a10g                4  22888 -             1     1   40     40   15  50    48  192  3800 spot
g5.16xlarge      a10g                1  22888 -             1     1   25     25    8  30    64  256  1900 spot
g5.24xlarge      a10g                4  22888 -             1     1   50     50   15  50    96  384  3800 spot
g5.48xlarge      a10g                8  22888 -             1     1  100    100    7  50   192  768  7600 spot
g6.xlarge        l4                  1  22888 -             0     1  2.5    2.5    4  15     4   16   250 spot
g6.2xlarge       l4                  1  22888 -             0     1    5      5    4  15     8   32   450 spot
g6.4xlarge       l4                  1  22888 -             0     1   10     10    8  30    16   64   600 spot
g6.8xlarge       l4                  1  22888 -             1     1   25     25    8  30    32  128   900 spot
g6.12xlarge      l4                  4  22888 -             1     1   40     40    8  30    48  192  3760 spot
g6.16xlarge      l4                  1  22888 -             1     1   25     25   15  50    64  256  1880 spot
g6.24xlarge      l4                  4  22888 -             1     1   50     50   15  50    96  384  3760 spot
g6.48xlarge      l4                  8  22888 -             1     1  100    100   15  50   192  768  7520 spot
g6e.xlarge       l40s                1  45776 -             0     1  2.5    2.5    4  15     4   32   250 spot
g6e.2xlarge      l40s                1  45776 -             0     1    5      5    4  15     8   64   450 spot
g6e.4xlarge      l40s                1  45776 -             0     1   20     20    8  30    16  128   600 spot
g6e.8xlarge      l40s                1  45776 -             1     1   25     25    8  30    32  256   900 spot
g6e.12xlarge     l40s                4  45776 -             1     1  100    100   10  30    48  384  3800 spot
g6e.16xlarge     l40s                1  45776 -             1     1   35     35   15  50    64  512  1900 spot
g6e.24xlarge     l40s                4  45776 -             2     2  200    200   10  50    96  768  3800 spot
g6e.48xlarge     l40s                8  45776 -             4     4  400    400   10  50   192 1536  7600 spot
g7.2xlarge       rtx-pro-4500        1  32768 -             0     1   40     40    4  64     8   32   440 spot
g7.4xlarge       rtx-pro-4500        1  32768 -             0     1   80     80    8  64    16   64   875 spot
g7.8xlarge       rtx-pro-4500        1  32768 -             1     1  100    100   10  64    32  128   930 spot
g7.12xlarge      rtx-pro-4500        2  32768 -             1     1  175    175   12  64    48  192  1900 spot
g7.24xlarge      rtx-pro-4500        4  32768 -             1     1  350    350   24  64    96  384  3800 spot
g7.48xlarge      rtx-pro-4500        8  32768 -             2     2  700    350   12  64   192  768  7600 spot
g7e.2xlarge      rtx-pro-server-6000 1  98304 -             0     1   50     50    4  64     8   64  1900 spot
g7e.4xlarge      rtx-pro-server-6000 1  98304 -             0     1   50     50    8  64    16  128  1900 spot
g7e.8xlarge      rtx-pro-server-6000 1  98304 -             1     1  100    100    8  64    32  256  1900 spot
g7e.12xlarge     rtx-pro-server-6000 2  98304 rdma          1     1  400    400   10  64    48  512  3800 spot
g7e.24xlarge     rtx-pro-server-6000 4  98304 rdma          2     2  800    400   10  64    96 1024  7600 spot
g7e.48xlarge     rtx-pro-server-6000 8  98304 rdma          4     4 1600    400   10  64   192 2048 15200 spot
p4d.24xlarge     a100                8  40960 nvlink+rdma   4     4  400    100   15  50    96 1152  8000 spot,block
p4de.24xlarge    a100                8  81920 nvlink+rdma   4     4  400    100   15  50    96 1152  8000 spot,block
p5.4xlarge       h100                1  81920 -             1     1  100    100    4  30    16  256  3800 spot,block
p5.48xlarge      h100                8  81920 nvlink+rdma  32    32 3200    100    2  50   192 2048 30400 spot,block
p5e.48xlarge     h200                8 144384 nvlink+rdma  32    32 3200    100    2  50   192 2048 30400 spot,block
p5en.48xlarge    h200                8 144384 nvlink+rdma  16    16 3200    200    4  50   192 2048 30400 spot,block
p6-b200.48xlarge b200                8 183359 nvlink+rdma   8     8 3200    200    4  50   192 2048 30400 spot,block
p6-b300.48xlarge b300                8 275040 nvlink+rdma  16    17 6400    350    4  50   192 4096 30400 spot,block
"""

_CPU = """
type         efa  Gb/s ENIs IPs vCPUs  GiB sold
c7i.4xlarge    0  6.25    8  30    16   32 spot
c7i.8xlarge    0  12.5    8  30    32   64 spot
c7i.12xlarge   0 18.75    8  30    48   96 spot
c7i.16xlarge   0    25   15  50    64  128 spot
c7i.24xlarge   0  37.5   15  50    96  192 spot
c7i.48xlarge   1    50   15  50   192  384 spot
m7i.4xlarge    0  6.25    8  30    16   64 spot
m7i.8xlarge    0  12.5    8  30    32  128 spot
m7i.12xlarge   0 18.75    8  30    48  192 spot
m7i.16xlarge   0    25   15  50    64  256 spot
m7i.24xlarge   0  37.5   15  50    96  384 spot
m7i.48xlarge   1    50   15  50   192  768 spot
r7i.4xlarge    0  6.25    8  30    16  128 spot
r7i.8xlarge    0  12.5    8  30    32  256 spot
r7i.12xlarge   0 18.75    8  30    48  384 spot
r7i.16xlarge   0    25   15  50    64  512 spot
r7i.24xlarge   0  37.5   15  50    96  768 spot
r7i.48xlarge   1    50   15  50   192 1536 spot
c8i.8xlarge    0    15   10  50    32   64 spot
c8i.16xlarge   0    30   16  64    64  128 spot
c8i.24xlarge   0    40   16  64    96  192 spot
c8i.32xlarge   0    50   24  64   128  256 spot
c8i.48xlarge   1    75   24  64   192  384 spot
c8i.96xlarge   1   100   24  64   384  768 spot
m8i.8xlarge    0    15   10  50    32  128 spot
m8i.16xlarge   0    30   16  64    64  256 spot
m8i.24xlarge   0    40   16  64    96  384 spot
m8i.32xlarge   0    50   24  64   128  512 spot
m8i.48xlarge   1    75   24  64   192  768 spot
m8i.96xlarge   1   100   24  64   384 1536 spot
"""


def _rows(table: str) -> Iterator[dict[str, str]]:
    header, *rows = (line.split() for line in table.strip().splitlines())
    return (dict(zip(header, row, strict=True)) for row in rows)


def _read(row: dict[str, str]) -> InstanceType:
    """A type from its row; what a row leaves out is what a type with one card and no GPU has."""
    return InstanceType(
        name=row["type"],
        gpu=row.get("gpu", ""),
        gpus=int(row.get("n", 0)),
        gpu_memory_mib=int(row.get("MiB", 0)),
        nvlink="nvlink" in row.get("links", ""),
        gpudirect="rdma" in row.get("links", ""),
        efa=int(row["efa"]),
        cards=int(row.get("cards", 1)),
        network_gbps=float(row["Gb/s"]),
        card_gbps=float(row.get("card-0", row["Gb/s"])),
        interfaces=int(row["ENIs"]),
        addresses_per_interface=int(row["IPs"]),
        vcpus=int(row["vCPUs"]),
        memory_mib=int(row["GiB"]) * 1024,
        nvme_gb=int(row.get("NVMe", 0)),
        capacity_block="block" in row["sold"],
        spot="spot" in row["sold"],
        amx="gpu" not in row,
    )


GPU_TYPES: dict[str, InstanceType] = {row["type"]: _read(row) for row in _rows(_GPU)}
CPU_TYPES: dict[str, InstanceType] = {row["type"]: _read(row) for row in _rows(_CPU)}
TYPES: dict[str, InstanceType] = {**GPU_TYPES, **CPU_TYPES}
"""Instance types that a pool may be made of."""
# Families: sizes, of which 4 is 4xlarge and 1 is xlarge.
_GENERAL = """
m8i m8ib m8id m8idb m8idn m8in r8i r8ib r8id r8idb r8idn r8in: large 1 2 4 8 12 16 24 32 48 96 metal-48xl metal-96xl
i4i m6i m6id m6idn m6in r6i r6id r6idn r6in: large 1 2 4 8 12 16 24 32 metal
m5 m5d m5dn m5n r5 r5b r5d r5dn r5n: large 1 2 4 8 12 16 24 metal
i7i m7i m8a r7i r8a: large 1 2 4 8 12 16 24 48 metal-24xl metal-48xl
c8i c8ib c8id c8in: 1 2 4 8 12 16 24 32 48 96 metal-48xl metal-96xl
m5a m5ad r5a r5ad: large 1 2 4 8 12 16 24
c6i c6id c6in: 1 2 4 8 12 16 24 32 metal
d2 d3 i2: 1 2 4 8
m7i-flex m8i-flex r8i-flex: large 1 2 4 8 12 16
t2 t3 t3a: large 1 2
c3 c4: 2 4 8
c5 c5d: 1 2 4 9 12 18 24 metal
c5a c5ad: 1 2 4 8 12 16 24
c7i-flex c8i-flex: 1 2 4 8 12 16
c7i c8a: 1 2 4 8 12 16 24 48 metal-24xl metal-48xl
i3 r4: large 1 2 4 8 16
m5zn z1d: large 1 2 3 6 12 metal
m6a r6a: large 1 2 4 8 12 16 24 32 48 metal
m7a r7a: large 1 2 4 8 12 16 24 32 48 metal-48xl
m8azn x8aedz: large 1 3 6 12 24 metal-12xl metal-24xl
c5n: 1 2 4 9 18 metal
c6a: 1 2 4 8 12 16 24 32 48 metal
c7a: 1 2 4 8 12 16 24 32 48 metal-48xl
c8ine: 1 2 4 8 12
d3en: 1 2 4 6 8 12
h1: 2 4 8 16
i3en: large 1 2 3 6 12 24 metal
i7ie: large 1 2 3 6 12 18 24 48 metal-24xl metal-48xl
m4: large 1 2 4 10 16
m8ine: large 1 2 4 8 12
r3: large 1 2 4 8
r7iz: large 1 2 4 8 12 16 32 metal-16xl metal-32xl
x1: 16 32
x1e: 1 2 4 8 16 32
x2idn: 16 24 32 metal
x2iedn: 1 2 4 8 16 24 32 metal
x2iezn: 2 4 6 8 12 metal
x8i: large 1 2 4 8 12 16 24 32 48 64 96 metal-48xl metal-96xl
"""
GENERAL_SIZES: dict[str, tuple[str, ...]] = {
    family: tuple(re.sub(r"^(?:1|(\d+))$", r"\1xlarge", size) for size in sizes.split())
    for families, _, sizes in (line.partition(": ") for line in _GENERAL.strip().splitlines())
    for family in families.split()
}
"""Family of x86 instances without accelerators → its sizes with at least 2 vCPUs and 8 GiB, the smallest
first. Controllers can run on them."""
STANDARD = re.compile(r"[acdhimrtz][3-9][^.]*\.(?:large|(\d*)xlarge)")
"""Types that count against Standard instances and have 4 vCPUs an xlarge, 2 a large (all but
c4.8xlarge, with 36)."""


def standard_vcpus(instance_type: str) -> int | None:
    """vCPUs of a type of STANDARD; None for another one."""
    return _by_size(instance_type) if STANDARD.fullmatch(instance_type) else None


def default_vcpus(instance_type: str) -> int:
    """vCPUs of any type of EC2 without CPU options; 0 where its name does not tell."""
    if kind := TYPES.get(instance_type):
        return kind.vcpus
    return _by_size(instance_type) or 0


def _by_size(instance_type: str) -> int | None:
    """vCPUs by the size in a type's name: 4 an xlarge, 2 a large; None for another size."""
    sized = re.fullmatch(r"[^.]+\.(?:large|(\d*)xlarge)", instance_type)
    if sized is None:
        return None
    return 2 if sized[1] is None else 4 * int(sized[1] or 1)


REFUSED: dict[str, str] = {
    "trn": (
        "Trainium runs Neuron, not CUDA images and the NVIDIA plugin; nearest with GPUs:"
        " p5.48xlarge, p4d.24xlarge"
    ),
    "inf": "Inferentia is for inference and runs Neuron; smallest with a GPU and EFA: g6.8xlarge",
    "dl": (
        "Gaudi and Cloud AI 100 run SynapseAI and Qualcomm's SDK, not CUDA; nearest with GPUs:"
        " p4d.24xlarge"
    ),
    "p6e-gb": (
        "GB200 comes as UltraServers of arm64 nodes, which Karpenter 1.14 does not launch; use"
        " p6-b200.48xlarge"
    ),
    "g5g": "Graviton with T4G is arm64, and training images are amd64; use g5 or g6",
    "g4dn": "T4 computes no bf16; use g5 or g6",
    "g6f": "a pod would have a part of an L4; the smallest whole one is g6.xlarge",
    "gr6": "it is g6 with more memory, and no row of the catalogue; use g6.8xlarge or g6e.4xlarge",
    "p3": "V100 is left out of CUDA 13, and computes no bf16; use p4d.24xlarge or g6e",
    "p2": "K80 is left out of CUDA since 12; use g5 or g6",
    "g3": "M60 is left out of CUDA 13; use g5 or g6",
    "g4ad": "AMD Radeon Pro runs no CUDA and no ROCm training stack; use g5 or g6",
}
"""Start of a type's name → why it is none of ours, and what to take."""

QUOTAS: dict[str, str] = {"P": "L-417A185B", "G": "L-DB2E81BA", "standard": "L-1216C47A"}
"""Family → Service Quotas code of "Running On-Demand … instances", in vCPUs (service code ec2)."""
SPOT_QUOTAS: dict[str, str] = {
    "P": "L-7212CCBC",
    "P5": "L-C4BD4855",
    "G": "L-3819A6DF",
    "standard": "L-34B43A08",
}
"""Family → code of "All … Spot Instance Requests": P is P4, P3 and P2 (listings of live accounts,
2026-11-21)."""
_QUOTA_FAMILIES = {
    "p": "P",
    **dict.fromkeys(("g", "gr", "vt"), "G"),
    **dict.fromkeys(("a", "c", "d", "h", "i", "im", "is", "m", "r", "t", "z"), "standard"),
}
"""Letters before the generation of a type → family of QUOTAS, by the names of the quotas (EC2 user guide,
ec2-on-demand-instances and using-spot-limits). Others, such as inf, trn, dl, f, x, u, hpc and mac, have
quotas of their own."""


def quota_of(instance_type: str, lifecycle: str = "") -> str | None:
    """The Service Quotas code that an instance counts against, any type of EC2; None for a Capacity Block, for a
    type with a quota that no pool takes from, and where unknown. `lifecycle`: as EC2 describes the instance."""
    named = re.match("[a-z]*", instance_type)
    family = _QUOTA_FAMILIES.get(named[0] if named else "")
    if family is None or lifecycle not in ("", "spot"):
        return None
    if not lifecycle:
        return QUOTAS[family]
    if family != "P":
        return SPOT_QUOTAS[family]
    spot = {"p2": "P", "p3": "P", "p4": "P", "p5": "P5"}.get(instance_type[:2])
    return spot and SPOT_QUOTAS[spot]


ADDRESS_QUOTA = "L-0263D0A3"
"""Service Quotas code of "EC2-VPC Elastic IPs" in a region (service code ec2; 5 in a new account)."""
QUOTA_NAMES: dict[str, str] = {
    QUOTAS["P"]: "Running On-Demand P instances",
    QUOTAS["G"]: "Running On-Demand G and VT instances",
    QUOTAS["standard"]: "Running On-Demand Standard instances",
    SPOT_QUOTAS["P"]: "All P4, P3 and P2 Spot Instance Requests",
    SPOT_QUOTAS["P5"]: "All P5 Spot Instance Requests",
    SPOT_QUOTAS["G"]: "All G and VT Spot Instance Requests",
    SPOT_QUOTAS["standard"]: "All Standard Spot Instance Requests",
}
"""Service Quotas code → the name that its console shows; "Standard" is A, C, D, H, I, M, R, T and
Z."""


def first_type(names: Sequence[str]) -> InstanceType | None:
    """The first type of a pool; None where there is no such type."""
    return TYPES.get(names[0]) if names else None
