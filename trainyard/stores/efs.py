"""EFS: the kind of store in every zone, for code, data sets and home directories.

An EFS file system's DNS name resolves only in a zone with a mount target of it (EFS user guide,
mounting-fs-mount-cmd-dns-name). EFS takes one mount target a zone and charges nothing for it; what
a node reads through its own zone's mount target crosses no zone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from trainyard.catalog.aws.endpoints import EFS_API
from trainyard.catalog.aws.service_roles import EFS, ServiceRole
from trainyard.catalog.aws.storage import (
    EFS_CLIENT,
    EFS_CLIENT_NOT_ELASTIC,
    EFS_READS_PER_WRITE,
    Driver,
    Speed,
    efs_speed,
)
from trainyard.objects.iam.efs import BACKUP, BACKUP_ROLE, BACKUP_STORAGE
from trainyard.objects.iam.policies import ROLE_NAME
from trainyard.plans.identity import Identity
from trainyard.plans.stores import EfsBackups, EfsPlan
from trainyard.plans.unchangeable import Output
from trainyard.problems import InputError, InputWarning
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.pools import PoolConfig
from trainyard.settings.stores import EfsConfig, LifecycleConfig
from trainyard.stores.acts import AT_EFS
from trainyard.stores.efs_rules import (
    FILE_SYSTEM,
    archive_warnings,
    lifecycle_errors,
    throughput_errors,
    throughput_warnings,
)
from trainyard.stores.figures import FixedCost, Stage, StoreRow, UsageCost, took
from trainyard.stores.kind import StoreKind, Surroundings

TOKEN = 64
"""Characters of an EFS creation token, at most (EFS API, CreateFileSystem)."""
VAULT_NAME = 50
"""Characters of a vault's name, at most (AWS Backup API, CreateBackupVault)."""
BACKUP_TYPES = (
    "aws:backup/vault:Vault",
    "aws:backup/plan:Plan",
    "aws:backup/selection:Selection",
)
NODE_ACCOUNT = "efs-csi-node-sa"
"""ServiceAccount of the pods of the driver that mount (values.yaml of its chart, 3.4)."""
CAPACITY = "1024Gi"
"""EFS grows by itself and ignores the figure, but a PersistentVolume must state one."""


@dataclass(frozen=True, kw_only=True)
class EfsSpeed:
    """An EFS file system, by what its speed follows from."""

    region: str | None = None
    """Its limits differ by region, and None has the lower ones."""
    usable_gib: float | None = None
    mibps: int | None = None
    """Provisioned; None of elastic throughput."""

    def disks(self) -> Speed:
        """Speed that all nodes reach together."""
        if self.mibps is None:
            return efs_speed(self.region)
        written = self.mibps * 2**20
        return Speed(write=written, read=EFS_READS_PER_WRITE * written)

    def client(self, instance_type: str, *, mounted_over_efa: bool) -> Speed:
        """Speed that one node reaches."""
        return EFS_CLIENT if self.mibps is None else EFS_CLIENT_NOT_ELASTIC


