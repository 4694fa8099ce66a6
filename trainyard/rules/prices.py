"""Own prices of a stack: names that are no family of instance types, and settings that lower no price.

Examples of each rule: tests/trainyard/rules/test_prices.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainyard.catalog.aws.own_prices import IN_SAVINGS_PLANS, family_of
from trainyard.catalog.aws.prices import CAPACITY_SERVICES
from trainyard.problems import At, InputError, InputWarning
from trainyard.settings.budget import PricesConfig
from trainyard.settings.environment import EnvironmentConfig

AT = "environment.prices"


def price_errors(wanted: EnvironmentConfig) -> Iterator[InputError]:
    """Keys of `savings_plan_percent` that are instance types: rates of Savings Plans are by family."""
    for name in wanted.prices.savings_plan_percent if wanted.prices else ():
        if family_of(name) != name:
            yield At(f"{AT}.savings_plan_percent.{name}").must(
                "be a family of instance types: each of its types has the same per cent",
                got=name,
                fix=f"write {family_of(name)} in its place",
            )


def price_warnings(wanted: EnvironmentConfig) -> Iterator[InputWarning]:
    """Settings that lower no price of this stack."""
    prices = wanted.prices
    if prices is None:
        return
    if prices == PricesConfig():
        yield At(AT).warning("it has no per cent, so the prices stay those of AWS's list")
    covered = _on_demand(wanted)
    for family, percent in prices.savings_plan_percent.items():
        at = At(f"{AT}.savings_plan_percent.{family}")
        if not percent:
            yield at.warning("it is 0, so the price stays the same")
        elif family not in covered and family_of(family) == family:
            yield at.warning(
                f"it lowers no price: no pool on demand or with a reservation has a type of {family}, and the"
                " system nodes have none. Spot and Capacity Blocks are in no Savings Plan"
            )


def _on_demand(wanted: EnvironmentConfig) -> set[str]:
    """Families of the nodes that a Savings Plan can cover."""
    types = [
        kind
        for pool in wanted.pools.values()
        if CAPACITY_SERVICES.get(pool.capacity) == IN_SAVINGS_PLANS
        for kind in pool.instance_types
    ]
    return {*map(family_of, (*types, wanted.system_nodes.instance_type))}
