"""offers.json and on_demand.json are what a refresh writes: the one from moto's data and from an
account alike."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from moto import mock_aws

from trainyard.catalog import refresh
from trainyard.catalog.aws import latencies, price_list, prices, zones

PAGES = Path(__file__).with_name("aws") / "price_lists"
"""A few rows of each list, in the columns of AWS's."""
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


def test_the_committed_prices_are_what_a_refresh_writes() -> None:
    assert refresh.price_text(prices.on_demand()) == prices.ON_DEMAND_FILE.read_text()
    assert refresh.service_text(prices.services()) == prices.SERVICES_FILE.read_text()


@pytest.fixture
def internet(account: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """AWS's price list, as far as the recorded pages go, and the files that a refresh writes; gives
    the pages that were asked for."""
    asked: list[str] = []

    class Pages(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            *_, code, current, page = self.path.split("/")[:7]
            recorded = PAGES / f"{code}.csv"
            if page == "region_index.json":
                address = f"/offers/v1.0/aws/{code}/20260925174521/ap-northeast-2/index.json"
                answer = json.dumps(
                    {"regions": {"ap-northeast-2": {"currentVersionUrl": address}}}
                ).encode()
            else:
                answer = recorded.read_bytes()
            self.send_response(200)
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setattr(price_list, "HOST", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setattr(refresh, "ON_DEMAND_FILE", account.with_name("on_demand.json"))
    monkeypatch.setattr(refresh, "SERVICES_FILE", account.with_name("service_prices.json"))
    yield asked
    server.shutdown()


def test_todays_prices_come_from_the_public_lists_and_the_rest_keeps_its_date(
    account: Path, internet: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert refresh.main(["--prices", "--region", "ap-northeast-2"]) == 0
    today = date.today().isoformat()
    newest, *older = prices.read(account.with_name("on_demand.json").read_text())
    assert (newest.as_of, newest.prices) == (
        today,
        {("g6e.48xlarge", "ap-northeast-2"): Decimal("37.05")},
    )
    kept = {key: usd for each in older for key, usd in each.prices.items()}
    assert kept["p5.48xlarge", "ap-northeast-2"] == Decimal("75.9552")
    services = prices.read_services(account.with_name("service_prices.json").read_text())
    assert services.keys() > prices.services().keys()
    mbps = services["ebs", "gp3-mbps", "ap-northeast-2"]
    assert (mbps.usd, mbps.as_of) == (Decimal("0.0456"), today)
    assert mbps.source == "AWS price list AmazonEC2, published 2026-09-25"
    assert (
        services["eks", "cluster", "us-east-1"] == prices.services()["eks", "cluster", "us-east-1"]
    )
    said = capsys.readouterr().out
    assert f"1 prices of {today}, 6 prices of 2026-07-20, 77 prices of 2026-07-06" in said
    assert "/offers/v1.0/aws/AmazonEC2/20260925174521/ap-northeast-2/index.csv" in internet


def test_a_price_that_the_list_gives_never_or_twice_is_unresolved_and_named(
    internet: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert refresh.main(["--prices", "--region", "ap-northeast-2"]) == 0
    said = capsys.readouterr().out
    assert (
        "unresolved: fsx-lustre PERSISTENT_2-500 in ap-northeast-2: the list has no price" in said
    )
    assert "unresolved: ec2 p5.48xlarge in ap-northeast-2: the list has 2 prices: 75.0" in said
    assert "p5e.48xlarge" not in said, "at zero: only Capacity Blocks sell it"


def test_lists_that_cannot_be_read_change_nothing_and_say_why(
    internet: list[str], account: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert refresh.main(["--prices", "--region", "eu-west-1"]) == 1
    said = capsys.readouterr().out
    assert "AmazonEKS has no price list of eu-west-1" in said and "nothing is changed" in said
    assert not account.with_name("service_prices.json").exists()


def test_a_host_that_does_not_answer_is_an_unreachable_list(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(price_list, "HOST", "http://127.0.0.1:9")
    with pytest.raises(price_list.Unreachable, match=r"index\.json cannot be read: .*refused"):
        price_list.fetch("AmazonEKS", "us-east-1", ())


def _proof(tmp_path: Path, **more: object) -> str:
    start = "2026-11-27T10:00:00Z"
    seen = [
        {
            "row": "eks.cluster",
            "step": "small",
            "start": start,
            "seconds": 600,
            "instance_type": "",
        },
        {
            "row": "all of small",
            "step": "small",
            "start": start,
            "seconds": 900,
            "instance_type": "",
        },
        {"row": "ec2.vpc", "step": "small", "start": start, "seconds": 0, "instance_type": ""},
    ]
    file = tmp_path / "prove.json"
    told = {"schema": 1, "live": True, "region": "eu-west-1", "seen": seen, **more}
    file.write_text(json.dumps(told))
    return str(file)


@pytest.fixture
def proven(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The file of durations, empty."""
    file = tmp_path / "proven.json"
    file.write_text("[]\n")
    monkeypatch.setattr(refresh, "PROVEN_FILE", file)
    monkeypatch.setattr(latencies, "PROVEN_FILE", file)
    return file


def test_durations_of_a_proof_are_taken_once_with_date_and_region(
    proven: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = _proof(tmp_path)
    assert refresh.main(["--proven", file]) == refresh.main(["--proven", file]) == 0
    assert proven.read_text() == (
        '[\n["eks.cluster", 600, "2026-11-27T10:00:00Z", "eu-west-1", ""]\n]\n'
    )
    assert capsys.readouterr().out.splitlines() == [
        "proven.json: 1 more durations",
        "proven.json: 0 more durations",
    ]
    [one] = latencies.read_proven()
    row = latencies.with_proven(latencies.LATENCIES["eks.cluster"], [one])
    assert row.n == 27 and "eu-west-1 2026-11-27" in row.source


@pytest.mark.parametrize("more", [{"live": False}, {"schema": 2}], ids=str)
def test_a_proof_of_no_account_or_of_another_schema_is_refused(
    proven: Path, tmp_path: Path, more: dict[str, object]
) -> None:
    with pytest.raises(SystemExit, match="written on an AWS account"):
        refresh.main(["--proven", _proof(tmp_path, **more)])
    assert proven.read_text() == "[]\n"
