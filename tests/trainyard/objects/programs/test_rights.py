"""Rights of the programs that run in the cluster."""

from __future__ import annotations

import json
from types import ModuleType

import pytest

from tests.support.stackfile import at, environment_plan
from trainyard.objects.programs import gangs, history, repair, told
from trainyard.parts.parts import HISTORY, TOLD


@pytest.mark.parametrize("program", [gangs, history, repair, told])
def test_a_program_may_watch_each_list_that_it_may_read(program: ModuleType) -> None:
    listed = [(group, kind) for group, kind, verbs in program.MAY if "list" in verbs]
    watched = [(group, kind) for group, kind, verbs in program.MAY if "watch" in verbs]
    assert listed == watched != []


def test_kinds_of_jobs_that_the_stack_adds_are_looked_at_too() -> None:
    parts = at("told", {"emails": ["a@example.com"]}), at("history", {})
    more = at("training_operator", {"version": "1.8.1", "more_kinds": ["TFJob", "MPIJob"]})
    plain, added = (environment_plan(*parts, *each) for each in ((), (more,)))
    for part, module in ((TOLD, told), (HISTORY, history)):
        before, after = (module.program(part.of(plan)) for plan in (plain, added))
        given = [right for right in after.may if right not in before.may]
        assert [(group, kind) for group, kind, _ in given] == [
            ("kubeflow.org", "mpijobs"),
            ("kubeflow.org", "tfjobs"),
        ]
        assert {verbs for *_, verbs in given} == {
            verbs for _, kind, verbs in before.may if kind == "pytorchjobs"
        }
        assert json.loads(after.settings)["more_kinds"] == ["MPIJob", "TFJob"]
        assert "more_kinds" not in before.settings
