"""Contents of an estimate: lines with their prices, sums of lines, and jobs. Its maker: cost.py."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """Dollars with guesses in place of the prices that are missing. They are in no other sum."""

    usd: Decimal
    most_usd: Decimal


@dataclass(frozen=True, kw_only=True)
class PricedQuantity:
    """A quantity of something that has one price."""

    quantity: int
    unit: str
    """Unit of its price, also where only other regions have one; empty where none has."""
    usd_each: Decimal | None
    usd_per_hour: Decimal | None
    """To the millionth; None where no price of the region is known."""
    as_of: str | None
    """Date of its price, or of its ceiling."""
    most_usd_per_hour: Decimal | None
    """Equal to usd_per_hour where the price is known; of spot without a price what on demand costs; None where
    neither is known."""
    guess: Bounds | None = None
    """An hour of it; of a Capacity Block the whole. None where a price is known, and where no region has one."""


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
    most_usd_per_hour: Decimal | None = None
    """Equal to usd_per_hour where that is known; of spot without a price what on demand costs;
    None where neither is known."""
    guess: Bounds | None = None
    """An hour of a line that misses a price; of a Capacity Block the whole. None where nothing is missing, or a
    price has no guess."""

    @property
    def missing(self) -> bool:
        """True where neither a price nor the most that it can be is known of something in the sum."""
        return any(part.usd_each is None and part.most_usd_per_hour is None for part in self.parts)


@dataclass(frozen=True, kw_only=True)
class Total:
    """A sum of lines: a lower bound unless all are priced."""

    usd_per_hour: Decimal
    """Known part of the sum: the lower bound where it has spot without a price, or misses a price."""
    most_usd_per_hour: Decimal | None
    """Equal to usd_per_hour where every price is known, and the upper bound where one has a ceiling only; None
    where a price is missing."""
    usd_per_month: Decimal | None
    """None where a line of it has no month."""
    priced: int
    lines: int
    as_of: str | None
    """Date of the oldest price."""
    missing: tuple[str, ...]
    """The lines that have no price and no ceiling, or not all of them. What is known of them is in the
    sum."""
    guess: Bounds | None = None
    """The sum with guesses for those lines; None where nothing is missing, or a line has no guess."""


@dataclass(frozen=True, kw_only=True)
class Amount:
    """Dollars that somebody signs: a whole sum, a lower bound, or a lower and an upper bound."""

    usd: Decimal | None
    """Known part of the amount; None where no price is known."""
    most_usd: Decimal | None
    """Equal to usd where it is whole; None where a price is missing."""
    as_of: str | None
    """Date of the oldest price."""
    said: str
    """The amount in words."""
    guess: Bounds | None = None
    """The amount with guesses for the prices that it misses; None where it misses none, or one has no guess."""


def amount(
    usd: Decimal | None,
    most_usd: Decimal | None,
    as_of: str | None,
    places: int = 2,
    guess: Bounds | None = None,
) -> Amount:
    """An amount with its words: whole, "at least", or "between … and …", with the date of its oldest
    price. With `guess` its range stands first: a floor alone would be read as the sum."""
    said = figures(usd, most_usd, places)
    if as_of and said != "no price":
        said += f", oldest price {as_of}"
    if guess:
        between = f"between {guess.usd:,.{places}f} and {guess.most_usd:,.{places}f}"
        said = f"{between} with guessed prices; without them {said}"
    return Amount(usd=usd, most_usd=most_usd, as_of=as_of, said=said, guess=guess)


def figures(usd: Decimal | None, most_usd: Decimal | None, places: int = 2) -> str:
    """An amount in words, without its date and without guesses."""
    if usd is None or (most_usd is None and not usd):
        return "no price"
    if most_usd is None:
        return f"at least {usd:,.{places}f}"
    if most_usd > usd:
        return f"between {usd:,.{places}f} and {most_usd:,.{places}f}"
    return f"{usd:,.{places}f}"


@dataclass(frozen=True, kw_only=True)
class PaidOnce:
    """Sum that is paid in advance, beside every hour: a lower bound unless all of it is priced."""

    usd_once: Decimal | None
    """None where no price of it is known."""
    as_of: str | None
    """Date of the oldest price."""
    missing: tuple[str, ...]
    """The Capacity Blocks that have no price."""
    guess: Bounds | None = None
    """The sum with guesses for those blocks; None where nothing is missing, or a block has no guess."""


@dataclass(frozen=True, kw_only=True)
class JobCost:
    """The nodes of one job. Each amount is what is known of it; None where nothing is, or where the
    stack file does not say enough. On spot without a price a start, a failure and an idle minute are
    what they cost at most."""

    job: str
    nodes: int
    usd_per_hour: Decimal | None
    """None where a price is not known."""
    at_least_usd_per_hour: Decimal | None
    """Known part of the price, such as the nodes without their disks."""
    most_usd_per_hour: Decimal | None
    """Equal to usd_per_hour where that is known; of spot what on demand costs; None where a price
    is missing."""
    usd_per_idle_minute: Decimal | None
    """Price of a minute in which its nodes run and do not train."""
    cold_start_seconds: float
    cold_start_usd: Decimal | None
    """From the launch of its nodes to its first step, to the cent."""
    image_usd: Decimal | None
    """Data of the images that its new nodes pull through the NAT gateway, to the cent; nothing where
    the stack has none."""
    saves_usd: Decimal | None
    """Writes of the checkpoints of a run of its expected hours, to the cent: EFS with elastic throughput
    is paid by the GB. 0 where a store takes no money for them or no interval is known; None where the
    write has no price. A team's job has 0: the environment pays for its stores."""
    failure_usd: Decimal | None
    """The work that a failure undoes and the restart, to the cent; None where its checkpoints are
    not known."""
    usd: Decimal | None
    """A run of its expected hours, to the cent, with its start."""
    most_usd: Decimal | None
    """The most that such a run costs, to the cent; None where usd is None or a price is missing."""
    added: Amount | None
    """A run of its expected hours, as far as nobody would pay it without the run; of a Capacity Block its
    share. None without expected_hours."""
    all_in: Amount | None
    """A run of its expected hours with all that the environment costs meanwhile, nodes that are paid
    anyway counted once; of a Capacity Block its share. Of a team's job: the same as usd. None without
    expected_hours."""
    prepaid: bool
    """Its nodes are those of a Capacity Block, which is paid already: the amounts are its share."""
    missing: tuple[str, ...]
    """Names of what has no price."""

    @property
    def at_most(self) -> bool:
        """True on spot without a price, where the price on demand is the most that an hour costs."""
        return self.usd_per_hour is None and self.most_usd_per_hour is not None


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """Costs of an environment: fixed and storage while idle, work on top."""

    fixed: tuple[Line, ...]
    """Control plane, NAT gateways, system nodes, and nodes that are paid while no job runs."""
    storage: tuple[Line, ...]
    work: tuple[Line, ...]
    """Costs on top while all jobs run, as far as their pools go."""
    full: tuple[Line, ...]
    """Costs on top of `fixed` and `storage` while all pools are full."""
    once: tuple[Line, ...]
    """Capacity Blocks."""
    usage: tuple[Line, ...]
    """Grows with use, and is in no sum."""
    jobs: tuple[JobCost, ...]
    paid_once: PaidOnce | None
    """The sum of `once`, which no sum by the hour contains; None where there is nothing of it."""
    idle: Total
    at_work: Total | None
    """While all its jobs run; None where the stack has no jobs of its own."""
    all_full: Total


@dataclass(frozen=True, kw_only=True)
class TeamEstimate:
    """Costs of a team's jobs. The environment pays for everything else."""

    jobs: tuple[JobCost, ...]
    at_work: Total
    """All jobs at once."""
