"""A preview says that an update moves Kubernetes."""

from __future__ import annotations

from tests.support.deployed import deployed
from tests.support.graphs import environment
from tests.support.stackfile import Edit, at, environment_plan
from trainyard.replacing.deployed import Deployed
from trainyard.replacing.upgrading import upgrade_warnings

OLD, NEW = at("cluster.version", "1.34"), at("cluster.version", "1.35")


def _said(before: Deployed, *edits: Edit) -> list[str]:
    return [str(each) for each in upgrade_warnings(environment_plan(*edits), before)]


def test_another_version_than_the_deployed_one_is_said_with_what_happens_to_gangs() -> None:
    before = deployed(environment(OLD))
    [said] = _said(before, NEW)
    assert said.startswith(
        "environment.cluster.version: this update moves Kubernetes from 1.34 to 1.35, and this program cannot"
        " take it back"
    )
    assert "the 2 system nodes are replaced one by one" in said and "Gangs go on" in said


def test_the_same_version_and_a_first_update_say_nothing() -> None:
    assert _said(deployed(environment(OLD)), OLD) == []
    assert _said(Deployed(), NEW) == []
