"""Prices: exact where one is known, dated, and never a neighbour's."""

from __future__ import annotations

import os
import re
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from trainyard.catalog.aws import storage
from trainyard.catalog.aws.instances import CPU_TYPES, GPU_TYPES
from trainyard.catalog.aws.prices import (
    SERVICES_FILE,
    UNITS,
    lustre_per_month,
    on_demand,
    price,
    services,
    stale,
)
from trainyard.catalog.aws.zones import ZONE_LETTERS, regions_with

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "trainyard/go/mod"
KARPENTER = {
    release: CACHE
    / f"github.com/aws/karpenter-provider-aws@v{release}/pkg/providers/pricing/zz_generated.pricing_aws.go"
    for release in ("1.14.1", "1.15.0")
}
NEWER = {"g7": "1.15.0"}
"""Family → the release whose list has it first; that of 1.15.1 is the same."""


@pytest.mark.parametrize(
    "release",
    [
        pytest.param(
            release,
            marks=pytest.mark.skipif(
                not file.exists(), reason="Karpenter's source is not in the module cache"
            ),
        )
        for release, file in KARPENTER.items()
    ],
)
def test_every_on_demand_price_is_the_one_karpenter_generated(release: str) -> None:
    text = KARPENTER[release].read_text()
    theirs = {name: Decimal(usd) for name, usd in re.findall(r'"([a-z0-9.-]+)": ([\d.]+)', text)}
    ours = {
        sku: found
        for each in on_demand()
        for sku, region in each.prices
        if region == "us-east-1"
        and NEWER.get(sku.partition(".")[0], "1.14.1") == release
        and (found := price("ec2", sku, region))
    }
    assert {sku: found.usd for sku, found in ours.items()} == {sku: theirs.get(sku) for sku in ours}
    assert f"generated at {max(found.as_of for found in ours.values())}" in text


def test_a_type_has_a_price_in_us_east_1_exactly_where_it_is_sold_there() -> None:
    for name in (*GPU_TYPES, *CPU_TYPES):
        assert (price("ec2", name, "us-east-1") is not None) == (
            "us-east-1" in regions_with(name)
        ), name


@pytest.mark.parametrize(
    ("service", "sku", "usd", "unit"),
    [
        ("ec2", "p5.48xlarge", "55.04", "hour"),
        ("ec2", "g6e.48xlarge", "30.13118", "hour"),
        ("ec2", "p4d.24xlarge", "21.957642", "hour"),
        ("ec2", "m7i.xlarge", "0.2016", "hour"),
        ("ec2-block", "p5.48xlarge", "34.608", "hour"),
        ("eks", "cluster", "0.1", "hour"),
        ("eks", "extended-support", "0.5", "hour"),
        ("nat", "hour", "0.045", "hour"),
        ("nat", "gb", "0.045", "GB"),
        ("efs", "standard", "0.3", "GB-month"),
        ("fsx-lustre", "PERSISTENT_2-1000", "0.6", "GB-month"),
        ("ebs", "gp3", "0.08", "GB-month"),
        ("ebs", "gp3-iops", "0.005", "IOPS-month"),
        ("ebs", "gp3-mbps", "0.04", "MB/s-month"),
    ],
)
def test_prices_of_us_east_1(service: str, sku: str, usd: str, unit: str) -> None:
    found = price(service, sku, "us-east-1")
    assert found and (found.usd, found.unit) == (Decimal(usd), unit)


