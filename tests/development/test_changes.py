"""The changes of a preview at its end: by their names and with what changes, and the figures that become others."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from development.changes import changes, figures, preview_of
from tests.support.stackfile import environment_plan
from trainyard.reports.plan import summary
from trainyard.reports.pull_request import figure_rows

URN = "urn:pulumi:dev::trainyard::"
STACK = {"urn": f"{URN}pulumi:pulumi:Stack::trainyard-dev", "op": "update", "new": {}}
POOL = f"{URN}kubernetes:karpenter.sh/v1:NodePool::g6e-pool"


def step(op: str, urn: str, old: Any = None, new: Any = None, **more: Any) -> dict[str, Any]:
    """An event of the engine, as pulumi 3.259 writes it."""
    states = {"old": old and {"inputs": old}, "new": new and {"inputs": new}}
    return {"resourcePreEvent": {"metadata": {"op": op, "urn": urn, **states, **more}}}


def said(folder: Path, *events: dict[str, Any]) -> list[str]:
    log = folder / "events"
    log.write_text("\n".join(map(json.dumps, events)))
    return changes("dev", log)


def test_a_change_is_named_with_its_values(tmp_path: Path) -> None:
    of = {"spec": {"limits": {"nodes": 4}}}, {"spec": {"limits": {"nodes": 6}}}
    found = said(
        tmp_path,
        step("update", POOL, *of, diffs=["spec"]),
        {"summaryEvent": {"resourceChanges": {"update": 1, "same": 120}}},
    )
    assert found == [
        "  Compared with what is deployed: 1 to update, 120 unchanged.",
        "  updates `NodePool g6e-pool`: `limits.nodes` `4` → `6`",
    ]


def test_a_figure_that_becomes_another_one_is_said_with_the_deployed_one(tmp_path: Path) -> None:
    now = summary(environment_plan())
    was = {**now, "minutes_to_first_step": 99.5, "minutes_to_first_step_one_in_ten": 20}
    assert now["minutes_to_first_step_one_in_ten"] == 20.0, "no difference"
    stack = STACK | {"old": {"outputs": {"plan": was}}}
    found = said(tmp_path, {"resourcePreEvent": {"metadata": stack}})
    assert [line for line in found if "minutes" in line] == [
        f"  minutes to first step: {now['minutes_to_first_step']} (deployed: 99.5)"
    ]


@pytest.mark.parametrize("events", [[], [step("same", POOL)]], ids=["no log", "no change"])
def test_nothing_is_said_where_nothing_changes(tmp_path: Path, events: Any) -> None:
    assert said(tmp_path, *events) == []


def test_reasons_of_a_replacement_are_those_of_the_engine() -> None:
    [found] = preview_of([step("replace", POOL, {"a": 1}, {"a": 2}, keys=["a"])])["steps"]
    assert found["replaceReasons"] == ["a"] and found["newState"] == {"inputs": {"a": 2}}


def test_of_a_stack_that_is_not_there_yet_each_figure_is_said() -> None:
    """Its reviewer signed dollars without a figure."""
    said = " ".join(" ".join(figures("dev")).split())
    for name, value in figure_rows(summary(environment_plan())):
        assert f"{name}: {value}" in said, name
