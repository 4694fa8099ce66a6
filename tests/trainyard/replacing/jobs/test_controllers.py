"""The training-operator stays while jobs of its kinds go on."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.deployed import deployed
from tests.support.graphs import environment
from tests.support.stackfile import Edit, at, environment_plan, planned, reading
from trainyard.catalog.job_kinds import resource_of
from trainyard.replacing.compared import compared
from trainyard.replacing.deployed import PROVIDER, Deployed, Show
from trainyard.replacing.jobs.controllers import operator_errors

ALONE = at("jobs", {})
OPERATOR = at("training_operator", {"version": "1.8.1"})
MORE = at("training_operator", {"version": "1.8.1", "more_kinds": ["TFJob", "MPIJob"]})
FEWER = at("training_operator", {"version": "1.8.1", "more_kinds": ["MPIJob"]})


@pytest.fixture(scope="module")
def before() -> Deployed:
    """An environment with the operator and two more kinds."""
    made = deployed(environment(ALONE, MORE))
    provider = {(PROVIDER, "cluster"): {"kubeconfig": "ours", "clusterIdentifier": "arn"}}
    return Deployed(resources={**made.resources, **provider})


def _job(name: str, *conditions: str) -> Any:
    shown = [{"type": each, "status": "True"} for each in conditions]
    metadata = {"name": name, "namespace": "team-vision"}
    return {"metadata": metadata, "spec": {}, "status": {"conditions": shown}}


def _shows(**jobs: list[Any]) -> Show:
    found = {resource_of(kind): there for kind, there in jobs.items()}
    return lambda _, kind, space: found.get(kind, [])


def _said(before: Deployed, *edits: Edit, **jobs: list[Any]) -> list[str]:
    plan = environment_plan(ALONE, *edits)
    return [str(each) for each in operator_errors(plan, before, _shows(**jobs))]


def test_the_operator_stays_until_the_jobs_of_its_kinds_have_ended(before: Deployed) -> None:
    jobs = {"PyTorchJob": [_job("old"), _job("done", "Succeeded")], "TFJob": [_job("tf")]}
    assert _said(before, TrainJob=[_job("new")], **jobs) == [
        "environment.training_operator: must stay while jobs of its kinds have not ended: nobody else makes a pod of"
        " theirs that failed again, or marks them as ended, so that a gang that lost a pod waits on its nodes for ever;"
        " got nothing beside PyTorchJob team-vision/old, TFJob team-vision/tf. Fix: write it again, and delete it when"
        " they have ended; kubectl --namespace <its namespace> delete <kind> <name> ends one"
    ]
    assert _said(before, TrainJob=[_job("new")], PyTorchJob=[_job("done", "Failed")]) == []


def test_a_kind_stays_until_its_jobs_have_ended(before: Deployed) -> None:
    jobs = {"PyTorchJob": [_job("old")], "MPIJob": [_job("mpi")], "TFJob": [_job("tf")]}
    [error] = _said(before, FEWER, **jobs)
    assert error.startswith(
        "environment.training_operator.more_kinds: must keep each kind of which"
    )
    assert "got MPIJob beside TFJob team-vision/tf. Fix: write it again" in error
    [error] = _said(before, OPERATOR, TFJob=[_job("tf")])
    assert "got nothing beside TFJob team-vision/tf" in error


def test_nobody_is_asked_where_no_kind_goes(before: Deployed) -> None:
    def show(*_: Any) -> list[Any]:
        raise AssertionError

    alone = deployed(environment(ALONE))
    assert not [*operator_errors(environment_plan(ALONE, MORE), before, show)]
    assert not [*operator_errors(environment_plan(ALONE, MORE), alone, show)]
    assert not [*operator_errors(environment_plan(ALONE), alone, show)]


def test_a_preview_refuses_to_take_the_operator_from_under_a_job(before: Deployed) -> None:
    show = _shows(PyTorchJob=[_job("old")])
    found = compared(planned(ALONE), reading(ALONE).lines, lambda *_: before, show)
    assert [each.path for each in found.errors] == ["environment.training_operator"]
