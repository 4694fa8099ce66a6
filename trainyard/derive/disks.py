"""Disks of nodes: who takes how much of the account's gp3."""

from __future__ import annotations

from collections.abc import Mapping

from trainyard.catalog.upstream.bottlerocket import SYSTEM_GIB
from trainyard.derive.pools import SYSTEM, PoolUse, most_nodes, nodes_of_up
from trainyard.plans.jobs import JobPlan
from trainyard.plans.system_nodes import SYSTEM_DISK_GIB
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.pools import PoolConfig

GIB_A_TIB = 1024


def disks_when_full(wanted: EnvironmentConfig) -> dict[str, int]:
    """Taker → GiB of gp3 when every pool is full."""
    full = {name: most_nodes(pool) for name, pool in wanted.pools.items()}
    return _disks(wanted, full)


def disks_of_up(
    wanted: EnvironmentConfig, uses: Mapping[str, PoolUse], jobs: Mapping[str, JobPlan]
) -> dict[str, int]:
    """Taker → GiB of gp3 while the stack's own jobs run."""
    return _disks(wanted, nodes_of_up(uses, jobs))


def in_tib(gib: int) -> int:
    """Whole TiB that hold so many GiB: the quota counts in them."""
    return -(-gib // GIB_A_TIB)


def _disks(wanted: EnvironmentConfig, nodes: Mapping[str, int]) -> dict[str, int]:
    """`nodes`: of pools."""
    return {
        SYSTEM: wanted.system_nodes.nodes * SYSTEM_DISK_GIB,
        **{name: number * _of_a_node(wanted.pools[name]) for name, number in nodes.items()},
    }


def _of_a_node(pool: PoolConfig) -> int:
    """GiB of the disks of a node. Bottlerocket has a second one for its system."""
    return pool.root_volume_gib + SYSTEM_GIB * (pool.ami_family == "Bottlerocket")