@pytest.mark.parametrize(
    ("kind", "region", "usd"),
    [
        ("g6e.48xlarge", "ap-northeast-2", "37.04468"),
        ("p5.48xlarge", "ap-northeast-2", "75.9552"),
        ("m7i.xlarge", "ap-northeast-2", "0.2478"),
        ("p5en.48xlarge", "ap-northeast-1", "79.12"),
        ("p4d.24xlarge", "ap-south-1", "26.3444"),
        ("g6e.12xlarge", "eu-central-1", "13.12002"),
        ("p5.48xlarge", "eu-north-1", "58.8928"),
        ("g7e.48xlarge", "eu-south-2", "34.92536"),
        ("c7i.xlarge", "eu-west-1", "0.19152"),
        ("m6i.large", "me-south-1", "0.132"),
        ("g5.12xlarge", "eu-west-1", "6.33167"),
        ("g6.8xlarge", "eu-west-2", "2.55705"),
        ("p6-b200.48xlarge", "us-east-2", "113.9328"),
        ("p6-b300.48xlarge", "us-west-2", "142.416"),
    ],
)
def test_prices_of_other_regions_are_as_read_in_their_list(
    kind: str, region: str, usd: str
) -> None:
    found = price("ec2", kind, region)
    assert found and found.usd == Decimal(usd) and found.as_of == "2026-01-22"
    assert "2c3d7ea7d76bf84cf80d382e946c1609571485fd" in found.source and "undated" in found.source


def test_a_type_has_a_price_only_where_it_is_sold_and_in_one_list() -> None:
    keys = [key for each in on_demand() for key in each.prices]
    assert len(keys) == len(set(keys))
    assert all(
        region in regions_with(kind)
        for kind, region in keys
        if kind in GPU_TYPES or kind in CPU_TYPES
    )


def test_a_region_asks_the_same_share_more_for_every_size_of_a_family() -> None:
    """A slip of one digit would show here: nothing that AWS sells breaks this by more than its
    rounding."""
    shares: dict[tuple[str, str], list[Decimal]] = {}
    for (kind, region), usd in (
        (key, usd) for each in on_demand() for key, usd in each.prices.items()
    ):
        base = price("ec2", kind, "us-east-1")
        assert base, kind
        shares.setdefault((region, kind.partition(".")[0]), []).append(usd / base.usd)
    assert {
        place for place, found in shares.items() if max(found) - min(found) > Decimal("0.0003")
    } == set()


def test_every_price_has_a_day_or_a_month_and_a_source() -> None:
    known = [price("ec2", *key) for each in on_demand() for key in each.prices]
    for found in (*known, *services().values()):
        assert found
        assert date(2022, 9, 1) < date.fromisoformat(f"{found.as_of}-01"[:10]) and found.source
        assert (
            found.kind in {"on_demand", "capacity_block", "spot_snapshot", "storage", "usage"}
            and found.usd > 0
        )


@pytest.mark.parametrize(
    ("region", "service", "sku", "usd"),
    [
        ("ap-northeast-2", "eks", "cluster", "0.1"),
        ("ap-northeast-2", "nat", "hour", "0.059"),
        ("ap-northeast-2", "nat", "gb", "0.059"),
        ("ap-northeast-2", "ebs", "gp3", "0.0912"),
        ("ap-northeast-2", "vpc", "public-ipv4", "0.005"),
        ("ap-northeast-2", "efs", "standard", "0.33"),
        ("ap-northeast-2", "fsx-lustre", "PERSISTENT_2-1000", "0.673"),
        ("ap-northeast-1", "efs", "write", "0.07"),
        ("ap-northeast-1", "ebs", "gp3-mbps", "0.048"),
        ("us-west-2", "eks", "extended-support", "0.5"),
        ("us-west-2", "fsx-lustre", "PERSISTENT_2-250", "0.21"),
        ("eu-west-1", "fsx-lustre", "PERSISTENT_2-1000", "0.66"),
        ("eu-west-1", "nat", "hour", "0.048"),
    ],
)
def test_services_cost_what_the_public_source_of_their_region_says(
    region: str, service: str, sku: str, usd: str
) -> None:
    found = price(service, sku, region)
    assert found and found.usd == Decimal(usd) and found.as_of >= "2026-03"


def test_no_price_is_from_memory_and_of_services_lustre_in_tokyo_alone_is_older_than_this_year() -> (
    None
):
    sources = [found.source for found in (*on_demand(), *services().values())]
    assert not [source for source in sources if "memory" in source]
    old = {key for key, found in services().items() if not found.as_of.startswith("2026")}
    tiers = {f"PERSISTENT_2-{tier}" for tier in storage.LUSTRE_TIERS}
    assert old == {("fsx-lustre", tier, "ap-northeast-1") for tier in tiers}


