"""Dollars of `trainyard prove`: no step begins that could cost more than is left, and one that does is
stopped while there is money to delete it."""

from __future__ import annotations

from decimal import Decimal

import pytest

from trainyard.operations.prove.limit import Offer, fits, seconds_left, spent, usd_of
from trainyard.operations.prove.record import Done, epoch
from trainyard.operations.prove.steps import DESTROY_MINUTES, STEPS, Step

HOUR = 3600.0
BUILDS = Step(name="small", does="makes", builds=True, minutes=15)
READS = Step(name="questions", does="asks")
NOON = "2026-11-27T12:00:00Z"


def _at(minutes: float) -> str:
    return f"2026-11-27T12:{int(minutes):02d}:00Z"


def _done(
    name: str, start: float, rate: str, end: float | None = None, after: bool = False
) -> Done:
    return Done(
        name=name,
        state="done" if end is not None else "running",
        start=_at(start),
        end=_at(end) if end is not None else "",
        usd_per_hour=rate,
        usd_per_hour_after=after,
    )


def test_a_step_is_priced_with_what_deleting_it_takes() -> None:
    offer = Offer(step=BUILDS, usd_per_hour=Decimal("6"))
    assert offer.most_usd == Decimal(str(round((30 + DESTROY_MINUTES) / 10, 2)))
    assert f"at most {offer.most_usd} USD, deleting it included" in offer.said(
        Decimal(1), Decimal(9)
    )
    assert "spent so far 1.00 of 9.00 USD" in offer.said(Decimal(1), Decimal(9))


def test_reading_costs_nothing_and_fits_into_no_limit_at_all() -> None:
    offer = Offer(step=READS, usd_per_hour=Decimal())
    assert offer.most_usd == 0 and fits(offer, Decimal(), Decimal())
    assert offer.said(Decimal(), Decimal()) == "questions: asks; costs nothing"


@pytest.mark.parametrize(("left", "begins"), [("-0.01", False), ("0", True), ("0.01", True)])
def test_a_step_begins_where_its_most_is_left(left: str, begins: bool) -> None:
    offer = Offer(step=BUILDS, usd_per_hour=Decimal("6"))
    limit = Decimal(3) + offer.most_usd + Decimal(left)
    assert fits(offer, Decimal(3), limit) is begins


def test_what_stands_is_paid_until_the_next_step_begins_also_while_somebody_thinks() -> None:
    steps = [
        _done("questions", 0, "0", 1),
        _done("small", 2, "1.50", 22, after=True),
        _done("destroy", 32, "1.50", 42),
    ]
    usd = usd_of(steps, epoch(NOON) + HOUR)
    assert usd == {"questions": Decimal(0), "small": Decimal("0.75"), "destroy": Decimal("0.25")}
    assert spent(steps, epoch(NOON) + HOUR) == 1
    standing = steps[:2]
    assert spent(standing, epoch(NOON) + HOUR) == Decimal("1.45"), "nobody has deleted it yet"
    assert spent([], 0) == 0


def test_a_step_that_was_killed_is_paid_for_until_now() -> None:
    assert spent([_done("small", 0, "2")], epoch(NOON) + HOUR) == 2


def test_a_step_is_stopped_while_there_is_money_to_delete_it() -> None:
    rate, limit = Decimal(6), Decimal(10)
    left = seconds_left(limit, Decimal(4), rate)
    assert left == pytest.approx(HOUR - DESTROY_MINUTES * 60)
    assert seconds_left(limit, Decimal(10), rate) == 0
    assert seconds_left(limit, Decimal(99), Decimal()) is None


def test_a_step_that_fits_is_not_stopped_before_its_most() -> None:
    for step in (step for step in STEPS if step.builds):
        offer = Offer(step=step, usd_per_hour=Decimal("5.86"))
        left = seconds_left(offer.most_usd, Decimal(), offer.usd_per_hour)
        assert left == pytest.approx(step.most_minutes * 60, abs=10)
