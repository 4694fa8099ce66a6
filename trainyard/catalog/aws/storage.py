"""Sizes and speeds that FSx for Lustre and EFS sell.

Sources: FSx for Lustre user guide (FSX), EFS user guide (EFS), the FSx API as botocore 1.44.5
documents it (API), and one published measurement on p5 of 2026-08-27 (P5). Each is named beside
its row.
"""

from __future__ import annotations

from dataclasses import dataclass

GIB = 2**30
GP3_INCLUDED_IOPS, GP3_INCLUDED_MBPS = 3000, 125
"""Speed of every gp3 volume for the price of its size (EBS user guide, general-purpose)."""
CHECKPOINT_BYTES_PER_PARAMETER = 12
"""fp32 weights and Adam's two moments, unless a stack file says otherwise."""


@dataclass(frozen=True, kw_only=True)
class Driver:
    """CSI driver by which pods reach a kind of store. Each kind has its own: trainyard/stores/."""

    name: str
    """Name of the CSI driver."""
    add_on: str
    """The EKS add-on that brings it."""
    attributes: tuple[str, ...] = ()
    """Attributes that a PersistentVolume must have beside the handle, for volumes that the driver
    did not make."""
    service_account: str = ""
    """ServiceAccount of the pods that call AWS for it, in kube-system; empty where mounting takes
    no permission of IAM."""
    configuration: str | None = None
    """Values of the add-on, as JSON."""
    apis: tuple[str, ...] = ()
    """AWS APIs that it calls, beside S3, as trainyard/catalog/aws/endpoints.py names them."""
    kernels: tuple[str, ...] = ()
    """Kernels of AL2023 with the client by which it mounts; empty where every kernel has it."""


@dataclass(frozen=True, kw_only=True)
class Speed:
    """Bytes per second, each way."""

    write: float
    read: float


LUSTRE_KERNELS = ("6.1", "6.12", "6.18")
"""Kernels of AL2023 that have the Lustre client, in version 2.15 (FSx, lustre-client-matrix, read 2026-11)."""
LUSTRE_TIERS = (125, 250, 500, 1000)
"""MB/s per TiB that FSx sells for PERSISTENT_2 (API PerUnitStorageThroughput)."""
LUSTRE_SMALLEST_GIB, LUSTRE_STEP_GIB = 1200, 2400
LUSTRE_SIZES = f"{LUSTRE_SMALLEST_GIB} or a multiple of {LUSTRE_STEP_GIB}"
"""SCRATCH_2 and PERSISTENT_2 on SSD: the smallest, or a multiple of the step (API StorageCapacity).
As sold with EFA: LUSTRE_EFA_STEP_GIB."""
LUSTRE_QUOTAS = {"PERSISTENT_2": "L-8F1B9C74", "SCRATCH_2": "L-AD2FC696"}
"""Deployment → Service Quotas code of the GiB of all such file systems of an account in a region (service code
fsx): "Lustre Persistent_2 storage capacity" and "Lustre Scratch storage capacity"."""
LUSTRE_QUOTA_GIB = 100_800
"""GiB of each of LUSTRE_QUOTAS by default (AWS General Reference, fsxn; listings of live accounts, 2025)."""
LUSTRE_EFA_STEP_GIB: dict[int, int] = {125: 38400, 250: 19200, 500: 9600, 1000: 4800}
"""Tier → GiB that an EFA file system is a multiple of, set at creation together with the tier (FSX
efa-file-systems, 2026-08-01).

EFA on Lustre also needs the deployment PERSISTENT_2, a metadata configuration (AUTOMATIC, or 6000
IOPS at least), all clients in its zone and /16, security group rules by group id for all traffic in
both directions, and at most EFA_CONNECTIONS_AT_MOST connections. It is chosen at creation and never
changed later."""
LUSTRE_SERVER_GIB = 2400
"""GiB that one file server of Lustre serves, at most: each has a network interface, as the metadata
server has. An estimate from LUSTRE_STEP_GIB; AWS says only that there is more than one interface (FSx
API, NetworkInterfaceIds)."""
LUSTRE_USABLE = 0.94
"""Share of the capacity that files can fill: df shows 3,547,698,816 KiB of 3,600 GiB (FSX, mounting
a file system, 2026-11). Above 85 % of that FSx advises to make the file system larger."""
SCRATCH_2_PER_TIB = Speed(write=100e6, read=200e6)
"""Disk speed of a TiB of SCRATCH_2; a TiB of PERSISTENT_2 has its tier, each way (FSX ssd-storage,
2026-08-01)."""