def test_every_service_price_has_a_known_unit_and_stands_once() -> None:
    rows = [row for row in SERVICES_FILE.read_text().splitlines() if row.startswith('["')]
    assert len(rows) == len(services())
    assert {(service, sku) for service, sku, _ in services() if service != "ec2-block"} <= set(
        UNITS
    )


def test_what_is_stored_is_paid_by_the_month_and_what_runs_by_the_hour() -> None:
    """A month has 730 hours: the other unit makes a store 730 times too dear."""
    ends = {
        "storage": r"(GB|IOPS|MB/s)-month",
        "on_demand": "hour",
        "usage": "GB|million samples|thousand requests",
    }
    wrong = {key for key, (unit, kind) in UNITS.items() if not re.fullmatch(ends[kind], unit)}
    assert wrong == set()


def test_us_east_1_has_a_price_for_everything_that_every_stack_pays() -> None:
    """Backups and the archive grow with use."""
    by_use = {("fsx-lustre", "backup"), ("efs", "archive")}
    missing = {key for key in UNITS if price(*key, "us-east-1") is None}
    assert missing <= by_use
    assert set(storage.LUSTRE_TIERS) == {
        int(sku.rpartition("-")[2]) for _, sku in UNITS if sku.startswith("PERSISTENT_2-")
    }


@pytest.mark.parametrize(
    ("service", "sku"),
    [
        ("eks", "cluster"),
        ("eks", "extended-support"),
        ("vpc", "public-ipv4"),
        ("transfer", "between-zones"),
    ],
)
def test_what_costs_the_same_in_every_region_has_one_price_in_all_of_them(
    service: str, sku: str
) -> None:
    found = {region: price(service, sku, region) for region in ZONE_LETTERS}
    assert len({each.usd for each in found.values() if each}) == 1 and all(found.values())


def test_lustre_in_tokyo_costs_an_hour_what_the_page_of_its_day_says() -> None:
    hour = {125: "2.48", 250: "3.71", 500: "6.19", 1000: "11.16"}
    for tier, usd in hour.items():
        found = price("fsx-lustre", f"PERSISTENT_2-{tier}", "ap-northeast-1")
        assert found and round(found.usd * 9600 / 730, 2) == Decimal(usd)


def test_prices_over_180_days_old_are_said_to_be_with_the_oldest_date() -> None:
    today = date(2026, 11, 22)
    assert stale(["2026-07-06", "2026-10", None], today) is None
    assert stale(["2026-05-26"], today) is None
    said = stale(["2026-01-22", "2026-05-25", "2026-10"], today) or ""
    assert said.startswith("some of these prices are older than 180 days, the oldest is of 2026-01")
    assert "trainyard.catalog.refresh --prices" in said


def test_a_region_without_a_price_borrows_none() -> None:
    assert (
        "ap-northeast-3" in regions_with("g6e.48xlarge")
        and price("ec2", "g6e.48xlarge", "ap-northeast-3") is None
    )
    regions = regions_with("p5e.48xlarge")
    assert regions and not any(price("ec2", "p5e.48xlarge", region) for region in regions), (
        "blocks only"
    )
    assert price("ec2-spot", "p5.48xlarge", "us-east-1") is None
    assert price("nat", "hour", "af-south-1") is None
    assert price("efs", "read", "ap-northeast-2") is None
    assert lustre_per_month("ap-northeast-2", "PERSISTENT_2", 500, 4800) is None
    assert lustre_per_month("eu-west-1", "PERSISTENT_2", 500, 4800) is None


def test_a_file_system_costs_its_capacity_times_its_price() -> None:
    assert lustre_per_month("us-east-1", "PERSISTENT_2", 500, 4800) == 1632.0
    assert lustre_per_month("us-east-1", "SCRATCH_2", None, 1200) == 168.0
