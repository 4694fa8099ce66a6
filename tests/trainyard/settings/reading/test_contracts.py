"""A contract alone says of a team what the environment's whole stack file says."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.contracts import FILE, alone, contract_of, handed_over, mutated
from tests.support.stackfile import Edit, at, without
from tests.support.stacks import KEY, MIRROR
from tests.support.teams import (
    both,
    by_name,
    checkout,
    environment_of,
    listed,
    planned,
    team_of,
    with_queues,
)
from trainyard.catalog.versions import TRAINYARD
from trainyard.settings.reading.contracts import signature

ENTRY, OWN = "teams.vision", "trainer.own_runtimes.torch-distributed-resilient"


def _keeps(settings: dict[str, Any]) -> None:
    """Another team that lends none of its nodes."""
    settings["teams"]["nlp"] |= {"guaranteed_nodes": {"g6e": 1}, "lends_nodes": False}


MODEL = {"for_model": {"parameters_billion": 70, "nodes": 4}}
OWN_PRICES = at("prices", {"discount_percent": 12, "savings_plan_percent": {"g6e": 30.5}})
LISTED: dict[str, Edit] = {
    "plain": listed,
    "queues": with_queues,
    "nodes that another team keeps": both(with_queues, without("teams.nlp.max_nodes"), _keeps),
    "Trainer 2.3": both(listed, at("trainer.version", "2.3.0")),
    "a directory of its own": both(listed, at("storage.scratch.teams", "apart")),
    "EFS beside": both(
        listed, at(f"{ENTRY}.stores", ["scratch", "home"]), at("storage.home.teams", "apart")
    ),
    "a mirror": both(
        listed, at(f"{ENTRY}.image_prefixes", []), at("artifacts", {"images": MIRROR})
    ),
    "a key": both(listed, at("kms_key_arn", KEY)),
    "a size from a model": both(listed, at("storage.scratch.lustre", MODEL)),
    "spot": both(listed, at("pools.g6e.capacity", "spot")),
    "a private endpoint": both(
        listed,
        at("cluster.endpoint", "private"),
        at("cluster.public_access_cidrs", []),
        at("cluster.tunnel_port", 8443),
    ),
    "parts that jobs see": both(
        listed,
        at("metrics", {"push_gateway": True}),
        at("history", {"progress": True}),
        at("logs", {}),
    ),
    "a runtime with variables": both(
        listed,
        at(f"{OWN}.env", {"NCCL_DEBUG": "INFO"}),
        at(f"{OWN}.priority", "high"),
        at(f"{ENTRY}.allowed_priorities", ["high"]),
    ),
    "another namespace": both(listed, at(f"{ENTRY}.namespace", "seers")),
    "own prices": both(listed, OWN_PRICES),
    "several zones": both(
        listed,
        at("network.zones", ["ap-northeast-2a", "ap-northeast-2c"]),
        at("pools.h100.fallback_zones", ["ap-northeast-2c"]),
    ),
    "a reservation": both(
        listed,
        at("pools.h100.capacity", "block"),
        at(
            "pools.h100.reservation",
            {
                "id": "cr-0123456789abcdef0",
                "instances": 2,
                "starts": "2098-12-01T11:30:00Z",
                "ends": "2098-12-03T11:30:00Z",
            },
        ),
    ),
}


@pytest.mark.parametrize("edit", LISTED.values(), ids=LISTED)
def test_the_plan_of_a_listed_team_is_that_beside_the_stack_file(
    edit: Edit, tmp_path: Path
) -> None:
    """And its warnings."""
    (whole := tmp_path / "whole").mkdir()
    beside = team_of(checkout(whole, edit, by_name))
    part = alone(tmp_path / "part", handed_over(environment_of(whole), "vision"))
    assert team_of(part) == beside
    assert [each.text for each in planned("team-vision", part).warnings] == [
        each.text for each in planned("team-vision", whole).warnings
    ]


OUTSIDE: dict[str, Edit] = {
    "plain": both(),
    "own prices": OWN_PRICES,
    "a role that deploys": at("cluster.deployer_role_arn", "arn:aws:iam::123456789012:role/d"),
    "other teams": both(listed, without("teams.vision")),
}


@pytest.mark.parametrize("edit", OUTSIDE.values(), ids=OUTSIDE)
def test_the_plan_of_a_team_outside_the_list_is_that_beside_the_stack_file(
    edit: Edit, tmp_path: Path
) -> None:
    (whole := tmp_path / "whole").mkdir()
    beside = team_of(checkout(whole, edit, both()))
    part = alone(tmp_path / "part", handed_over(environment_of(whole), None), team=None)
    assert team_of(part) == beside


def test_a_contract_says_nothing_of_other_teams_of_people_and_of_the_account() -> None:
    private = at("cluster.admins", {"ops": {"role_arn": "arn:aws:iam::111122223333:role/ops"}})
    text = yaml.safe_dump(contract_of(listed, private, at("tags", {"owner": "somebody"})))
    assert "vision-deployer" in text
    for said in ("nlp", "auditors", "role/ops", "203.0.113.7", "somebody", "t5-large"):
        assert said not in text, said


# What is refused.


def _errors(folder: Path) -> list[str]:
    found = planned("team-vision", folder)
    assert found.plan is None or not found.errors
    return [str(error) for error in found.errors]


def _signed(contract: dict[str, Any]) -> dict[str, Any]:
    return {**contract, "digest": signature(contract)}


def test_a_contract_that_is_not_there_or_outside_of_the_folder_is_refused(tmp_path: Path) -> None:
    folder = alone(tmp_path / "a", contract_of(listed))
    (folder / FILE).rename(tmp_path / FILE)
    ask = "ask whoever runs the environment for `trainyard contract --stack dev --team vision"
    assert [ask in error for error in _errors(folder)] == [True]
    for path in ("../contract.yaml", str(tmp_path / FILE), ".", ""):
        [error] = _errors(alone(folder, contract_of(listed), at("contract", path)))
        assert error.startswith("team.contract") and "a file in the folder of the stack" in error


def test_a_contract_of_another_team_or_environment_is_refused(tmp_path: Path) -> None:
    contract = contract_of(listed)
    [error] = _errors(alone(tmp_path, contract_of(listed, team="nlp")))
    assert error.startswith("team [contract.yaml:5]: must be that of team vision; got ")
    [error] = _errors(alone(tmp_path, _signed({**contract, "stack": "prod"})))
    assert error.startswith(
        "stack [contract.yaml:3]: must be the environment of the team, dev; got"
    )
    [error] = _errors(alone(tmp_path, handed_over_to_all()))
    assert error.startswith("team [contract.yaml]: must be that of team vision; got nothing. Fix: ")


def handed_over_to_all() -> dict[str, Any]:
    return contract_of(listed, team=None)


def test_a_contract_that_somebody_has_edited_is_refused(tmp_path: Path) -> None:
    contract = copy.deepcopy(contract_of(listed))
    contract["environment"]["pools"]["g6e"]["max_nodes"] = 40
    [error] = _errors(alone(tmp_path, contract))
    assert error.startswith("digest [contract.yaml:") and "which nobody edits" in error


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"version": 3, "release": "0.9.0"}, "got 3. Fix: install Trainyard 0.9.0"),
        ({"version": 1}, "must be 2 in a file: version 1 says too little to plan a team; got 1"),
        ({"version": None}, f"must be 1 or 2, which Trainyard {TRAINYARD} reads; got nothing"),
        ({"version": [2]}, "got [2]. Fix: ask for a new contract"),
    ],
)
def test_a_contract_of_another_version_is_one_sentence(
    change: dict[str, Any], says: str, tmp_path: Path
) -> None:
    [error] = _errors(alone(tmp_path, {**contract_of(listed), **change}))
    assert error.startswith("version [contract.yaml:1]: must ") and says in error


NEWER: dict[str, Edit] = {
    "a setting": at("pools.g6e.cooling", 1),
    "a section": at("telegraph", {"wires": 2}),
    "an instance type": at("pools.p9", {"instance_types": ["p9.48xlarge"], "max_nodes": 1}),
    "a kind of store": at("storage.tapes", {"tape": {}}),
    "a Trainer": at("trainer.version", "3.0.0"),
}


@pytest.mark.parametrize("edit", NEWER.values(), ids=NEWER)
def test_what_only_a_newer_release_knows_is_one_sentence(edit: Edit, tmp_path: Path) -> None:
    contract: dict[str, Any] = copy.deepcopy(contract_of(listed)) | {"release": "0.9.0"}
    edit(contract["environment"])
    [error] = _errors(alone(tmp_path, _signed(contract)))
    assert error.startswith(f"release [contract.yaml:2]: must be {TRAINYARD}, ")
    assert error.endswith(f"Fix: install Trainyard 0.9.0, or ask for a contract of {TRAINYARD}")


TEXTS = (
    "",
    "{",
    "- 1",
    "version: 2\n---\nversion: 2",
    "\ufffd",
    "7",
    "a: &a [*a]",
    "version: {{x}}",
)


@pytest.mark.parametrize("text", TEXTS)
def test_a_file_that_is_no_contract_is_refused(text: str, tmp_path: Path) -> None:
    errors = _errors(alone(tmp_path, text))
    assert errors and all(FILE in error and "must" in error for error in errors), errors


@pytest.fixture(scope="module")
def sound() -> dict[str, Any]:
    return contract_of(with_queues, at("storage.scratch.teams", "apart"))


@pytest.mark.parametrize("seed", range(500))
def test_a_wrong_contract_is_refused_in_our_words_or_changes_nothing_that_counts(
    seed: int, sound: dict[str, Any], tmp_path: Path
) -> None:
    """No traceback; every error says where, what and what to do."""
    contract = mutated(sound, seed)
    found = planned("team-vision", alone(tmp_path, contract))
    for error in found.errors:
        assert error.must and error.fix and "\n" not in str(error), error
    assert found.errors or found.plan
