"""EFS: the kind of store in every zone, for code, data sets and home directories.

An EFS file system's DNS name resolves only in a zone with a mount target of it (EFS user guide,
mounting-fs-mount-cmd-dns-name). EFS takes one mount target a zone and charges nothing for it; what
a node reads through its own zone's mount target crosses no zone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from catalog.service_roles import EFS
from catalog.storage import EFS_CLIENT, Driver, Speed, efs_speed
from frozen import dataclass
from plans.parts import Identity
from plans.stores import EfsPlan
from stacks.settings.environment import EnvironmentConfig, PoolConfig
from stacks.settings.problems import InputError
from stacks.settings.stores import EfsConfig
from stacks.stores.figures import Stage, StoreRow, UsageCost, took
from stacks.stores.kind import StoreKind, Surroundings

TOKEN = 64
"""Characters of an EFS creation token, at most (EFS API, CreateFileSystem)."""
CAPACITY = "1024Gi"
"""EFS grows by itself and ignores the figure, but a PersistentVolume must state one."""


@dataclass(frozen=True, kw_only=True)
class EfsSpeed:
    """An EFS file system, by what its speed follows from."""

    region: str | None = None
    """Its limits differ by region, and None has the lower ones."""
    usable_gib: float | None = None

    def disks(self) -> Speed:
        """What all nodes reach together."""
        return efs_speed(self.region)

    def client(self, instance_type: str, *, mounted_over_efa: bool) -> Speed:
        """What one node reaches."""
        return EFS_CLIENT


class Efs(StoreKind[EfsConfig, EfsPlan]):
    """One file system with a mount target in each zone that a pool may launch nodes in."""

    name = "efs"
    plans = EfsPlan
    example = {}
    driver = Driver(name="efs.csi.aws.com", add_on="aws-efs-csi-driver")
    """Source: static provisioning in the driver's README."""
    service_role = EFS
    holds_data = "aws:efs/fileSystem:FileSystem"

    def plan(
        self, me: Identity, name: str, settings: EfsConfig, *, keep: bool, zones: tuple[str, ...]
    ) -> EfsPlan:
        return EfsPlan(
            identity=me,
            kind=self.name,
            keep=keep,
            creation_token=me.short_name(name, TOKEN),
            zones=zones,
        )

    def component(self) -> Any:
        from components.efs import Efs as Component

        return Component

    def made_from(self, settings: EfsConfig, zone: str) -> list[str]:
        return ["efs"]

    def capacity(self, settings: EfsConfig) -> str:
        return CAPACITY

    def checkpoint_store(self, settings: EfsConfig, region: str) -> EfsSpeed:
        return EfsSpeed(region=region)

    def errors(self, path: str, settings: EfsConfig, around: Surroundings) -> Iterator[InputError]:
        yield from ()

    def errors_together(
        self, names: Sequence[str], wanted: EnvironmentConfig, zones: tuple[str, ...]
    ) -> Iterator[InputError]:
        """Stores with the name of another store's mount target in a fallback zone: Pulumi refuses
        two mount targets of one name."""
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
                    must=f"not have the name of the mount target of {store} in {zone}",
                    got=name,
                    fix=f"rename it to {name}-store",
                )

    def resource_types(self, plan: EfsPlan) -> tuple[str, ...]:
        points = ("aws:efs/accessPoint:AccessPoint",) if plan.apart else ()
        return (self.holds_data, "aws:efs/mountTarget:MountTarget", *points)

    def row(self, plan: EfsPlan) -> StoreRow:
        return StoreRow(kind="EFS", size="grows", speed="elastic")

    def usage_costs(self, name: str, plan: EfsPlan) -> Iterator[UsageCost]:
        yield UsageCost(what=f"EFS {name}", service="efs", sku="standard")
        yield UsageCost(what=f"EFS {name}, read", service="efs", sku="read")
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


def mount_zones(
    zones: tuple[str, ...], training_zone: str, pools: Mapping[str, PoolConfig]
) -> tuple[str, ...]:
    """Of the network's zones, the training zone first: those that a pool may launch nodes in."""
    away = {zone for pool in pools.values() for zone in pool.fallback_zones}
    return tuple(zone for zone in zones if zone == training_zone or zone in away)
