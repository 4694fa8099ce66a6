"""What teams rely on, and what they do not notice."""

from __future__ import annotations

import json

import pytest

from tests.support.stackfile import Edit, at, environment_plan, without
from trainyard.settings.reading.contracts import signature

SAME_PROMISE: list[Edit] = [
    at("jobs", {}),
    at("artifacts.charts", "/charts"),
    at("tags.team", "a"),
    at("cluster.public_access_cidrs", ["203.0.113.7/32"]),
    at("storage.scratch.data", "keep"),
    at("system_nodes.nodes", 3),
]
OTHER_PROMISE: list[Edit] = [
    at("pools.g6e.max_nodes", 8),
    without("pools.h100"),
    without("storage.home"),
    at("zone", "ap-northeast-2b"),
    at("trainer.runtimes", ["torch-distributed"]),
    at("prices", {"discount_percent": 12}),
]


@pytest.mark.parametrize("edit", SAME_PROMISE)
def test_teams_do_not_notice_what_was_not_promised(edit: Edit) -> None:
    assert environment_plan(edit).contract == environment_plan().contract


@pytest.mark.parametrize("edit", OTHER_PROMISE)
def test_a_change_of_what_was_promised_changes_the_digest(edit: Edit) -> None:
    assert environment_plan(edit).contract["digest"] != environment_plan().contract["digest"]


def test_a_promise_is_plain_versioned_and_names_itself() -> None:
    contract = dict(environment_plan().contract)
    assert contract["version"] == 2 and contract["digest"] == signature(contract)
    assert json.loads(json.dumps(contract)) == contract
