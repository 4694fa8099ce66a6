"""Lustre over EFA: which nodes mount a store so, what FSx refuses of it, and what is said of the
others.

Conditions and sources: catalog/storage.py, LUSTRE_EFA_STEP_GIB. What such a node does at boot:
plans/lnet.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product

from catalog.storage import (
    EFA_CONNECTIONS_AT_MOST,
    EFA_LUSTRE_CLIENTS,
    EFA_LUSTRE_REFUSED,
    LUSTRE_EFA_STEP_GIB,
    LUSTRE_SMALLEST_GIB,
    LUSTRE_STEP_GIB,
)
from stacks.derive.capacity import lnet_devices
from stacks.settings.environment import LustreConfig, PoolConfig, StoreConfig
from stacks.settings.problems import InputError, InputWarning

Pools = Mapping[str, PoolConfig]


def efa_errors(path: str, lustre: LustreConfig, pools: Pools) -> Iterator[InputError]:
    """Every error of a store that is made for EFA. `path`: the store's `lustre`. `pools`: all, or
    none to judge."""
    if not lustre.efa:
        return
    size, step = lustre.capacity_gib, LUSTRE_EFA_STEP_GIB.get(lustre.throughput_mbps_per_tib or 0)
    if lustre.deployment == "SCRATCH_2":
        yield InputError(
            path=f"{path}.efa",
            must="be of PERSISTENT_2: scratch has no EFA",
            got="true",
            fix="drop it, or take deployment: PERSISTENT_2",
        )
    elif (
        size
        and step
        and size % step
        and (size == LUSTRE_SMALLEST_GIB or size % LUSTRE_STEP_GIB == 0)
    ):
        yield InputError(
            path=f"{path}.capacity_gib",
            must=(
                f"be a multiple of {step} GiB with EFA at"
                f" {lustre.throughput_mbps_per_tib} MB/s per TiB"
            ),
            got=str(size),
            fix=(f"nearest: {max(1, round(size / step)) * step}; a faster tier has a smaller step"),
        )
    kinds = [(pool, kind) for pool in pools.values() for kind in pool.instance_types]
    if kinds and not any(lnet_devices(pool, kind) for pool, kind in kinds):
        yield InputError(
            path=f"{path}.efa",
            must="be for a pool whose nodes can mount over it",
            got="; ".join(
                dict.fromkeys(f"{kind}, which {_reason(pool, kind)}" for pool, kind in kinds)
            ),
            fix=f"a pool of {', '.join(sorted(EFA_LUSTRE_CLIENTS))}, or drop efa",
        )


def efa_warnings(path: str, lustre: LustreConfig | None, pools: Pools) -> Iterator[InputWarning]:
    """What works but should be known of a store that is made for EFA."""
    taken = sum(
        pool.max_nodes * max((lnet_devices(pool, kind) for kind in pool.instance_types), default=0)
        for pool in pools.values()
    )
    if lustre and lustre.efa and taken > EFA_CONNECTIONS_AT_MOST:
        yield InputWarning(
            path=f"{path}.efa",
            text=(
                f"full pools have {taken} EFA devices for it, and FSx takes"
                f" {EFA_CONNECTIONS_AT_MOST} connections a file system"
            ),
        )


def tcp_warnings(
    path: str, mounted: Mapping[str, StoreConfig], pool: PoolConfig
) -> Iterator[InputWarning]:
    """Nodes of a job that mount over TCP what is made for EFA."""
    made = [name for name, store in mounted.items() if store.lustre and store.lustre.efa]
    for name, kind in product(made, pool.instance_types):
        if not lnet_devices(pool, kind):
            yield InputWarning(
                path=path, text=f"{kind} mounts {name} over TCP: it {_reason(pool, kind)}"
            )


def _reason(pool: PoolConfig, instance_type: str) -> str:
    if instance_type in EFA_LUSTRE_CLIENTS:
        return "has fallback zones, and EFA does not cross zones"
    return EFA_LUSTRE_REFUSED.get(
        instance_type.partition(".")[0], "is not known to mount Lustre over EFA"
    )
