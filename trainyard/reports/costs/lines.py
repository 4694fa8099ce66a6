"""Arithmetic of an estimate: a line from quantities and prices, and the sum of lines.

A line whose price is not known, but the most that it can be, has a ceiling: its sum says "between". A guess is
in a range of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal

from trainyard.catalog.aws.prices import Price
from trainyard.catalog.aws.quotes import Guess, Quote
from trainyard.reports.costs.amounts import Amount, Bounds, Line, PricedQuantity, Total, amount

HOURS = 730
"""Hours of a month, as AWS's price pages count."""
CENT, MILLIONTH = Decimal("1e-2"), Decimal("1e-6")


def per_hour(found: Price, quantity: int) -> Decimal:
    """USD an hour of a quantity, whose price is by the hour or by the month."""
    return found.usd * quantity / (HOURS if "month" in found.unit else 1)


def part_of(offered: Quote, quantity: int) -> PricedQuantity:
    """A quantity with its price, the most that it costs, or a guess."""
    found, ceiling, guess = offered.price, offered.ceiling, offered.guess
    known = found or ceiling
    of_unit = known or guess
    hour = per_hour(known, quantity).quantize(MILLIONTH) if known else None
    return PricedQuantity(
        quantity=quantity,
        unit=of_unit.unit if of_unit else "",
        usd_each=found.usd if found else None,
        usd_per_hour=hour if found else None,
        most_usd_per_hour=hour,
        as_of=known.as_of if known else None,
        guess=_guessed(guess, quantity) if guess else None,
    )


def _guessed(guess: Guess, quantity: int) -> Bounds:
    """An hour of a quantity whose price is a guess."""
    hours = HOURS if "month" in guess.unit else 1
    least, most = (usd * quantity / hours for usd in (guess.usd, guess.most_usd))
    return Bounds(usd=least.quantize(MILLIONTH), most_usd=most.quantize(MILLIONTH))


def line_of(what: str, parts: Sequence[tuple[Quote, int]], assumption: str = "") -> Line:
    """A line from prices and how many of their units, by the hour or by the month; an unknown one
    leaves it open."""
    known = [(each.price, count) for each, count in parts if each.price]
    hour = sum((per_hour(found, count) for found, count in known), Decimal())
    whole = len(known) == len(parts)
    priced = tuple(part_of(each, count) for each, count in parts)
    bounded = _sum([part.most_usd_per_hour for part in priced])
    return Line(
        what=what,
        usd_per_hour=hour.quantize(MILLIONTH) if whole else None,
        most_usd_per_hour=hour.quantize(MILLIONTH) if whole else bounded,
        assumption=assumption,
        usd_per_month=(hour * HOURS).quantize(CENT) if whole else None,
        as_of=min((part.as_of for part in priced if part.as_of), default=None),
        parts=priced,
        guess=_with_guesses(priced) if bounded is None else None,
    )


def total_of(lines: Iterable[Line]) -> Total:
    """Sum of the known prices of the lines. Their months add up only where all of them have one."""
    every = tuple(lines)
    most = _sum([line.most_usd_per_hour for line in every])
    return Total(
        usd_per_hour=sum(map(known, every), Decimal()),
        most_usd_per_hour=most,
        usd_per_month=_months(every),
        priced=sum(not line.missing for line in every),
        lines=len(every),
        as_of=min((line.as_of for line in every if line.as_of), default=None),
        missing=tuple(line.what for line in every if line.missing),
        guess=_with_guesses(every) if most is None else None,
    )


def _with_guesses(every: Iterable[Line | PricedQuantity]) -> Bounds | None:
    """Sum of what is known, of ceilings, and of guesses; None where something has none of these."""
    bounds = [
        each.guess or bounds_of(each.usd_per_hour or Decimal(), each.most_usd_per_hour)
        for each in every
    ]
    return sum_of(bounds)


def bounds_of(usd: Decimal, most_usd: Decimal | None) -> Bounds | None:
    """Bounds of a sum that misses no price; None of another."""
    return None if most_usd is None else Bounds(usd=usd, most_usd=most_usd)


def sum_of(every: Iterable[Bounds | None]) -> Bounds | None:
    """Sum of bounds; None where one of them is not known."""
    found = [*every]
    known_ones = [each for each in found if each]
    if len(known_ones) < len(found):
        return None
    return Bounds(
        usd=sum((each.usd for each in known_ones), Decimal()),
        most_usd=sum((each.most_usd for each in known_ones), Decimal()),
    )


def times(bounds: Bounds | None, count: Decimal | int) -> Bounds | None:
    """So many times the bounds, to the cent."""
    if bounds is None:
        return None
    return Bounds(
        usd=(bounds.usd * count).quantize(CENT), most_usd=(bounds.most_usd * count).quantize(CENT)
    )


def month_of(total: Total) -> Amount:
    """A month of a sum. Its whole month stands in the table of money, and is the same here."""
    least, most = total.usd_per_hour, total.most_usd_per_hour
    month = total.usd_per_month
    known = month if month is not None else (least * HOURS).quantize(CENT)
    highest = None if most is None else (most * HOURS).quantize(CENT)
    return amount(
        known, known if most == least else highest, total.as_of, guess=times(total.guess, HOURS)
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
