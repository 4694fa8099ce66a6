"""Figures of a store for reports: stages of the timeline, lines of the cost, a row of `trainyard
plan`."""

from __future__ import annotations

from dataclasses import dataclass

from trainyard.catalog.aws.latencies import LATENCIES


@dataclass(frozen=True, kw_only=True)
class Stage:
    """Something that takes noticeable time."""

    name: str
    seconds: float
    after: tuple[str, ...] = ()
    """Names of the stages it waits for."""
    slow_seconds: float = 0
    """Seconds that one creation in ten takes at least; no less than `seconds`."""
    row: str = ""
    """Row of LATENCIES that says how long it takes."""


def took(name: str, latency: str, after: tuple[str, ...] = (), times: int = 1) -> Stage:
    """A stage that takes as long as a row of LATENCIES, so many times one after the other."""
    took = LATENCIES[latency]
    return Stage(
        name=name,
        seconds=times * took.typical,
        slow_seconds=times * took.slow,
        after=after,
        row=latency,
    )


@dataclass(frozen=True, kw_only=True)
class FixedCost:
    """A price that is paid by the month, used or not."""

    what: str
    service: str
    """With `sku`, a price of trainyard/catalog/aws/prices.py."""
    sku: str
    units: int
    """Number of the price's units."""


@dataclass(frozen=True, kw_only=True)
class UsageCost:
    """A cost that grows with use, so that only its rate is known."""

    what: str
    service: str
    """With `sku`, a price of trainyard/catalog/aws/prices.py."""
    sku: str
    quantity: int | None = None
    """Number of the price's units that the plan expects; None where nobody knows."""
    over: str = ""
    """Words for what `quantity` is counted over, such as "a month"."""


@dataclass(frozen=True, kw_only=True)
class StoreRow:
    """A store in the table of `trainyard plan`."""

    kind: str
    size: str
    speed: str
