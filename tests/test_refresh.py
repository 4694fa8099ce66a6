"""offers.json is what a refresh writes, from moto's data and from an account alike."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from moto import mock_aws

from catalog import refresh, zones

COMMITTED = zones.OFFERS_FILE.read_text()


def test_the_committed_offers_are_what_moto_ships() -> None:
    assert refresh.text(refresh.from_moto(), zones.SNAPSHOT, zones.SOURCE) == COMMITTED


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
        account: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert {"ap-northeast-2", "us-east-1"} <= refresh.enabled_regions() <= set(zones.ZONE_LETTERS)
    monkeypatch.setattr(refresh, "enabled_regions", lambda: {"ap-northeast-2"})
    assert refresh.main([]) == 0
    head, source, *rows = account.read_text().splitlines()
    assert date.today().isoformat() in head and rows == COMMITTED.splitlines()[2:]
    assert f"not asked, so as of {zones.SNAPSHOT}: af-south-1" in source and "ap-northeast-2" not in source


def test_moto_does_not_date_its_data_so_whoever_takes_it_does(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        refresh.main(["--from-moto"])
    assert "--as-of" in capsys.readouterr().err


@pytest.mark.parametrize(("as_of", "says"), [
    ("2026-10", None), ("2026-06", None), ("2026-05-25", None), ("2026-05-24", "181 days old"),
    ("2026-05", "is of 2026-05, 204 days old"), ("2027-01", None), ("once", "no readable date")])
def test_facts_older_than_180_days_are_said_to_be_old_and_never_stop_anything(as_of: str, says: str | None) -> None:
    said = refresh.outdated(as_of, date(2026, 11, 21))
    assert said is None if says is None else says in (said or "") and "python -m catalog.refresh" in (said or "")
