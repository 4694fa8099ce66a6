"""Use of the network by an environment: addresses of the private subnet of each zone, and the AWS
APIs that are called from there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from trainyard.derive.called_apis import called_apis
from trainyard.derive.pools import NODE_ADDRESSES, most_nodes
from trainyard.plans.networks import EKS_ADDRESSES, SubnetUse
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.stores import StoreConfig
from trainyard.stores.efs import mount_zones
from trainyard.stores.kinds import kind_of


@dataclass(frozen=True, kw_only=True)
class NetworkUse:
    """Everything that an environment takes of its network."""

    zones: tuple[str, ...]
    """Zones of the network, the training zone first."""
    zone_id: str | None
    """ID of the training zone, where the stack file says it."""
    addresses: Mapping[str, SubnetUse]
    """Zone → addresses of its private subnet."""
    called_apis: tuple[str, ...]


def network_use(wanted: EnvironmentConfig, zones: tuple[str, ...]) -> NetworkUse:
    """Use of the network by the environment. `zones`: of `network_zones`."""
    return NetworkUse(
        zones=zones,
        zone_id=wanted.zone_id,
        addresses=subnet_uses(wanted, zones),
        called_apis=called_apis(wanted),
    )


def subnet_uses(wanted: EnvironmentConfig, zones: tuple[str, ...]) -> dict[str, SubnetUse]:
    """Zone → addresses of its private subnet. `zones`: those of the network, the training zone first.

    A pool counts in full in each of its zones, because all of its nodes can be there. Auto Scaling
    spreads the system nodes evenly (EC2 Auto Scaling user guide, auto-scaling-benefits). In an existing cluster a
    node counts as one address: how many more it takes, only its owner's VPC CNI tells (trainyard/existing/cni.py).
    """
    each = NODE_ADDRESSES if wanted.cluster.name is None else 1
    stores = _stores(wanted.storage, zones, mount_zones(zones, wanted.zone, wanted.pools))
    return {
        zone: SubnetUse(
            pools={
                name: most_nodes(pool) * each
                for name, pool in wanted.pools.items()
                if zone in (wanted.zone, *pool.fallback_zones)
            },
            system_nodes=-(-wanted.system_nodes.nodes // len(zones)) * each,
            others=stores[zone] | _of_aws(wanted),
        )
        for zone in zones
    }


def _stores(
    stores: Mapping[str, StoreConfig], zones: tuple[str, ...], mounted: tuple[str, ...]
) -> dict[str, dict[str, int]]:
    """Zone → store → interfaces of the file system there. `mounted`: zones in which pods mount stores."""
    found: dict[str, dict[str, int]] = {zone: {} for zone in zones}
    for name, store in stores.items():
        kind = kind_of(store)
        for zone, number in Counter(kind[0].interfaces(kind[1], mounted) if kind else {}).items():
            found[zone][f"store {name}"] = number
    return found


def _of_aws(wanted: EnvironmentConfig) -> dict[str, int]:
    """Interfaces of AWS in every zone. Those that EKS makes for an existing cluster are there already."""
    made = wanted.network.endpoints == "private"
    endpoints = {"interface endpoints": len(called_apis(wanted))} if made else {}
    return endpoints | ({"EKS": EKS_ADDRESSES} if wanted.cluster.name is None else {})
