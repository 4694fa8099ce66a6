"""A wrong value hides no other error of a stack file: something sound stands in for it."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest

from tests.support.everything import everything
from tests.support.recording import CHECKOUT
from tests.support.stackfile import ENVIRONMENT, Edit, at, planned, reading, values, without
from trainyard.decide import plan_stack
from trainyard.plan import Planned
from trainyard.problems import REMOVE, InputError
from trainyard.settings.reading.reader import read, read_file
from trainyard.settings.reading.stand_ins import StandIns, stand_ins

DEV = (CHECKOUT / "Pulumi.dev.yaml").read_text()
OWN = "trainer.own_runtimes.torch-distributed-resilient"


def _planned(*edits: Edit) -> Planned:
    given = everything()
    for edit in edits:
        edit(given[ENVIRONMENT])
    return plan_stack(read(given, stack="dev", project="trainyard"), CHECKOUT)


# One error each: wrong types, unknown and missing settings, wrong names, and what rules refuse.
ERRORS: dict[str, Edit] = {
    "environment.cluster.version": at("cluster.version", 1.34),
    "environment.cluster.endpiont": at("cluster.endpiont", "private"),
    "environment.network.cidr": at("network.cidr", "8.8.0.0/16"),
    "environment.namespace": at("namespace", "kube-system"),
    "environment.system_nodes.nodes": at("system_nodes.nodes", 1),
    "environment.karpenter.dry_run": at("karpenter.dry_run", "no"),
    "environment.pools.g6e.max_nodes": at("pools.g6e.max_nodes", "many"),
    "environment.pools.h100.instance_types": at("pools.h100.instance_types", ["p7.48xlarge"]),
    "environment.pools.reserved.reservation.id": at("pools.reserved.reservation.id", "r-1"),
    "environment.pools.Single": lambda settings: settings["pools"].update(
        {"Single": settings["pools"].pop("single")}
    ),
    "environment.storage.data.lustre.backup_days": at("storage.data.lustre.backup_days", -1),
    "environment.storage.scratch.lustre.capacity_gib": at(
        "storage.scratch.lustre.capacity_gib", 5000
    ),
    "environment.storage.home": at("storage.home", "efs"),
    f"environment.{OWN}.max_restarts": at(f"{OWN}.max_restarts", "5"),
    "environment.trainer.runtimes": at("trainer.runtimes", "torch-distributed"),
    "environment.jobs.train.nodes": without("jobs.train.nodes"),
    "environment.jobs.train.gpu": at("jobs.train.gpu", 8),
    "environment.jobs.train.labels.team": at("jobs.train.labels", {"team": "a b"}),
    "environment.jobs.train.wait": at("jobs.train.wait", "yes"),
    "environment.jobs.legacy.priority": at("jobs.legacy.priority", "low"),
    "environment.jobs.legacy.image": at("jobs.legacy.image", "a b"),
    "environment.jobs.t5-large.pool": at("jobs.t5-large.pool", "a100"),
    "environment.priorities.high": at("priorities.high", 1e9),
    "environment.tags.team": at("tags", {"team": 17}),
}


@pytest.mark.parametrize("path", ERRORS)
def test_an_error_is_reported_alone(path: str) -> None:
    assert {error.path for error in _planned(ERRORS[path]).errors} == {path}


def test_any_two_errors_of_a_file_are_both_reported_and_nothing_else_is() -> None:
    wrong = {}
    for first, second in itertools.combinations(ERRORS, 2):
        found = {error.path for error in _planned(ERRORS[first], ERRORS[second]).errors}
        if found != {first, second}:
            wrong[first, second] = found
    assert wrong == {}


def test_all_errors_of_a_file_are_reported_together() -> None:
    found = {error.path for error in _planned(*ERRORS.values()).errors}
    assert found == set(ERRORS)


# What depends on a wrong value is not guessed.


def test_what_depends_on_a_wrong_value_is_said_not_to_be_checked() -> None:
    found = planned(at("pools.g6e.max_nodes", "many"), without("jobs.t5-large.image"))
    assert [str(warning) for warning in found.warnings if "not checked" in warning.text] == [
        "environment: what depends on pools.g6e.max_nodes, jobs.t5-large.image was not checked;"
        " correct the errors first"
    ]


@pytest.mark.parametrize(
    ("edits", "dependent"),
    [
        ([at("pools.g6e.max_nodes", "many"), at("jobs.t5-large.nodes", 9)], "jobs.t5-large.nodes"),
        ([at("pools", 5)], "jobs.t5-large.pool"),
        ([at("pools.g6e", 5)], "jobs.t5-large.pool"),
        ([at("storage", "efs")], "jobs.t5-large.checkpoints.store"),
        ([at("trainer", None)], "jobs.t5-large.runtime"),
        ([at(OWN, "image")], "jobs.t5-large.runtime"),
        ([at("trainer.own_runtimes", [])], "jobs.t5-large.runtime"),
    ],
)
def test_what_only_a_stand_in_has_is_no_error(edits: list[Edit], dependent: str) -> None:
    assert f"environment.{dependent}" not in {error.path for error in planned(*edits).errors}


def test_an_entry_with_a_wrong_name_is_judged_under_the_name_that_the_file_has() -> None:
    pool = {"instance_types": ["p7.48xlarge"], "max_nodes": 1}
    found = planned(lambda settings: settings["pools"].update({"Big": pool})).errors
    assert [error.path for error in found] == [
        "environment.pools.Big",
        "environment.pools.Big.instance_types",
    ]


def test_an_entry_whose_corrected_name_is_taken_stands_beside_the_other() -> None:
    pool = {"instance_types": ["g6e.48xlarge"], "max_nodes": 1}
    found = reading(lambda settings: settings["pools"].update({"G6E": pool}))
    assert found.config and found.config.environment
    assert [*found.config.environment.pools] == ["g6e", "h100", "g6e-x"]


def test_a_store_called_jobs_has_errors_at_its_own_path() -> None:
    store = {"lustre": {"capacity_gib": "many"}}
    found = reading(at("storage.jobs", store)).errors
    assert [error.path for error in found] == ["environment.storage.jobs.lustre.capacity_gib"]


# Lines that are no YAML, and keys that are there twice.


def _of_file(folder: Path, *changes: tuple[str, str]) -> list[str]:
    text = DEV
    for old, new in (*changes, ("10.0.0.0/16", "8.8.8.0/24"), ("max_nodes: 4}", "max_node: 4}")):
        assert old in text
        text = text.replace(old, new)
    (folder / "Pulumi.yaml").write_text((CHECKOUT / "Pulumi.yaml").read_text())
    (folder / "Pulumi.dev.yaml").write_text(text)
    return [error.path for error in plan_stack(read_file("dev", folder), CHECKOUT).errors]


REST = ["environment.pools.g6e.max_node"]
REST += ["environment.network.cidr", "environment.network.cidr"]


@pytest.mark.parametrize(
    "change",
    [
        ("      home: {efs", "\thome: {efs"),
        ("      home: {efs", "       home: {efs"),
        ("      home: {", "      home: @{"),
        ("        nodes: 2\n", "       nodes: 2\n"),
        ("        pool: g6e\n", "        pool: a: g6e\n"),
    ],
)
def test_a_line_that_is_no_yaml_hides_no_error_elsewhere(
    tmp_path: Path, change: tuple[str, str]
) -> None:
    assert _of_file(tmp_path, change) == ["", *REST]


def test_a_key_that_is_there_twice_hides_no_error_elsewhere(tmp_path: Path) -> None:
    twice = ("        nodes: 2\n", "        nodes: 2\n        nodes: 2\n")
    assert _of_file(tmp_path, twice) == ["environment.jobs.t5-large.nodes", *REST]


# Teams.


def _team(folder: Path, environment: str | None, *edits: Edit) -> list[InputError]:
    """Errors of a team with a wrong label, on an environment with this stack file."""
    (folder / "Pulumi.yaml").write_text((CHECKOUT / "Pulumi.yaml").read_text())
    if environment is not None:
        (folder / "Pulumi.dev.yaml").write_text(environment)
    label = at("jobs.vit-base.labels", {"team": "a b"})
    found = planned(label, *edits, stack="team-vision", folder=folder).errors
    assert all(isinstance(error, InputError) for error in found)
    return [*found]


@pytest.mark.parametrize(
    "environment",
    [
        None,
        "",
        "config: {a: [}",
        DEV.replace("zone: ap-northeast-2a", "zone: ap-northeast-2"),
        DEV.replace('"1.35"', "1.35"),
        DEV.replace("max_nodes: 4", "max_nodes: many"),
        DEV.replace("g6e.48xlarge", "g7.48xlarge"),
        (CHECKOUT / "Pulumi.team-vision.yaml").read_text(),
    ],
)
def test_an_error_of_the_environment_hides_none_of_the_team(
    tmp_path: Path, environment: str | None
) -> None:
    assert [error.path for error in _team(tmp_path, environment)] == [
        "team.environment",
        "team.jobs.vit-base.labels.team",
    ]


def test_a_wrong_type_of_a_team_hides_no_error_of_its_rules(tmp_path: Path) -> None:
    found = _team(tmp_path, DEV, at("max_gpus", "8"), at("jobs.vit-base.pool", "a100"))
    assert [error.path for error in found] == [
        "team.max_gpus",
        "team.jobs.vit-base.pool",
        "team.jobs.vit-base.labels.team",
    ]


# Stand-ins.


def _settings(value: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Paths of all settings and entries."""
    if not isinstance(value, dict):
        return [path]
    return [
        path,
        *(found for key, item in value.items() for found in _settings(item, (*path, key))),
    ]


