"""What a store says about itself in reports: stages of the timeline, lines of the cost, a row of
`make plan`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Stage:
    """Something that takes noticeable time."""

    name: str
    seconds: float
    after: tuple[str, ...] = ()
    """Names of the stages it waits for."""


@dataclass(frozen=True, kw_only=True)
class FixedCost:
    """What is paid by the month, used or not."""

    what: str
    service: str
    """With `sku`, a price of catalog/prices.py."""
    sku: str
    units: int
    """Number of the price's units."""


@dataclass(frozen=True, kw_only=True)
class UsageCost:
    """What grows with use, so that only its rate is known."""

    what: str
    service: str
    """With `sku`, a price of catalog/prices.py."""
    sku: str


@dataclass(frozen=True, kw_only=True)
class StoreRow:
    """A store in the table of `make plan`."""

    kind: str
    size: str
    speed: str
