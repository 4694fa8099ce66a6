"""Quotes: a price, the most that it can be, or a guess at it.

A guess is a range from the regions that are known, and is in no exact sum. AWS asks more in some regions than
in others, seldom less than in us-east-1 and seldom half as much again as in the dearest region that is known:
with each known price left out in turn, the range of the others holds nine of ten
(tests/trainyard/catalog/aws/test_quotes.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from functools import cache

from trainyard.catalog.aws.prices import CEILINGS, Price, on_demand, price, services

LEAST, MOST = Decimal("0.9"), Decimal("1.4")
"""Factors of the cheapest known region, and of the dearest."""
LEAST_BLOCK, MOST_BLOCK = Decimal("0.5"), Decimal(1)
"""Factors of the price on demand for a Capacity Block whose type has a price in no region. The one block that is
known costs 0.63 of it, and AWS reprices blocks by supply."""


@dataclass(frozen=True, kw_only=True)
class Guess:
    """Bounds between which a price probably lies."""

    usd: Decimal
    most_usd: Decimal
    unit: str


@cache
def guess(service: str, sku: str, region: str) -> Guess | None:
    """Guess at a price that is not known; None where it is known, and where no region has one."""
    if price(service, sku, region):
        return None
    known = [*_known(service, sku)]
    if not known:
        return _block(sku, region) if service == "ec2-block" else None
    return guess_from([each.usd for each in known], known[0].unit)


def _block(sku: str, region: str) -> Guess | None:
    found = price("ec2", sku, region)
    if found is None:
        return None
    return Guess(usd=LEAST_BLOCK * found.usd, most_usd=MOST_BLOCK * found.usd, unit=found.unit)


def guess_from(known: list[Decimal], unit: str) -> Guess:
    """Guess from the prices of other regions."""
    return Guess(usd=LEAST * min(known), most_usd=MOST * max(known), unit=unit)


def _known(service: str, sku: str) -> Iterator[Price]:
    """Prices of all regions that have one."""
    keys = [key for each in on_demand() for key in each.prices] if service == "ec2" else []
    regions = [region for kind, region in keys if kind == sku]
    regions += [region for *key, region in services() if key == [service, sku]]
    yield from (found for region in regions if (found := price(service, sku, region)))


@dataclass(frozen=True, kw_only=True)
class Quote:
    """A price, or what stands in its place: at most one is set."""

    price: Price | None
    ceiling: Price | None = None
    """The most that it costs; of spot without a price what on demand costs."""
    guess: Guess | None = None


def quote(service: str, sku: str, region: str) -> Quote:
    """The price of a region, or what stands in its place."""
    found = price(service, sku, region)
    if found:
        return Quote(price=found)
    limit = CEILINGS.get(service)
    if limit:
        ceiling = price(limit, sku, region)
        return Quote(
            price=None, ceiling=ceiling, guess=None if ceiling else guess(limit, sku, region)
        )
    return Quote(price=None, guess=guess(service, sku, region))