WRONG: tuple[Any, ...] = (["", 0, {}], {"a": {"b": []}}, 0.5, "?")
PLACES = _settings(everything()[ENVIRONMENT])[1:]


def test_there_are_stand_ins_for_every_setting() -> None:
    """Whatever is wrong with it: the rules run twice, and the error is the setting's."""
    wrong = []
    for place, value in zip(PLACES, itertools.cycle(WRONG), strict=False):
        found = reading(_put(place, value))
        path = ".".join(("environment", *place))
        others = [e.path for e in found.errors if not f"{e.path}.".startswith(f"{path}.")]
        if others or len(found.configs) != 2 - (not found.errors):
            wrong.append((place, value, others))
    assert len(PLACES) > 150 and wrong == []


def test_a_wrong_s3_store_is_answered_with_a_store_and_a_wrong_link_with_a_prefix() -> None:
    [store] = reading(at("storage.sets", {"s3": 0.5})).errors
    links = {"a": {"s3": {}, "path": "/a"}}
    [link] = reading(at("storage.scratch.lustre.repositories", links)).errors
    assert store.fix == "write a value such as {}"
    assert link.fix == "write a value such as s3://bucket/prefix/"


def _put(place: tuple[str, ...], value: Any) -> Edit:
    def edit(settings: dict[str, Any]) -> None:
        settings.clear()
        settings.update(everything()[ENVIRONMENT])
        holder = settings
        for step in place[:-1]:
            holder = holder[step]
        holder[place[-1]] = value

    return edit


