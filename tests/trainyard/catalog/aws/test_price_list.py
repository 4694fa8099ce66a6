"""What a price list says of each price of ours: exactly one price, or it is unresolved."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from trainyard.catalog.aws import price_list
from trainyard.catalog.aws.prices import UNITS

PAGES = Path(__file__).with_name("price_lists")
SEOUL = {
    ("eks", "cluster"): "0.1",
    ("eks", "extended-support"): "0.5",
    ("nat", "hour"): "0.059",
    ("nat", "gb"): "0.059",
    ("vpc", "public-ipv4"): "0.005",
    ("vpc", "endpoint-hour"): "0.013",
    ("vpc", "endpoint-gb"): "0.01",
    ("ebs", "gp3"): "0.0912",
    ("ebs", "gp3-iops"): "0.0057",
    ("ebs", "gp3-mbps"): "0.0456",
    ("efs", "standard"): "0.33",
    ("efs", "infrequent"): "0.025",
    ("efs", "archive"): "0.009",
    ("efs", "provisioned"): "6.6",
    ("efs", "read"): "0.04",
    ("efs", "write"): "0.07",
    ("fsx-lustre", "SCRATCH_2"): "0.168",
    ("fsx-lustre", "PERSISTENT_2-125"): "0.174",
    ("fsx-lustre", "PERSISTENT_2-250"): "0.25",
    ("fsx-lustre", "PERSISTENT_2-1000"): "0.673",
    ("fsx-lustre", "metadata"): "0.062",
    ("s3", "standard"): "0.025",
    ("s3", "put"): "0.0045",
    ("logs", "ingested"): "0.76",
    ("transfer", "between-zones"): "0.01",
}
"""What the recorded pages say; the tier 500 is missing there. The rows of S3, of
EFS's provisioned throughput and archive, and of logs were written after public uses of the list, and recorded
nowhere."""


def _lines(code: str, *more: str) -> list[str]:
    return [*(PAGES / f"{code}.csv").read_text().splitlines(keepends=True), *more]


@pytest.mark.parametrize("key", SEOUL)
def test_each_selector_finds_its_one_price(key: tuple[str, str]) -> None:
    code = next(each.code for each in price_list.SELECTORS if each.key == key)
    found = price_list.read_list(_lines(code), code, ())
    assert found.prices[key] == Decimal(SEOUL[key])


def test_every_price_that_lists_have_has_a_selector() -> None:
    """No list was seen that names backups, samples of Prometheus, or tiers of EKS."""
    unseen = {("prometheus", "samples")}
    unseen |= {key for key in UNITS if key[1] == "backup" or key[1].startswith("tier-")}
    assert {each.key for each in price_list.SELECTORS} == set(UNITS) - unseen


def test_a_second_price_makes_a_selector_unresolved() -> None:
    lines = _lines("AmazonEKS")
    other = next(line for line in lines if "perCluster" in line).replace("0.1000000000", "0.2")
    found = price_list.read_list([*lines, other], "AmazonEKS", ())
    assert ("eks", "cluster") not in found.prices
    assert found.unresolved["eks", "cluster"] == (Decimal("0.1"), Decimal("0.2"))


def test_the_same_price_twice_is_one_price() -> None:
    lines = _lines("AmazonEKS")
    again = next(line for line in lines if "perCluster" in line)
    found = price_list.read_list([*lines, again], "AmazonEKS", ())
    assert found.prices["eks", "cluster"] == Decimal("0.1")


def test_a_usage_type_of_us_east_1_has_no_region_in_front() -> None:
    lines = [line.replace("APN2-", "") for line in _lines("AmazonEKS")]
    assert price_list.read_list(lines, "AmazonEKS", ()).prices["eks", "cluster"] == Decimal("0.1")


def test_an_instance_costs_what_shared_linux_on_demand_costs_in_the_region_itself() -> None:
    found = price_list.read_list(_lines("AmazonEC2"), "AmazonEC2", {"g6e.48xlarge", "p5e.48xlarge"})
    assert found.prices["ec2", "g6e.48xlarge"] == Decimal("37.05")
    assert ("ec2", "p5e.48xlarge") not in {*found.prices, *found.unresolved}
    assert ("ec2", "m5.large") not in found.prices, "nobody asked for it"


def test_a_list_says_when_it_was_published_and_a_page_that_is_no_list_is_refused() -> None:
    assert price_list.read_list(_lines("AmazonEFS"), "AmazonEFS", ()).published == "2026-09-25"
    with pytest.raises(price_list.Unreachable, match="column names"):
        price_list.read_list(["<html>", "</html>"], "AmazonEFS", ())
