"""Prices that a company pays: the list prices of AWS, less what its contracts with AWS take off.

A private pricing agreement, such as an Enterprise Discount Program, takes a per cent off the list price of each
service. A Savings Plan takes a per cent off instances on demand, also those of a reservation, and nothing off
Spot and Capacity Blocks (Savings Plans user guide, "How Savings Plans apply to your usage"; EC2 user guide,
"Capacity Blocks for ML", billing). Both multiply: the agreement discounts what the Savings Plan has left.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal

from trainyard.catalog.aws.prices import Price
from trainyard.catalog.aws.quotes import Guess, Quote, quote

IN_SAVINGS_PLANS = "ec2"
"""The service whose prices a Savings Plan lowers."""


@dataclass(frozen=True, kw_only=True)
class OwnPrices:
    """Discounts of a company; without any the prices are those of AWS's list."""

    discount_percent: Decimal = Decimal()
    savings_plan_percent: Mapping[str, Decimal] = field(default_factory=dict[str, Decimal])
    """Family of instance types, such as p5 → per cent off its price on demand."""
    support_percent: Decimal = Decimal()
    """Per cent of a month that AWS charges for support, on top of the month."""

    @property
    def lower(self) -> bool:
        """True where a price can be lower than that of AWS's list."""
        return bool(self.discount_percent or any(self.savings_plan_percent.values()))

    @property
    def said(self) -> str:
        """The discounts in words."""
        plans = ", ".join(
            f"{percent.normalize():f} % off {family}"
            for family, percent in self.savings_plan_percent.items()
        )
        each = f"{self.discount_percent.normalize():f} % off each price"
        both = [each] if self.discount_percent else []
        return "; ".join(both + ([f"Savings Plans: {plans}"] if plans else []))

    def quote(self, service: str, sku: str, region: str) -> Quote:
        """The own price of a region, or what stands in its place."""
        listed, factor = quote(service, sku, region), self._factor(service, sku)
        if factor == 1:
            return listed
        return Quote(
            price=_price(listed.price, factor),
            ceiling=_price(listed.ceiling, factor),
            guess=_guess(listed.guess, factor),
        )

    def price(self, service: str, sku: str, region: str) -> Price | None:
        """The own price of a region; None where no price of the region is known."""
        return self.quote(service, sku, region).price

    def _factor(self, service: str, sku: str) -> Decimal:
        """Share of the list price that is paid."""
        factor = _left(self.discount_percent)
        if service == IN_SAVINGS_PLANS:
            factor *= _left(self.savings_plan_percent.get(family_of(sku), Decimal()))
        return factor


LIST = OwnPrices()
"""The prices of AWS's list."""


def family_of(instance_type: str) -> str:
    """The family of an instance type: p5 of p5.48xlarge."""
    return instance_type.partition(".")[0]


def _left(percent: Decimal) -> Decimal:
    return 1 - percent / 100


def _price(listed: Price | None, factor: Decimal) -> Price | None:
    return replace(listed, usd=listed.usd * factor) if listed else None


def _guess(listed: Guess | None, factor: Decimal) -> Guess | None:
    if listed is None:
        return None
    return replace(listed, usd=listed.usd * factor, most_usd=listed.most_usd * factor)
