"""Contract: what an environment promises its teams."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainyard.derive.team_stores import stores_of
from trainyard.plans.directories import path_of
from trainyard.plans.identity import digest
from trainyard.plans.jobs import RuntimePlan
from trainyard.plans.pools import GpuPoolPlan
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.team_entry import TeamEntryConfig
from trainyard.stores.kinds import kinds_of


def contract(
    region: str,
    wanted: EnvironmentConfig,
    pools: Mapping[str, GpuPoolPlan],
    runtimes: tuple[RuntimePlan, ...],
) -> dict[str, Any]:
    """Plain data with its own digest, which differs where a team's stack was planned for another
    environment."""
    promised = {
        "version": 1,
        "region": region,
        "zone": wanted.zone,
        "trainer": wanted.trainer.version,
        "pools": {
            name: {
                "instance_types": [node_type.instance_type for node_type in pool.types],
                "max_nodes": pool.max_nodes,
                "capacity": wanted.pools[name].capacity,
            }
            for name, pool in pools.items()
        },
        "storage": {
            name: kind.name for name, store in wanted.storage.items() for kind, _ in kinds_of(store)
        },
        "runtimes": [runtime.name for runtime in runtimes],
    }
    return {**promised, "digest": digest(promised)}


def team_contract(
    promised: Mapping[str, Any], name: str, entry: TeamEntryConfig, wanted: EnvironmentConfig
) -> dict[str, Any]:
    """The part of an environment's contract that concerns one team, with a digest of its own. Shares
    are no part of it: they depend on other teams."""
    stores = promised["storage"] if entry.stores is None else entry.stores
    part = {
        **{key: value for key, value in promised.items() if key != "digest"},
        "storage": {store: promised["storage"][store] for store in stores},
        "team": {
            "name": name,
            "namespace": entry.namespace_of(name),
            "max_gpus": entry.max_gpus,
            **({"queue": name} if wanted.queues is not None else {}),
            **({"secrets": list(entry.secrets)} if entry.secrets else {}),
            **_seen(name, entry, wanted),
        },
    }
    return {**part, "digest": digest(part)}


def _seen(name: str, entry: TeamEntryConfig, wanted: EnvironmentConfig) -> dict[str, Any]:
    """Stores that the team does not see as a whole, or cannot write to."""
    stores = stores_of(entry, wanted)
    apart = [store for store, settings in stores.items() if settings.teams == "apart"]
    reads = [store for store, settings in stores.items() if settings.teams == "read_only"]
    return {
        **({"directories": dict.fromkeys(apart, path_of(name))} if apart else {}),
        **({"read_only": reads} if reads else {}),
    }
