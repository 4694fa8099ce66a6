"""Dollars of `trainyard prove`: the most that a step costs, what was spent by list prices, and for how long
a limit lasts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from trainyard.operations.prove.record import Done, epoch
from trainyard.operations.prove.steps import DESTROY_MINUTES, Step

CENT = Decimal("0.01")


@dataclass(frozen=True, kw_only=True)
class Offer:
    """A step with its price."""

    step: Step
    usd_per_hour: Decimal
    """While the step runs: the environment with every pool full."""

    @property
    def most_usd(self) -> Decimal:
        """The step for the most minutes it takes, and then the minutes of destroying it; 0 for a step that
        builds nothing."""
        if not self.step.builds:
            return Decimal()
        minutes = Decimal(self.step.most_minutes + DESTROY_MINUTES)
        return (self.usd_per_hour * minutes / 60).quantize(CENT)

    def said(self, spent: Decimal, limit: Decimal) -> str:
        """Sentence about the price, before the question."""
        if not self.step.builds:
            free = "is in the prices before" if self.step.cleans else "costs nothing"
            return f"{self.step.name}: {self.step.does}; {free}"
        return (
            f"{self.step.name}: {self.step.does}; at most {self.most_usd:,.2f} USD, deleting it included"
            f" ({self.usd_per_hour:,.2f} USD an hour for {self.step.most_minutes + DESTROY_MINUTES:.0f}"
            f" minutes); spent so far {spent:,.2f} of {limit:,.2f} USD"
        )


def fits(offer: Offer, spent: Decimal, limit: Decimal) -> bool:
    """True where the most that the step costs is no more than what is left of the limit."""
    return spent + offer.most_usd <= limit


def spent(steps: Sequence[Done], now: float) -> Decimal:
    """USD by list price and time. What a step makes is paid until the next one begins, also while somebody
    is asked; what destroying leaves is not counted. `now`: Unix seconds."""
    each = usd_of(steps, now).values()
    return sum(each, Decimal())


def usd_of(steps: Sequence[Done], now: float) -> dict[str, Decimal]:
    """Step → USD from its start to the start of the next one, of the last one to its end, or until `now`
    where what it made still stands."""
    ends = [epoch(step.start) for step in steps[1:]]
    if steps:
        last = steps[-1]
        ends.append(epoch(last.end) if last.end and not last.usd_per_hour_after else now)
    return {
        step.name: (
            Decimal(step.usd_per_hour) * Decimal(max(0.0, end - epoch(step.start))) / 3600
        ).quantize(CENT)
        for step, end in zip(steps, ends, strict=True)
    }


def seconds_left(limit: Decimal, spent: Decimal, usd_per_hour: Decimal) -> float | None:
    """Seconds after which a step that runs must be stopped, so that destroying what it made stays within
    the limit; None where it costs nothing."""
    if not usd_per_hour:
        return None
    hours = float((limit - spent) / usd_per_hour) - DESTROY_MINUTES / 60
    return max(0.0, hours * 3600)
