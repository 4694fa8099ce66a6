"""Lustre over EFA: which stores FSx refuses, and which nodes cannot mount one over EFA.

Conditions and sources: trainyard/catalog/aws/storage.py, LUSTRE_EFA_STEP_GIB. What such a node does at boot:
trainyard/objects/jobs/lnet.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from trainyard.catalog.aws.storage import (
    EFA_CONNECTIONS_AT_MOST,
    EFA_LUSTRE_CLIENTS,
    EFA_LUSTRE_REFUSED,
    LNET_EFA_DEVICES,
    LUSTRE_EFA_STEP_GIB,
)
from trainyard.catalog.aws.zones import zone_ids_with
from trainyard.problems import REMOVE, At, InputError, InputWarning
from trainyard.settings.pools import PoolConfig
from trainyard.settings.stores import LustreConfig

Pools = Mapping[str, PoolConfig]


def lnet_devices(pool: PoolConfig, instance_type: str) -> int:
    """EFA devices over which nodes of the type mount Lustre made for it; 0: they cannot. EFA does
    not cross zones."""
    return 0 if pool.fallback_zones else LNET_EFA_DEVICES.get(instance_type, 0)


_FASTEST = max(LUSTRE_EFA_STEP_GIB)
_SMALLEST = (
    f"deployment: PERSISTENT_2 with throughput_mbps_per_tib: {_FASTEST} and capacity_gib:"
    f" {LUSTRE_EFA_STEP_GIB[_FASTEST]}"
)
"""The smallest file system with EFA."""


def efa_errors(path: str, lustre: LustreConfig, pools: Pools, region: str) -> Iterator[InputError]:
    """Every error of a store with `efa`. `path`: of its `lustre`. `pools`: all of the environment;
    empty where they are not known."""
    if not lustre.efa:
        return
    if lustre.deployment == "SCRATCH_2":
        yield At(f"{path}.efa").must(
            "not be true with deployment: SCRATCH_2, which has no EFA",
            got="true",
            fix=f"delete it, or write {_SMALLEST}",
            write=REMOVE,
        )
    else:
        yield from _size(f"{path}.capacity_gib", lustre)
    yield from _clients(f"{path}.efa", pools, region)


def efa_step(lustre: LustreConfig) -> int | None:
    """Step of sizes in GiB that FSx sells with EFA; None for a store without it, and where the speed is none that it
    sells."""
    if not lustre.efa or lustre.deployment == "SCRATCH_2":
        return None
    return LUSTRE_EFA_STEP_GIB.get(lustre.throughput_mbps_per_tib or 0)


def _size(path: str, lustre: LustreConfig) -> Iterator[InputError]:
    """A size that FSx does not sell with EFA."""
    size, step = lustre.capacity_gib, efa_step(lustre)
    if size and step and size % step:
        nearest = max(1, round(size / step)) * step
        tiers = [tier for tier, steps in sorted(LUSTRE_EFA_STEP_GIB.items()) if not size % steps]
        faster = f", or write throughput_mbps_per_tib: {tiers[0]}" if tiers else ""
        yield At(path).must(
            f"be a multiple of {step} with efa: true and throughput_mbps_per_tib:"
            f" {lustre.throughput_mbps_per_tib}",
            got=size,
            fix=f"write {nearest}{faster}, or delete efa",
            write=nearest,
        )


def _clients(path: str, pools: Pools, region: str) -> Iterator[InputError]:
    """Pools none of which has nodes that can mount over EFA."""
    clients = [each for each in sorted(EFA_LUSTRE_CLIENTS) if zone_ids_with(each, region)]
    kinds = [(pool, kind) for pool in pools.values() for kind in pool.instance_types]
    if kinds and not any(lnet_devices(pool, kind) for pool, kind in kinds):
        reasons = dict.fromkeys(f"{kind}, which {_reason(pool, kind)}" for pool, kind in kinds)
        yield At(path).must(
            "be for a pool whose nodes can mount Lustre over EFA",
            got="; ".join(reasons),
            fix=f"delete it{_other_way(pools, clients)}",
            write=REMOVE,
        )


def _other_way(pools: Pools, clients: Sequence[str]) -> str:
    """Words of a fix: a pool that could mount it, or one that the region has types for. `clients`: those types."""
    spread = [
        name
        for name, pool in pools.items()
        if pool.fallback_zones and EFA_LUSTRE_CLIENTS & {*pool.instance_types}
    ]
    if spread:
        return f", or delete pools.{spread[0]}.fallback_zones"
    return f", or add a pool without fallback_zones, of {' or '.join(clients)}" if clients else ""


def efa_warnings(path: str, lustre: LustreConfig, pools: Pools) -> Iterator[InputWarning]:
    """Warnings about a store with `efa` that works."""
    taken = sum(
        pool.max_nodes * max((lnet_devices(pool, kind) for kind in pool.instance_types), default=0)
        for pool in pools.values()
    )
    if lustre.efa and taken > EFA_CONNECTIONS_AT_MOST:
        yield At(f"{path}.efa").warning(
            f"nodes of full pools open {taken} EFA connections to it, and FSx allows"
            f" {EFA_CONNECTIONS_AT_MOST} for each file system"
        )


def tcp_warnings(
    path: str, name: str, lustre: LustreConfig, pool: PoolConfig
) -> Iterator[InputWarning]:
    """Nodes of a job that mount over TCP although the store has `efa`. `path`: of the job's
    pool."""
    for kind in pool.instance_types if lustre.efa else ():
        if not lnet_devices(pool, kind):
            yield At(path).warning(
                f"{kind} mounts {name} over TCP, because it {_reason(pool, kind)}"
            )


def _reason(pool: PoolConfig, instance_type: str) -> str:
    if instance_type in EFA_LUSTRE_CLIENTS:
        return "is in a pool with fallback_zones, and EFA does not cross zones"
    return EFA_LUSTRE_REFUSED.get(
        instance_type.partition(".")[0], "is not known to mount Lustre over EFA"
    )
