"""offers.json and on_demand.json are what a refresh writes: the one from moto's data and from an
account alike."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from botocore.session import Session
from botocore.stub import Stubber
from moto import mock_aws

from catalog import prices, refresh, zones

COMMITTED = zones.OFFERS_FILE.read_text()


def test_the_committed_offers_are_what_moto_ships() -> None:
    assert (
        refresh.text(refresh.from_moto(), zones.SNAPSHOT, json.loads(COMMITTED)["source"])
        == COMMITTED
    )


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An account in process, and the file that a refresh writes."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    written = tmp_path / "offers.json"
    monkeypatch.setattr(refresh, "OFFERS_FILE", written)
    return written


@mock_aws
def test_an_account_is_asked_by_zone_id_and_regions_it_may_not_ask_are_kept_and_named(
    account: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert {"ap-northeast-2", "us-east-1"} <= refresh.enabled_regions() <= set(zones.ZONE_LETTERS)
    monkeypatch.setattr(refresh, "enabled_regions", lambda: {"ap-northeast-2"})
    assert refresh.main([]) == 0
    head, source, *rows = account.read_text().splitlines()
    assert date.today().isoformat() in head and rows == COMMITTED.splitlines()[2:]
    assert (
        f"not asked, so as of {zones.SNAPSHOT}: af-south-1" in source
        and "ap-northeast-2" not in source
    )


def test_moto_does_not_date_its_data_so_whoever_takes_it_does(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        refresh.main(["--from-moto"])
    assert "--as-of" in capsys.readouterr().err


# Prices.

SEOUL = {
    "ServiceCode": "AmazonEC2",
    "Filters": [
        {"Type": "TERM_MATCH", "Field": field, "Value": value}
        for field, value in (
            ("operatingSystem", "Linux"),
            ("preInstalledSw", "NA"),
            ("tenancy", "Shared"),
            ("capacitystatus", "Used"),
            ("marketoption", "OnDemand"),
            ("productFamily", "Compute Instance"),
            ("regionCode", "ap-northeast-2"),
        )
    ],
}


def _product(kind: str, *usd: str) -> str:
    """As GetProducts answers: a product is JSON in a string."""
    parts = {str(n): {"unit": "Hrs", "pricePerUnit": {"USD": each}} for n, each in enumerate(usd)}
    return json.dumps(
        {
            "product": {"attributes": {"instanceType": kind}},
            "terms": {
                "OnDemand": {"SKU.TERM": {"priceDimensions": parts}},
                "Reserved": {"other": {}},
            },
        }
    )


def test_the_committed_prices_are_what_a_refresh_writes() -> None:
    assert refresh.price_text(prices.ON_DEMAND) == prices.ON_DEMAND_FILE.read_text()


def test_prices_of_today_come_from_the_price_list_and_what_it_does_not_tell_keeps_its_date(
    account: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A zero, two prices and a type that nobody asked for leave the older prices as they are."""
    client: Any = Session().create_client("pricing", region_name="us-east-1")
    written = account.with_name("on_demand.json")
    monkeypatch.setattr(refresh, "ON_DEMAND_FILE", written)
    monkeypatch.setattr(refresh, "ZONE_LETTERS", {"ap-northeast-2": "abcd"})
    monkeypatch.setattr(refresh, "_client", lambda service, region: client)
    with Stubber(client) as stub:
        stub.add_response(
            "get_products",
            {
                "NextToken": "2",
                "PriceList": [
                    _product("g6e.48xlarge", "37.0500000000"),
                    _product("m5.large", "0.1"),
                    _product("p5e.48xlarge", "0"),
                ],
            },
            SEOUL,
        )
        stub.add_response(
            "get_products",
            {"PriceList": [_product("p5.48xlarge", "75", "76")]},
            {**SEOUL, "NextToken": "2"},
        )
        assert refresh.main(["--prices"]) == 0
    today, *older = prices.read(written.read_text())
    assert (today.as_of, today.prices) == (
        date.today().isoformat(),
        {("g6e.48xlarge", "ap-northeast-2"): Decimal("37.05")},
    )
    kept = {key: usd for each in older for key, usd in each.prices.items()}
    assert (
        kept["p5.48xlarge", "ap-northeast-2"] == Decimal("75.9552")
        and not today.prices.keys() & kept.keys()
    )
    assert [(each.as_of, each.source) for each in older] == [
        (each.as_of, each.source) for each in prices.ON_DEMAND
    ]
    assert f"1 prices of {today.as_of}, 77 prices of 2026-07-06" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("as_of", "says"),
    [
        ("2026-10", None),
        ("2026-06", None),
        ("2026-05-25", None),
        ("2026-05-24", "181 days old"),
        ("2026-05", "is of 2026-05, 204 days old"),
        ("2027-01", None),
        ("once", "no readable date"),
    ],
)
def test_facts_older_than_180_days_are_said_to_be_old_and_never_stop_anything(
    as_of: str, says: str | None
) -> None:
    said = refresh.outdated(as_of, date(2026, 11, 21))
    assert (
        said is None
        if says is None
        else says in (said or "") and "python -m catalog.refresh" in (said or "")
    )
