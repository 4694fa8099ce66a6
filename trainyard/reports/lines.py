"""Arithmetic of an estimate: a line from quantities and prices, and the sum of lines.

A line whose price is not known, but the most that it can be, has a ceiling: its sum says "between".
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal

from trainyard.catalog.aws.prices import Price
from trainyard.reports.amounts import Line, PricedQuantity, Total

HOURS = 730
"""Hours of a month, as AWS's price pages count."""
CENT, MILLIONTH = Decimal("1e-2"), Decimal("1e-6")


def per_hour(found: Price, quantity: int) -> Decimal:
    """USD an hour of a quantity, whose price is by the hour or by the month."""
    return found.usd * quantity / (HOURS if "month" in found.unit else 1)


def part_of(found: Price | None, quantity: int, ceiling: Price | None = None) -> PricedQuantity:
    """A quantity with its price. `ceiling`: the most that one of it costs where `found` is None."""
    if found is not None:
        hour = per_hour(found, quantity).quantize(MILLIONTH)
        return PricedQuantity(
            quantity=quantity,
            unit=found.unit,
            usd_each=found.usd,
            usd_per_hour=hour,
            most_usd_per_hour=hour,
            as_of=found.as_of,
        )
    return PricedQuantity(
        quantity=quantity,
        unit=ceiling.unit if ceiling else "",
        usd_each=None,
        usd_per_hour=None,
        most_usd_per_hour=per_hour(ceiling, quantity).quantize(MILLIONTH) if ceiling else None,
        as_of=ceiling.as_of if ceiling else None,
    )


def line_of(
    what: str,
    parts: Sequence[tuple[Price | None, int]],
    assumption: str = "",
    ceiling: Price | None = None,
) -> Line:
    """A line from prices and how many of their units, by the hour or by the month; an unknown one
    leaves it open. `ceiling`: the most that a unit costs where its price is not known."""
    known = [(found, count) for found, count in parts if found]
    hour = sum((per_hour(found, count) for found, count in known), Decimal())
    whole = len(known) == len(parts)
    priced = tuple(part_of(found, count, ceiling) for found, count in parts)
    bounded = _sum([part.most_usd_per_hour for part in priced])
    return Line(
        what=what,
        usd_per_hour=hour.quantize(MILLIONTH) if whole else None,
        most_usd_per_hour=hour.quantize(MILLIONTH) if whole else bounded,
        assumption=assumption,
        usd_per_month=(hour * HOURS).quantize(CENT) if whole else None,
        as_of=min((part.as_of for part in priced if part.as_of), default=None),
        parts=priced,
    )


def total_of(lines: Iterable[Line]) -> Total:
    """Sum of the known prices of the lines. Their months add up only where all of them have one."""
    every = tuple(lines)
    return Total(
        usd_per_hour=sum(map(known, every), Decimal()),
        most_usd_per_hour=_sum([line.most_usd_per_hour for line in every]),
        usd_per_month=_months(every),
        priced=sum(not line.missing for line in every),
        lines=len(every),
        as_of=min((line.as_of for line in every if line.as_of), default=None),
        missing=tuple(line.what for line in every if line.missing),
    )


def _months(every: Sequence[Line]) -> Decimal | None:
    """Months of the lines, and 730 hours of what is known of a line that is open."""
    whole = _sum([line.usd_per_month for line in every if line.usd_per_hour is not None])
    opened = sum((known(line) for line in every if line.usd_per_hour is None), Decimal())
    return None if whole is None else whole + (opened * HOURS).quantize(CENT)


def _sum(amounts: Sequence[Decimal | None]) -> Decimal | None:
    """Sum of the amounts; None where one of them is not known."""
    known_ones = [usd for usd in amounts if usd is not None]
    return sum(known_ones, Decimal()) if len(known_ones) == len(amounts) else None


def known(line: Line) -> Decimal:
    """Known part of an hour's price."""
    if line.usd_per_hour is not None:
        return line.usd_per_hour
    return sum((part.usd_per_hour or Decimal() for part in line.parts), Decimal())
