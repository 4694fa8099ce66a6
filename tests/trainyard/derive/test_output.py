"""The lines of a Python program reach the log of its pod when it prints them."""

from __future__ import annotations

import json

import pytest

from tests.support.cases.environment import JOB
from tests.support.cases.jobs import pytorch_job
from tests.support.stackfile import Edit, at, environment_plan
from trainyard.derive import output
from trainyard.derive.output import VARIABLE

OWN = "trainer.own_runtimes.torch-distributed-resilient"
SECRET = {VARIABLE: {"secret": "a", "key": "b"}}


def said(*edits: Edit) -> list[str]:
    """Values of the variable in the object of the dev file's job, in clear."""
    spec = environment_plan(*edits).jobs["t5-large"].spec
    return [
        each
        for each in ("0", "1")
        if f'"name": "{VARIABLE}", "value": "{each}"' in json.dumps(spec)
    ]


@pytest.mark.parametrize("edits", [(), tuple(pytorch_job()), (at(f"{OWN}.kind", "cpu"),)])
def test_python_prints_each_line_at_once(edits: tuple[Edit, ...]) -> None:
    assert said(*edits) == ["1"]


def test_what_the_job_or_its_own_runtime_says_wins() -> None:
    assert said(at(f"{JOB}.env.{VARIABLE}", "0")) == ["0"]
    assert said(at(f"{JOB}.secrets", SECRET)) == []
    assert said(at(f"{OWN}.env", {VARIABLE: "0"})) == []


def test_the_variable_starts_no_run_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """It came later than the run's identity. The spec of a run that goes on stays as it is."""
    run = environment_plan().jobs["t5-large"].run
    other = environment_plan(at(f"{JOB}.env.{VARIABLE}", "1")).jobs["t5-large"].run
    monkeypatch.setattr(output, "unbuffered", lambda job, own: {})
    assert said() == []
    assert environment_plan().jobs["t5-large"].run == run != other