LUSTRE_CLIENT_TCP = Speed(write=2.48e9, read=2.48e9)
"""One node over TCP (P5)."""
LUSTRE_CLIENT_EFA = Speed(write=15.9e9, read=27.8e9)
"""One node over EFA, at 19.2 TiB of tier 1000; of 8 GPUs with GDS 21.6e9 is written (P5)."""
LNET_EFA_DEVICES: dict[str, int] = {
    "p5.48xlarge": 8,
    "p5e.48xlarge": 8,
    "p5en.48xlarge": 8,
    "p6-b200.48xlarge": 8,
    "p6-b300.48xlarge": 16,
}
"""Type → EFA devices that the Lustre client binds, spread evenly over those it has (FSX
configure-efa-clients, 2026-11: the default; it has no other type of this catalogue by name)."""
LNET_PEER_CREDITS = 32
"""Messages that a device has under way to a server (FSX configure-efa-clients, 2026-11)."""
LUSTRE_MODULES = {"ptlrpc": "ptlrpcd_per_cpt_max=64", "ksocklnd": "credits=2560"}
"""Module of the Lustre client → its option: threads for requests, and messages under way over TCP (EKS user
guide, fsx-csi-tuning-non-efa, 2026-11). They count for a module that is loaded afterwards."""
EFA_CONNECTIONS_AT_MOST = 1024
"""Most EFA connections of a file system; each device of each client is one (FSX
configure-efa-clients, 2026-11)."""

EFA_LUSTRE_CLIENTS = frozenset(LNET_EFA_DEVICES)
"""Types that may mount Lustre over EFA: EFA devices on Nitro v4 or later (FSX
configure-efa-clients, 2026-11)."""
EFA_LUSTRE_REFUSED: dict[str, str] = {
    "g6e": (
        "loses packets over EFA and hangs within two minutes of writing (support case, Seoul,"
        " 2026-08-21)"
    ),
    "p4d": "is on Nitro v3, and Lustre over EFA wants v4",
    "p4de": "is on Nitro v3, and Lustre over EFA wants v4",
}
"""family → why it must not. A type in neither table is not known to work."""

BACKUP_DAYS_AT_MOST = 90
"""Automatic backups are kept so long; 0 turns them off, and is FSx's default (API
AutomaticBackupRetentionDays). FSx backs up PERSISTENT_2, and only while no S3 bucket is linked to
the file system: with one, the bucket is the copy (API CreateBackup)."""
REPOSITORIES_AT_MOST = 8
"""S3 links of a file system, each with its own directory and prefix; none on SCRATCH_1. ImportPath,
ExportPath and AutoImportPolicy are refused on PERSISTENT_2 (API CreateDataRepositoryAssociation).
"""

EFS_CLIENT = Speed(write=1500 * 2**20, read=1500 * 2**20)
"""One node, elastic throughput and efs-utils 2.x or the CSI driver (EFS limits, 2026-08-01)."""
EFS_CLIENT_NOT_ELASTIC = Speed(write=500 * 2**20, read=500 * 2**20)
"""One node, provisioned or bursting throughput (EFS limits, 2026-08-01)."""
EFS_READS_PER_WRITE = 3
"""EFS meters a read as a third of a write (EFS performance, provisioned throughput)."""
EFS_MIBPS_AT_MOST = 3414
"""MiB/s that can be provisioned for a file system (EFS API, ProvisionedThroughputInMibps; the
console's range)."""
EFS_MIBPS_REGIONS = frozenset({"us-east-1", "us-east-2", "us-west-2", "eu-west-1"})
EFS_MIBPS_ELSEWHERE = 1024
"""MiB/s that AWS provisions by default outside of EFS_MIBPS_REGIONS, where it is all that the API takes; AWS
Support raises it (EFS user guide, limits, provisioned throughput per file system, read 2026-11)."""
EFS_LARGE_REGIONS = frozenset(
    {
        "us-east-1",
        "us-east-2",
        "us-west-2",
        "ap-northeast-1",
        "ap-northeast-2",
        "ap-south-1",
        "ap-southeast-1",
        "ap-southeast-2",
        "eu-central-1",
        "eu-west-1",
        "eu-west-2",
    }
)
EFS_LARGE, EFS_ELSEWHERE = Speed(write=5 * GIB, read=60 * GIB), Speed(write=1 * GIB, read=20 * GIB)
"""Regional EFS with elastic throughput, all clients together (EFS user guide, limits, elastic throughput per
file system, read 2026-11)."""


def efs_speed(region: str | None) -> Speed:
    """Speed of one EFS file system with elastic throughput. Region None has the lowest."""
    return EFS_LARGE if region in EFS_LARGE_REGIONS else EFS_ELSEWHERE


def efs_mibps(region: str) -> int:
    """MiB/s that AWS provisions for a file system by default."""
    return EFS_MIBPS_AT_MOST if region in EFS_MIBPS_REGIONS else EFS_MIBPS_ELSEWHERE


def lustre_near(gib: int) -> str:
    """The nearest size that FSx sells without EFA, in GiB, and where that is less the next one, for a sentence."""
    near = lustre_sold(gib)
    more = near + (LUSTRE_STEP_GIB if near > LUSTRE_SMALLEST_GIB else LUSTRE_SMALLEST_GIB)
    return f"{near}, or {more}" if near < gib else f"{near}"


def lustre_sold(gib: int) -> int:
    """The nearest size that FSx sells without EFA, in GiB: the size itself where it sells it."""
    if gib < (LUSTRE_SMALLEST_GIB + LUSTRE_STEP_GIB) / 2:
        return LUSTRE_SMALLEST_GIB
    return round(gib / LUSTRE_STEP_GIB) * LUSTRE_STEP_GIB
