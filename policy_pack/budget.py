"""The policy `within-budget`: what all pools cost together when they are full."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from policy_pack.kinds import NODE_POOL
from policy_pack.resource import Config, Resource, as_list
from trainyard.catalog.aws.prices import price

INSTANCE_TYPE, ZONE = "node.kubernetes.io/instance-type", "topology.kubernetes.io/zone"
CAPACITY = "karpenter.sh/capacity-type"


class BudgetRule:
    """Adds up the cost of all pools when they are full, at prices on demand. Reserved capacity is
    paid already.

    It adds up the pools that it is shown: a preview shows policies of all resources no object of a
    cluster that does not exist yet. The pack is started anew for each preview and update.
    """

    def __init__(self) -> None:
        self._usd: dict[str, Decimal] = {}

    def __call__(self, resource: Resource, config: Config) -> Iterator[str]:
        if resource.type != NODE_POOL:
            return
        if not _names_its_cost(resource):
            yield (
                "must name its nodes (limits.nodes), its types and its zones, so that its cost is"
                " known"
            )
            return
        cost = _full_usd(resource)
        if cost is None:
            yield "must have an instance type whose price is known"
            return
        self._usd[resource.urn] = cost
        if (total := sum(self._usd.values())) > config["max_usd_per_hour"]:
            yield (
                f"must leave the pools within {config['max_usd_per_hour']:.2f} USD an hour; got"
                f" {total:.2f} when they are full"
            )


def _names_its_cost(pool: Resource) -> bool:
    """False of a pool that only excludes types or zones, or whose number of nodes nothing limits."""
    named = (_nodes(pool), _listed(pool, INSTANCE_TYPE), _listed(pool, ZONE))
    return _is_reserved(pool) or all(named)


def _full_usd(pool: Resource) -> Decimal | None:
    """USD an hour of a full pool of its dearest type; None where a price is not known."""
    if _is_reserved(pool):
        return Decimal()
    prices = [
        price("ec2", kind, zone[:-1])
        for kind in _listed(pool, INSTANCE_TYPE)
        for zone in _listed(pool, ZONE)
    ]
    known = [found.usd for found in prices if found]
    return max(_nodes(pool)) * max(known) if len(known) == len(prices) else None


def _is_reserved(pool: Resource) -> bool:
    return _listed(pool, CAPACITY) == ["reserved"]


def _nodes(pool: Resource) -> list[int]:
    """Numbers of nodes that a pool names. Karpenter launches without limit where there is none."""
    named = (pool.part("spec", "limits", "nodes"), pool.part("spec", "replicas"))
    return [int(number) for number in named if number is not None]


def _listed(pool: Resource, label: str) -> list[str]:
    """Values from which a pool lets Karpenter choose a label of its nodes."""
    values: list[str] = []
    for one in as_list(pool.part("spec", "template", "spec", "requirements")):
        if one.get("key") == label and one.get("operator") == "In":
            values = as_list(one.get("values"))
    return values
