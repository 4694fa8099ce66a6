"""What AWS charges, where a dated price of the region itself is known; never a neighbouring region's.

Seoul pays 23 % more than us-east-1 for a g6e (SkyPilot's catalogue, an undated copy), so a borrowed price is a wrong
one. No public list of other regions that carries its date was found on 2026-11-21. A new region is new rows here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal


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


_KARPENTER = "Karpenter 1.14.1, zz_generated.pricing_aws.go, generated from the AWS price list"
_BLOG = "AWS blog of 2026, month unknown; AWS reprices Capacity Blocks by supply"
_PAGE = "price comparison c3x.dev and AWS price list, gathered in shared facts §5.1"
_MEMORY = "AWS price page from memory, not read again (shared facts §5.1)"

# us-east-1, Linux, USD an hour, of 2026-07-06. p5e is not sold there; the last families are for system nodes.
_ON_DEMAND = """
g5 xlarge=1.006 2xlarge=1.212 4xlarge=1.624 8xlarge=2.448 12xlarge=5.672 16xlarge=4.096 24xlarge=8.144 48xlarge=16.288
g6 xlarge=0.8048 2xlarge=0.9776 4xlarge=1.3232 8xlarge=2.0144 12xlarge=4.6016 16xlarge=3.3968 24xlarge=6.6752
g6 48xlarge=13.3504
g6e xlarge=1.861 2xlarge=2.24208 4xlarge=3.00424 8xlarge=4.52856 12xlarge=10.49264 16xlarge=7.57719 24xlarge=15.06559
g6e 48xlarge=30.13118
g7e 2xlarge=3.36312 4xlarge=3.99816 8xlarge=5.26824 12xlarge=8.28608 24xlarge=16.57216 48xlarge=33.14432
p4d 24xlarge=21.957642
p4de 24xlarge=27.44705
p5 4xlarge=6.88 48xlarge=55.04
p5en 48xlarge=63.296
p6-b200 48xlarge=113.9328
p6-b300 48xlarge=142.416
c7i 4xlarge=0.714 8xlarge=1.428 12xlarge=2.142 16xlarge=2.856 24xlarge=4.284 48xlarge=8.568
m7i 4xlarge=0.8064 8xlarge=1.6128 12xlarge=2.4192 16xlarge=3.2256 24xlarge=4.8384 48xlarge=9.6768
r7i 4xlarge=1.0584 8xlarge=2.1168 12xlarge=3.1752 16xlarge=4.2336 24xlarge=6.3504 48xlarge=12.7008
c8i 8xlarge=1.49936 16xlarge=2.99872 24xlarge=4.49808 32xlarge=5.99744 48xlarge=8.99616 96xlarge=17.99232
m8i 8xlarge=1.69344 16xlarge=3.38688 24xlarge=5.08032 32xlarge=6.77376 48xlarge=10.16064 96xlarge=20.32128
m7i large=0.1008 xlarge=0.2016 2xlarge=0.4032
m6i large=0.096 xlarge=0.192 2xlarge=0.384
c7i xlarge=0.1785 2xlarge=0.357
t3 large=0.0832 xlarge=0.1664
"""

# service, SKU, region, USD, unit, kind, as of, source
_OTHERS = (
    ("ec2-block", "p5.48xlarge", "us-east-1", "34.608", "hour", "capacity_block", "2026-01", _BLOG),
    ("eks", "cluster", "us-east-1", "0.10", "hour", "on_demand", "2026-11", _MEMORY),
    ("eks", "cluster-extended-support", "us-east-1", "0.60", "hour", "on_demand", "2026-11", _MEMORY),
    ("nat", "hour", "us-east-1", "0.045", "hour", "on_demand", "2026-11", _MEMORY),
    ("nat", "gb", "us-east-1", "0.045", "GB", "usage", "2026-11", _MEMORY),
    ("vpc-endpoint", "interface", "us-east-1", "0.01", "hour", "on_demand", "2026-11", _MEMORY),
    ("vpc-endpoint", "gb", "us-east-1", "0.01", "GB", "usage", "2026-11", _MEMORY),
    ("data", "cross-zone", "us-east-1", "0.01", "GB", "usage", "2026-11", _MEMORY),
    ("fsx-lustre", "SCRATCH_2", "us-east-1", "0.140", "GB-month", "storage", "2026-11", _PAGE),
    ("fsx-lustre", "PERSISTENT_2-125", "us-east-1", "0.145", "GB-month", "storage", "2026-11", _PAGE),
    ("fsx-lustre", "PERSISTENT_2-250", "us-east-1", "0.210", "GB-month", "storage", "2026-11", _MEMORY),
    ("fsx-lustre", "PERSISTENT_2-500", "us-east-1", "0.340", "GB-month", "storage", "2026-11", _MEMORY),
    ("fsx-lustre", "PERSISTENT_2-1000", "us-east-1", "0.600", "GB-month", "storage", "2026-11", _PAGE),
    ("fsx-lustre", "PERSISTENT_2-125", "eu-west-1", "0.160", "GB-month", "storage", "2026-11", _PAGE),
    ("fsx-lustre", "PERSISTENT_2-1000", "eu-west-1", "0.660", "GB-month", "storage", "2026-11", _PAGE),
    ("fsx-lustre", "metadata-iops", "us-east-1", "0.055", "IOPS-month", "storage", "2026-11", _MEMORY),
    ("efs", "standard", "us-east-1", "0.30", "GB-month", "storage", "2026-11", _MEMORY),
    ("efs", "read", "us-east-1", "0.03", "GB", "usage", "2026-11", _MEMORY),
    ("efs", "write", "us-east-1", "0.06", "GB", "usage", "2026-11", _MEMORY),
    ("ebs", "gp3", "us-east-1", "0.08", "GB-month", "storage", "2026-11", _MEMORY),
    ("ebs", "gp3-iops", "us-east-1", "0.005", "IOPS-month", "storage", "2026-11", _MEMORY),
    ("ebs", "gp3-mbps", "us-east-1", "0.04", "MB/s-month", "storage", "2026-11", _MEMORY),
)


def _on_demand() -> Iterator[tuple[str, Decimal]]:
    for line in _ON_DEMAND.strip().splitlines():
        family, *sizes = line.split()
        for size, _, usd in (part.partition("=") for part in sizes):
            yield f"{family}.{size}", Decimal(usd)


PRICES: dict[tuple[str, str, str], Price] = {
    **{("ec2", name, "us-east-1"): Price(usd=usd, unit="hour", kind="on_demand", as_of="2026-07-06", source=_KARPENTER)
       for name, usd in _on_demand()},
    **{(service, sku, region): Price(usd=Decimal(usd), unit=unit, kind=kind, as_of=as_of, source=source)
       for service, sku, region, usd, unit, kind, as_of, source in _OTHERS},
}
"""Service, SKU and region → price. Spot ("ec2-spot") would be a spot_snapshot; no dated one is known."""


def price(service: str, sku: str, region: str) -> Price | None:
    """The price of the region itself; None where none is known."""
    return PRICES.get((service, sku, region))


def lustre_per_month(region: str, deployment: str, tier: int | None, capacity_gib: int) -> float | None:
    """USD a month of a Lustre file system; None where no price of that region is known."""
    found = price("fsx-lustre", deployment if tier is None else f"{deployment}-{tier}", region)
    return None if found is None else float(found.usd * capacity_gib)
