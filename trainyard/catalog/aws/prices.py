"""Prices of AWS, where a dated one of the region itself is known; never a neighbouring region's.

Seoul pays 23 % more than us-east-1 for a g6e, so a borrowed price is a wrong one. Instances are in
on_demand.json; what goes with them (EKS, NAT gateways, EBS, EFS, FSx) is in service_prices.json.
Both have a date and a source for each price. `python -m trainyard.catalog.refresh --prices` writes today's.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from functools import cache
from pathlib import Path

from trainyard.catalog.aws.age import FRESH_FOR, days_old


@dataclass(frozen=True, kw_only=True)
class Price:
    """Price of one unit."""

    usd: Decimal
    unit: str
    """hour, GB, GB-month, IOPS-month, MB/s-month, million samples or thousand requests."""
    kind: str
    """on_demand, capacity_block, spot_snapshot, storage or usage."""
    as_of: str
    """Day or month."""
    source: str


@dataclass(frozen=True, kw_only=True)
class PriceList:
    """On-demand prices that were read together."""

    as_of: str
    """Day; the earliest it can be of where the source does not say."""
    source: str
    prices: Mapping[tuple[str, str], Decimal]
    """Instance type and region → USD an hour, Linux, shared tenancy."""


ON_DEMAND_FILE = Path(__file__).with_name("on_demand.json")
SERVICES_FILE = Path(__file__).with_name("service_prices.json")

UNITS: dict[tuple[str, str], tuple[str, str]] = {
    ("eks", "cluster"): ("hour", "on_demand"),
    ("eks", "extended-support"): ("hour", "on_demand"),
    ("eks", "tier-xl"): ("hour", "on_demand"),
    ("eks", "tier-2xl"): ("hour", "on_demand"),
    ("eks", "tier-4xl"): ("hour", "on_demand"),
    ("eks", "tier-8xl"): ("hour", "on_demand"),
    ("nat", "hour"): ("hour", "on_demand"),
    ("nat", "gb"): ("GB", "usage"),
    ("vpc", "public-ipv4"): ("hour", "on_demand"),
    ("vpc", "endpoint-hour"): ("hour", "on_demand"),
    ("vpc", "endpoint-gb"): ("GB", "usage"),
    ("ebs", "gp3"): ("GB-month", "storage"),
    ("ebs", "gp3-iops"): ("IOPS-month", "storage"),
    ("ebs", "gp3-mbps"): ("MB/s-month", "storage"),
    ("efs", "standard"): ("GB-month", "storage"),
    ("efs", "read"): ("GB", "usage"),
    ("efs", "write"): ("GB", "usage"),
    ("efs", "provisioned"): ("MB/s-month", "storage"),
    ("efs", "infrequent"): ("GB-month", "storage"),
    ("efs", "archive"): ("GB-month", "storage"),
    ("efs", "backup"): ("GB-month", "storage"),
    ("fsx-lustre", "SCRATCH_2"): ("GB-month", "storage"),
    ("fsx-lustre", "PERSISTENT_2-125"): ("GB-month", "storage"),
    ("fsx-lustre", "PERSISTENT_2-250"): ("GB-month", "storage"),
    ("fsx-lustre", "PERSISTENT_2-500"): ("GB-month", "storage"),
    ("fsx-lustre", "PERSISTENT_2-1000"): ("GB-month", "storage"),
    ("fsx-lustre", "metadata"): ("IOPS-month", "storage"),
    ("fsx-lustre", "backup"): ("GB-month", "storage"),
    ("s3", "standard"): ("GB-month", "storage"),
    ("s3", "put"): ("thousand requests", "usage"),
    ("logs", "ingested"): ("GB", "usage"),
    ("prometheus", "samples"): ("million samples", "usage"),
    ("transfer", "between-zones"): ("GB", "usage"),
}
"""Service and SKU → unit and kind of its price. `extended-support` and a tier are added to `cluster`. A
`public-ipv4` costs the same in use and idle, an `endpoint-hour` counts for each zone, and
`between-zones` is paid in each direction. `standard` of S3 is the price of the first 50 TB. `samples` is the
price of the first 2 billion a month, of which 40 million are free. EFS counts provisioned throughput in
MiB/s."""

CAPACITY_SERVICES = {
    "on_demand": "ec2",
    "reservation": "ec2",
    "spot": "ec2-spot",
    "block": "ec2-block",
}
"""Capacity of a pool → the service whose prices its nodes have."""
CEILINGS = {"ec2-spot": "ec2"}
"""Service → the service whose price is the most that it costs. A spot request pays at most the price on
demand unless it names another limit (EC2 user guide, spot requests), and Karpenter names none."""


def read(text: str) -> tuple[PriceList, ...]:
    """The lists of on_demand.json: a line there is one family in one region."""
    return tuple(
        PriceList(
            as_of=each["as_of"],
            source=each["source"],
            prices={
                (f"{family}.{size}", region): Decimal(usd)
                for region, family, sizes in each["prices"]
                for size, _, usd in (part.partition("=") for part in sizes.split())
            },
        )
        for each in json.loads(text)
    )


def read_services(text: str) -> dict[tuple[str, str, str], Price]:
    """The prices of service_prices.json: a line there is one price in one region."""
    found: dict[tuple[str, str, str], Price] = {}
    for each in json.loads(text):
        for service, sku, region, usd in each["prices"]:
            unit, kind = UNITS.get((service, sku), ("hour", "capacity_block"))
            found[service, sku, region] = Price(
                usd=Decimal(usd), unit=unit, kind=kind, as_of=each["as_of"], source=each["source"]
            )
    return found


@cache
def on_demand() -> tuple[PriceList, ...]:
    """The lists of on_demand.json. They are read when a price is asked for: most commands ask for
    few."""
    return read(ON_DEMAND_FILE.read_text())


@cache
def services() -> dict[tuple[str, str, str], Price]:
    """The prices of service_prices.json. A Capacity Block is "ec2-block". Spot ("ec2-spot") would be
    a spot_snapshot; no dated one is known."""
    return read_services(SERVICES_FILE.read_text())


@cache
def price(service: str, sku: str, region: str) -> Price | None:
    """The price of the region itself; None where none is known. Service "ec2" has the instances
    on demand."""
    if service != "ec2":
        return services().get((service, sku, region))
    for each in on_demand():
        if (usd := each.prices.get((sku, region))) is not None:
            return Price(
                usd=usd, unit="hour", kind="on_demand", as_of=each.as_of, source=each.source
            )
    return None


def lustre_per_month(
    region: str, deployment: str, tier: int | None, capacity_gib: int
) -> float | None:
    """USD a month of a Lustre file system; None where no price of that region is known."""
    found = price("fsx-lustre", deployment if tier is None else f"{deployment}-{tier}", region)
    return None if found is None else float(found.usd * capacity_gib)


def stale(dates: Iterable[str | None], today: date) -> str | None:
    """A sentence about prices of the given dates of which some are over 180 days old; None where
    all are newer. None among the dates is a price that is not known."""
    old = [as_of for as_of in dates if as_of and days_old(as_of, today) > FRESH_FOR.days]
    if not old:
        return None
    return (
        f"some of these prices are older than {FRESH_FOR.days} days, the oldest is of {min(old)}:"
        f" `python -m trainyard.catalog.refresh --prices` reads today's"
    )
