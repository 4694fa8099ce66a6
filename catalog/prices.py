"""What AWS charges, where a dated price of the region itself is known; never a neighbouring
region's.

Seoul pays 23 % more than us-east-1 for a g6e, so a borrowed price is a wrong one. Instances are in
on_demand.json with their date and source; `python -m catalog.refresh --prices` writes today's. What
goes with them (EKS, NAT gateways, EBS, EFS, FSx) is known for few regions: no public list of the
others that carries its date was found on 2026-11-21.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Price:
    """What one unit costs."""

    usd: Decimal
    unit: str
    """hour, GB, GB-month, IOPS-month or MB/s-month."""
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


ON_DEMAND = read(ON_DEMAND_FILE.read_text())
_BLOG = "AWS blog of 2026, month unknown; AWS reprices Capacity Blocks by supply"
_PAGE = "price comparison c3x.dev and AWS price list, gathered in shared facts §5.1"
_MEMORY = "AWS price page from memory, not read again (shared facts §5.1)"
_EKS = "docs.aws.amazon.com/eks/latest/userguide/kubernetes-versions.html, read 2026-11-22"

# service, SKU, region, USD, unit, kind, as of, source
_OTHERS = (
    ("ec2-block", "p5.48xlarge", "us-east-1", "34.608", "hour", "capacity_block", "2026-01", _BLOG),
    ("eks", "cluster", "us-east-1", "0.10", "hour", "on_demand", "2026-11", _MEMORY),
    ("eks", "extended-support", "us-east-1", "0.50", "hour", "on_demand", "2026-11", _EKS),
    ("nat", "hour", "us-east-1", "0.045", "hour", "on_demand", "2026-11", _MEMORY),
    ("nat", "gb", "us-east-1", "0.045", "GB", "usage", "2026-11", _MEMORY),
    ("fsx-lustre", "SCRATCH_2", "us-east-1", "0.140", "GB-month", "storage", "2026-11", _PAGE),
    (
        "fsx-lustre",
        "PERSISTENT_2-125",
        "us-east-1",
        "0.145",
        "GB-month",
        "storage",
        "2026-11",
        _PAGE,
    ),
    (
        "fsx-lustre",
        "PERSISTENT_2-250",
        "us-east-1",
        "0.210",
        "GB-month",
        "storage",
        "2026-11",
        _MEMORY,
    ),
    (
        "fsx-lustre",
        "PERSISTENT_2-500",
        "us-east-1",
        "0.340",
        "GB-month",
        "storage",
        "2026-11",
        _MEMORY,
    ),
    (
        "fsx-lustre",
        "PERSISTENT_2-1000",
        "us-east-1",
        "0.600",
        "GB-month",
        "storage",
        "2026-11",
        _PAGE,
    ),
    (
        "fsx-lustre",
        "PERSISTENT_2-125",
        "eu-west-1",
        "0.160",
        "GB-month",
        "storage",
        "2026-11",
        _PAGE,
    ),
    (
        "fsx-lustre",
        "PERSISTENT_2-1000",
        "eu-west-1",
        "0.660",
        "GB-month",
        "storage",
        "2026-11",
        _PAGE,
    ),
    ("efs", "standard", "us-east-1", "0.30", "GB-month", "storage", "2026-11", _MEMORY),
    ("ebs", "gp3", "us-east-1", "0.08", "GB-month", "storage", "2026-11", _MEMORY),
    ("ebs", "gp3-iops", "us-east-1", "0.005", "IOPS-month", "storage", "2026-11", _MEMORY),
    ("ebs", "gp3-mbps", "us-east-1", "0.04", "MB/s-month", "storage", "2026-11", _MEMORY),
)


PRICES: dict[tuple[str, str, str], Price] = {
    **{
        ("ec2", name, region): Price(
            usd=usd, unit="hour", kind="on_demand", as_of=each.as_of, source=each.source
        )
        for each in ON_DEMAND
        for (name, region), usd in each.prices.items()
    },
    **{
        (service, sku, region): Price(
            usd=Decimal(usd), unit=unit, kind=kind, as_of=as_of, source=source
        )
        for service, sku, region, usd, unit, kind, as_of, source in _OTHERS
    },
}
"""Service, SKU and region → price. Spot ("ec2-spot") would be a spot_snapshot; no dated one is
known."""


def price(service: str, sku: str, region: str) -> Price | None:
    """The price of the region itself; None where none is known."""
    return PRICES.get((service, sku, region))


def lustre_per_month(
    region: str, deployment: str, tier: int | None, capacity_gib: int
) -> float | None:
    """USD a month of a Lustre file system; None where no price of that region is known."""
    found = price("fsx-lustre", deployment if tier is None else f"{deployment}-{tier}", region)
    return None if found is None else float(found.usd * capacity_gib)
