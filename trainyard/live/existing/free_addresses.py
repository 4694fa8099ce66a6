"""`trainyard check --live`: whether the subnets that exist already have addresses for full pools, and for all
else that the stack puts into them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from trainyard.derive.pools import NODE_ADDRESSES
from trainyard.existing.vpc_faults import fewer_nodes
from trainyard.live.existing.cni import settings, uses_with
from trainyard.live.questions.account import Account
from trainyard.live.questions.network_questions import SubnetRoom
from trainyard.plan import EnvironmentPlan
from trainyard.plans.clusters import ExistingClusterPlan
from trainyard.plans.networks import AnyNetworkPlan, ExistingNetworkPlan, SubnetUse
from trainyard.problems import InputError


@dataclass(frozen=True, kw_only=True)
class Taken:
    """Addresses that nodes take."""

    uses: Mapping[str, SubnetUse]
    """Zone → what is taken of its subnet."""
    pool_node: int = NODE_ADDRESSES
    system_node: int = NODE_ADDRESSES


def address_checks(
    account: Account, plan: EnvironmentPlan
) -> dict[str, Callable[[], Iterator[InputError]]]:
    """One question, of all zones of the network."""
    node_pools = [kind.name for pool in plan.pools.values() for kind in pool.types]
    return {
        "free addresses": lambda: address_findings(
            plan.network,
            account.addresses(
                plan.identity, _subnets(plan.network), node_pools, plan.system_nodes.name
            ),
            _taken(account, plan),
        )
    }


def _taken(account: Account, plan: EnvironmentPlan) -> Taken:
    """In an existing cluster the settings of its VPC CNI decide. Where it does not answer, a node counts as one
    address."""
    network, cluster = plan.network, plan.cluster
    if not isinstance(cluster, ExistingClusterPlan) or not isinstance(network, ExistingNetworkPlan):
        return Taken(uses=network.addresses)
    cni = settings(account, cluster.name)
    if cni is None:
        return Taken(uses=network.addresses, pool_node=1, system_node=1)
    pods = account.pod_subnet_zones(network.vpc_id)
    uses, pool_node, system_node = uses_with(plan, cni, pods)
    return Taken(uses=uses, pool_node=pool_node, system_node=system_node)


def _subnets(network: AnyNetworkPlan) -> list[str]:
    """The private subnets: their ids, or their logical names."""
    if isinstance(network, ExistingNetworkPlan):
        return [zone.subnet_id for zone in network.zones]
    return [f"network-private-{zone.letter}" for zone in network.zones]


def address_findings(
    network: AnyNetworkPlan, rooms: Mapping[str, SubnetRoom], taken: Taken
) -> Iterator[InputError]:
    """Subnets with too few addresses. `rooms`: by zone; those that are not made yet are not in it.

    Where a system node runs, the interfaces of EKS, endpoints and stores are taken to be there.
    """
    begun = any(room.system_nodes for room in rooms.values())
    for zone, room in rooms.items():
        use = taken.uses[zone]
        running = room.pool_nodes * taken.pool_node + room.system_nodes * taken.system_node
        others = 0 if begun else sum(use.others.values())
        missing = max(0, use.nodes - running) + others
        if missing <= room.free:
            continue
        existing = isinstance(network, ExistingNetworkPlan)
        there = f"; {use.total - missing} are there already" if missing < use.total else ""
        yield InputError(
            path="environment.pools" if use.pools else "environment.network",
            must=f"need at most the {room.free} free addresses of the private subnet in {zone}",
            got=f"{missing}: full pools and the rest need {use.told}{there}",
            fix=f"delete what else has addresses in that subnet{fewer_nodes(network, zone)}"
            + f", or write a larger subnet of {zone}" * existing,
        )
