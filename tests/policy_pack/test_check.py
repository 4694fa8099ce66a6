"""`make check POLICY=1`: a stack file is judged by the policies without engine and account."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from policy_pack.account import Account
from policy_pack.check import CONFIG, judge
from tests.support import dispatching
from tests.support.brought_cluster import IN_CLUSTER
from tests.support.brought_stores import BROUGHT_STORES
from tests.support.brought_vpc import BROUGHT
from tests.support.stackfile import ENVIRONMENT, Edit, at, values
from tests.support.teams import both, by_name, checkout, listed

ROLE = "arn:aws:iam::123456789012:role/vision"

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
    # Pools are registered in any order: the last one goes over the budget.
    over = "error    within-budget: (g6e|h100)-pool: must leave the pools within 300.00 USD"
    assert re.search(over, said)
    assert "Fix: lower environment.pools.<name>.max_nodes" in said
    assert "it: violates within-budget" in said


def test_tags_that_the_provider_sets_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert judged(tmp_path, monkeypatch, COST_CENTER) == 1
    assert "tagged: network: must have cost-center among its tags" in capsys.readouterr().out
    set_by_all = {"aws:defaultTags": {"tags": {"cost-center": "17"}}}
    assert judged(tmp_path, monkeypatch, COST_CENTER, **set_by_all) == 0, capsys.readouterr().out


BRINGS: dict[str, tuple[Edit, ...]] = {
    "VPC": (BROUGHT,),
    "VPC whose nodes reach no internet": (BROUGHT, at("network.s3_endpoint", True)),
    "cluster": IN_CLUSTER,
    "stores": (BROUGHT, BROUGHT_STORES),
    "cluster for teams": (*IN_CLUSTER, at("teams", {"vision": {"deployer": ROLE}})),
}


@pytest.mark.parametrize("brings", BRINGS)
def test_a_stack_that_is_brought_something_is_judged(
    brings: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert judged(tmp_path, monkeypatch, CHEAP, *BRINGS[brings]) == 1
    said = capsys.readouterr().out
    assert "error    within-budget" in said and "it: violates within-budget" in said


def test_what_a_stack_is_brought_is_not_judged_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = {"stores-protected": "mandatory"}
    assert judged(tmp_path, monkeypatch, kept, BROUGHT, BROUGHT_STORES) == 0
    assert "warning" not in capsys.readouterr().out


REGISTRIES = {"images-from-allowed-registries": {"registries": ["quay.io/"]}}


@pytest.mark.parametrize(
    ("environment", "of_team"),
    [
        (dispatching.nothing, dispatching.nothing),
        (both(listed, at("storage.scratch.teams", "apart")), by_name),
    ],
    ids=["with a namespace of its own", "listed by its environment"],
)
def test_a_team_is_judged_as_if_its_environment_were_deployed_from_this_checkout(
    environment: Edit,
    of_team: Edit,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(checkout(tmp_path, environment, of_team))
    assert judge("team-vision", REGISTRIES) == 1
    assert "images-from-allowed-registries: vit-base: must take" in capsys.readouterr().out


def test_an_environment_that_sends_jobs_to_others_is_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(dispatching.checkout(tmp_path))
    assert judge(dispatching.MANAGER, COST_CENTER) == 1
    assert "tagged: dispatch" in capsys.readouterr().out


def test_the_errors_of_a_stack_file_are_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert judged(tmp_path, monkeypatch, {}, at("zone", "nowhere-1a")) == 1
    assert "environment.zone" in capsys.readouterr().out


def test_a_look_up_without_an_answer_is_said_and_not_passed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delattr(Account, "_getRouteTables")
    assert judged(tmp_path, monkeypatch, {}, BROUGHT) == 1
    assert "account.py does not answer aws:ec2/getRouteTables" in capsys.readouterr().out
