"""EFS stores: their plans, and the zones that need a mount target.

An EFS file system's DNS name resolves only in a zone with a mount target of it (EFS user guide,
mounting-fs-mount-cmd-dns-name). EFS takes one mount target a zone and charges nothing for it; what
a node reads through its own zone's mount target crosses no zone.
"""

from __future__ import annotations

from collections.abc import Mapping

from plans.parts import EfsPlan, Identity
from stacks.settings.environment import PoolConfig, StoreConfig

TOKEN = 64
"""Characters of an EFS creation token, at most (EFS API, CreateFileSystem)."""


def mount_zones(
    zones: tuple[str, ...], training_zone: str, pools: Mapping[str, PoolConfig]
) -> tuple[str, ...]:
    """Of the network's zones, the training zone first: those that a pool may launch nodes in."""
    away = {zone for pool in pools.values() for zone in pool.fallback_zones}
    return tuple(zone for zone in zones if zone == training_zone or zone in away)


def efs_plans(
    me: Identity, stores: Mapping[str, StoreConfig], zones: tuple[str, ...]
) -> dict[str, EfsPlan]:
    """What the EFS stores are made from. `zones`: those that get a mount target."""
    return {
        name: EfsPlan(
            identity=me,
            keep=store.data == "keep",
            creation_token=me.short_name(name, TOKEN),
            zones=zones,
        )
        for name, store in stores.items()
        if store.efs
    }