def test_a_setting_has_two_stand_ins_the_likeliest_first() -> None:
    assert stand_ins(("environment", "cluster", "version"), "1.34")[0] == "1.34"
    for path in (
        "zone",
        "cluster.version",
        "pools.a.max_nodes",
        "trainer.runtimes",
        "jobs.a.nodes",
    ):
        first, second = stand_ins(("environment", *path.split(".")), None)
        assert first != second and REMOVE not in (first, second)
    assert stand_ins(("environment", "zone_id"), None)[0] is REMOVE


def test_a_problem_is_kept_where_both_stand_ins_have_it() -> None:
    def error(path: str, got: str) -> InputError:
        return InputError(path=path, must="be b", got=got, fix="write b")

    found = StandIns(paths=("a.b",), renamed={"a.new": "a.Old"})
    first = [error("a.c", "1"), error("a.d", "1"), error("a.b.e", "1"), error("a.new.x", "1")]
    second = [error("a.c", "1"), error("a.d", "2"), error("a.b.e", "1"), error("a.new.x", "1")]
    assert [each.path for each in found.agreed(first, second)] == ["a.c", "a.Old.x"]


@pytest.mark.parametrize(
    ("needed", "other", "value", "fix"),
    [
        ("jobs.t5-large.nodes", "num_nodes", 2, "did you mean nodes?"),
        (
            "pools.g6e.instance_types",
            "instance_type",
            "g6e.48xlarge",
            "write instance_types: [g6e.48xlarge] in its place",
        ),
    ],
)
def test_a_needed_setting_under_another_name_is_one_error(
    needed: str, other: str, value: Any, fix: str
) -> None:
    there = f"{needed.rpartition('.')[0]}.{other}"
    found = planned(without(needed), at(there, value)).errors
    assert [str(error) for error in found] == [
        f"environment.{there}: must be the name of a setting; got {other}. Fix: {fix}"
    ]


def test_what_a_fix_proposes_is_of_the_region_of_the_stack() -> None:
    made = values(at("kms_key_arn", "ml"), at("network", {"vpc_id": "vpc-0123456789abcdef0"}))
    made["aws:region"] = "us-east-2"
    said = [str(error) for error in read(made, stack="dev", project="trainyard").errors]
    assert len(said) == 2
    assert "Fix: write one such as arn:aws:kms:us-east-2:123456789012:key/" in " ".join(said)
    assert "Fix: add private_subnets: {us-east-2a: subnet-" in " ".join(said)
