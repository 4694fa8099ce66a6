"""What an estimate consists of: lines with their prices, sums of lines, and jobs. Who makes it: cost.py."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal


@dataclass(frozen=True, kw_only=True)
class PricedQuantity:
    """A quantity of something that has one price."""

    quantity: int
    unit: str
    """Unit of its price; empty where no price is known."""
    usd_each: Decimal | None
    usd_per_hour: Decimal | None
    """To the millionth; None where no price of the region is known."""
    as_of: str | None
    """Date of its price."""


@dataclass(frozen=True, kw_only=True)
class Line:
    """One thing that costs money."""

    what: str
    usd_per_hour: Decimal | None
    """To the millionth; None where a price of the region is not known, where it grows with use, and
    of a Capacity Block."""
    usd_per_month: Decimal | None
    """USD for 730 hours, to the cent; None where usd_per_hour is None, and where nobody would pay
    for a month: work, and a Capacity Block."""
    assumption: str
    as_of: str | None
    """Date of the oldest price in it."""
    parts: tuple[PricedQuantity, ...] = ()
    usd_once: Decimal | None = None
    """Price of a Capacity Block, which is paid in advance for all of its hours."""

    @property
    def missing(self) -> bool:
        """Whether a price in it is not known."""
        return any(part.usd_each is None for part in self.parts)


@dataclass(frozen=True, kw_only=True)
class Total:
    """A sum of lines: a lower bound unless all are priced."""

    usd_per_hour: Decimal
    usd_per_month: Decimal | None
    """None where a line of it has no month."""
    priced: int
    lines: int
    as_of: str | None
    """Date of the oldest price."""
    missing: tuple[str, ...]
    """The lines that have no price, or not all of them. What is known of them is in the sum."""


@dataclass(frozen=True, kw_only=True)
class PaidOnce:
    """What is paid in advance, beside every hour: a lower bound unless all of it is priced."""

    usd_once: Decimal | None
    """None where no price of it is known."""
    as_of: str | None
    """Date of the oldest price."""
    missing: tuple[str, ...]
    """The Capacity Blocks that have no price."""


@dataclass(frozen=True, kw_only=True)
class JobCost:
    """The nodes of one job. Each amount is what is known of it; None where nothing is, or where the
    stack file does not say enough."""

    job: str
    nodes: int
    usd_per_hour: Decimal | None
    """None where a price is missing."""
    at_least_usd_per_hour: Decimal | None
    """What is known of it, such as the nodes without their disks."""
    usd_per_idle_minute: Decimal | None
    """What a minute costs in which its nodes run and do not train."""
    cold_start_seconds: float
    cold_start_usd: Decimal | None
    """From the launch of its nodes to its first step, to the cent."""
    image_usd: Decimal | None
    """Data of the images that its new nodes pull through the NAT gateway, to the cent; nothing where
    the stack has none."""
    failure_usd: Decimal | None
    """The work that a failure undoes and the restart, to the cent; None where its checkpoints are
    not known."""
    usd: Decimal | None
    """A run of its expected hours, to the cent, with its start."""
    prepaid: bool
    """Its nodes are those of a Capacity Block, which is paid already: the amounts are its share."""
    missing: tuple[str, ...]
    """What has no price."""


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """What an environment costs: fixed and storage while idle, work on top."""

    fixed: tuple[Line, ...]
    """Control plane, NAT gateways, system nodes, and nodes that are paid while no job runs."""
    storage: tuple[Line, ...]
    work: tuple[Line, ...]
    """What comes on top while all jobs run, as far as their pools go."""
    full: tuple[Line, ...]
    """What comes on top of `fixed` and `storage` while all pools are full."""
    once: tuple[Line, ...]
    """Capacity Blocks."""
    usage: tuple[Line, ...]
    """Grows with use, and is in no sum."""
    jobs: tuple[JobCost, ...]
    paid_once: PaidOnce | None
    """The sum of `once`, which no sum by the hour contains; None where there is nothing of it."""
    idle: Total
    at_work: Total
    all_full: Total


@dataclass(frozen=True, kw_only=True)
class TeamEstimate:
    """What the jobs of a team cost. The environment pays for everything else."""

    jobs: tuple[JobCost, ...]
    at_work: Total
    """All jobs at once."""
