"""`make check POLICY=1`: a stack file is judged by the policies without engine and account."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from policy_pack.check import CONFIG, judge
from tests.support.brought_vpc import BROUGHT
from tests.support.stackfile import ENVIRONMENT, Edit, at, values

CHEAP = {"within-budget": {"max_usd_per_hour": 300}}
COST_CENTER = {"tagged": {"required": ["cost-center"]}}


def judged(
    folder: Path, monkeypatch: pytest.MonkeyPatch, configured: Any, *edits: Edit, **config: Any
) -> int:
    written = values() | config
    for edit in (at("jobs", {}), *edits):
        edit(written[ENVIRONMENT])
    (folder / "Pulumi.yaml").write_text("name: trainyard\n")
    (folder / "Pulumi.it.yaml").write_text(yaml.safe_dump({"config": written}))
    monkeypatch.chdir(folder)
    return judge("it", configured)


def test_a_stack_that_violates_nothing_passes_with_its_warnings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert judged(tmp_path, monkeypatch, json.loads(CONFIG.read_text())) == 0
    said = capsys.readouterr().out
    assert "warning  stores-protected: scratch: must be protected" in said
    assert "it: violates no policy that is mandatory" in said


def test_a_violation_is_an_error_with_its_policy_and_what_to_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert judged(tmp_path, monkeypatch, CHEAP) == 1
    said = capsys.readouterr().out
    assert "error    within-budget: h100-pool: must leave the pools within 300.00 USD" in said
    assert "Fix: environment.pools.<name>.max_nodes: fewer nodes" in said
    assert "it: violates within-budget" in said


def test_tags_that_the_provider_sets_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert judged(tmp_path, monkeypatch, COST_CENTER) == 1
    assert "tagged: network: must have cost-center among its tags" in capsys.readouterr().out
    set_by_all = {"aws:defaultTags": {"tags": {"cost-center": "17"}}}
    assert judged(tmp_path, monkeypatch, COST_CENTER, **set_by_all) == 0, capsys.readouterr().out


def test_what_only_an_account_can_answer_is_said_and_not_passed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert judged(tmp_path, monkeypatch, {}, BROUGHT) == 1
    assert "make preview judges it" in capsys.readouterr().out