class Efs(StoreKind[EfsConfig, EfsPlan]):
    """One file system with a mount target in each zone that a pool may launch nodes in."""

    name = "efs"
    plans = EfsPlan
    example = {}
    root_is_roots = True
    weak_at = AT_EFS
    driver = Driver(name="efs.csi.aws.com", add_on="aws-efs-csi-driver", apis=(EFS_API,))
    """Source: static provisioning in the driver's README."""
    services = (BACKUP, BACKUP_STORAGE)
    keeps_its_key = True
    holds_data = FILE_SYSTEM

    def plan(
        self, me: Identity, name: str, settings: EfsConfig, *, keep: bool, zones: tuple[str, ...]
    ) -> EfsPlan:
        return EfsPlan(
            identity=me,
            kind=self.name,
            keep=keep,
            creation_token=me.short_name(name, TOKEN),
            zones=zones,
            throughput=settings.throughput,
            throughput_mibps=settings.throughput_mibps,
            lifecycle=tuple(_transitions(settings.lifecycle or LifecycleConfig())),
            only_this_cluster=settings.only_this_cluster,
            backups=_backups(me, f"{name}-backups", settings.backup_days),
        )

    def interfaces(self, settings: EfsConfig, zones: tuple[str, ...]) -> Mapping[str, int]:
        """Interfaces of its mount targets, by zone."""
        return dict.fromkeys(zones, 1)

    def made_from(self, settings: EfsConfig, zone: str) -> list[str]:
        return ["efs", "iam"] if settings.only_this_cluster else ["efs"]

    def mount_options(self, settings: EfsConfig) -> tuple[str, ...]:
        """The driver asks for TLS by itself, and for its own role where it is told (pkg/driver/node.go,
        docs/parameters.md, 3.4)."""
        return ("iam",) if settings.only_this_cluster else ()

    def service_account(self, settings: EfsConfig) -> str:
        return NODE_ACCOUNT if settings.only_this_cluster else ""

    def capacity(self, settings: EfsConfig) -> str:
        return CAPACITY

    def without_speed(self, settings: EfsConfig) -> str:
        bursts = "whose speed depends on how much it holds, with throughput: bursting"
        return bursts if settings.throughput == "bursting" else ""

    def checkpoint_store(self, settings: EfsConfig, region: str) -> EfsSpeed | None:
        if self.without_speed(settings):
            return None
        return EfsSpeed(region=region, mibps=settings.throughput_mibps)

    def checkpoint_warnings(
        self, path: str, name: str, settings: EfsConfig
    ) -> Iterator[InputWarning]:
        if self.without_speed(settings):
            yield InputWarning(
                path=path,
                text=(
                    f"{name} has bursting throughput, 50 MiB/s for each TiB stored once its credits"
                    " are used: how long a save takes is not checked"
                ),
            )

    def errors(self, path: str, settings: EfsConfig, around: Surroundings) -> Iterator[InputError]:
        yield from throughput_errors(path, settings)
        if settings.lifecycle:
            yield from lifecycle_errors(path, settings, settings.lifecycle)

    def warnings(
        self, path: str, settings: EfsConfig, around: Surroundings
    ) -> Iterator[InputWarning]:
        yield from throughput_warnings(path, settings, around.region)

    def update_warnings(
        self, path: str, name: str, plan: EfsPlan, was: Output
    ) -> Iterator[InputWarning]:
        yield from archive_warnings(path, name, plan, was)

    def errors_together(
        self, names: Sequence[str], wanted: EnvironmentConfig, zones: tuple[str, ...]
    ) -> Iterator[InputError]:
        """Stores with the name that another store's mount target in a fallback zone had, and has as an alias: the
        engine would take one for the other."""
        taken = {
            f"{name}-{zone[-1]}": (name, zone)
            for name in names
            for zone in mount_zones(zones, wanted.zone, wanted.pools)[1:]
        }
        for name in names:
            if name in taken:
                store, zone = taken[name]
                yield InputError(
                    path=f"environment.storage.{name}",
                    must=f"not have the name that the stack gives to the mount target of store {store} in {zone}",
                    got=name,
                    fix=f"rename it to {name}-store; a store that is deployed becomes a new, empty one by another name",
                )

    def resource_types(self, plan: EfsPlan) -> tuple[str, ...]:
        points = ("aws:efs/accessPoint:AccessPoint",) if plan.apart else ()
        policy = ("aws:efs/fileSystemPolicy:FileSystemPolicy",) if plan.only_this_cluster else ()
        backups = BACKUP_TYPES if plan.backups else ()
        return (self.holds_data, "aws:efs/mountTarget:MountTarget", *points, *policy, *backups)

    def service_roles(self, plan: EfsPlan) -> tuple[ServiceRole, ...]:
        return (EFS, BACKUP_ROLE) if plan.backups else (EFS,)

    def row(self, plan: EfsPlan) -> StoreRow:
        speed = f"{plan.throughput_mibps} MiB/s" if plan.throughput_mibps else plan.throughput
        return StoreRow(kind="EFS", size="grows", speed=speed)

    def notes(self, name: str, plan: EfsPlan) -> Iterator[str]:
        if plan.backups:
            end = "leaves the backups" if plan.keep else "deletes the backups"
            yield (
                f"{name} is backed up daily, and each backup is kept for {plan.backups.days} days in the"
                f" vault {plan.backups.name}; `pulumi destroy` {end}"
            )

    def costs(self, name: str, plan: EfsPlan) -> Iterator[FixedCost]:
        if plan.throughput_mibps:
            yield FixedCost(
                what=f"EFS {name}, {plan.throughput_mibps} MiB/s",
                service="efs",
                sku="provisioned",
                units=plan.throughput_mibps,
            )

    def usage_costs(self, name: str, plan: EfsPlan) -> Iterator[UsageCost]:
        yield UsageCost(what=f"EFS {name}", service="efs", sku="standard")
        if plan.throughput == "elastic":
            yield UsageCost(what=f"EFS {name}, read", service="efs", sku="read")
            yield UsageCost(what=f"EFS {name}, written", service="efs", sku="write")
        moves = {key for key, _ in plan.lifecycle}
        if "transition_to_ia" in moves:
            yield UsageCost(what=f"EFS {name}, infrequent", service="efs", sku="infrequent")
        if "transition_to_archive" in moves:
            yield UsageCost(what=f"EFS {name}, archive", service="efs", sku="archive")
        if plan.backups:
            yield UsageCost(what=f"backups of {name}", service="efs", sku="backup")

    def save_costs(self, name: str, plan: EfsPlan) -> Iterator[UsageCost]:
        if plan.throughput == "elastic":
            yield UsageCost(what=f"EFS {name}, written", service="efs", sku="write")

    def stages(self, name: str, plan: EfsPlan) -> Iterator[Stage]:
        yield took(f"file system {name}", "efs.file-system")
        yield took(
            f"mount target {name}",
            "efs.mount-target",
            ("subnets", "security groups", f"file system {name}"),
        )

    def last_stages(self, name: str, plan: EfsPlan) -> tuple[str, ...]:
        return (f"mount target {name}",)


def _backups(me: Identity, name: str, days: int) -> EfsBackups | None:
    if not days:
        return None
    role = me.short_name(name, ROLE_NAME)
    return EfsBackups(days=days, name=me.short_name(name, VAULT_NAME), role=role)


def _transitions(lifecycle: LifecycleConfig) -> Iterator[tuple[str, str]]:
    """As EFS calls them (EFS API, LifecyclePolicy)."""
    for key, days in (
        ("transition_to_ia", lifecycle.infrequent_after_days),
        ("transition_to_archive", lifecycle.archive_after_days),
    ):
        if days:
            yield key, f"AFTER_{days}_DAY{'S' * (days > 1)}"
    if lifecycle.back_on_access:
        yield "transition_to_primary_storage_class", "AFTER_1_ACCESS"


def mount_zones(
    zones: tuple[str, ...], training_zone: str, pools: Mapping[str, PoolConfig]
) -> tuple[str, ...]:
    """Zones of the network that a pool may launch nodes in, the training zone first."""
    away = {zone for pool in pools.values() for zone in pool.fallback_zones}
    return tuple(zone for zone in zones if zone == training_zone or zone in away)
