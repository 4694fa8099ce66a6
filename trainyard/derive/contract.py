"""What an environment promises its teams."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainyard.plans.parts import GpuPoolPlan, RuntimePlan, digest
from trainyard.settings.environment import EnvironmentConfig
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
