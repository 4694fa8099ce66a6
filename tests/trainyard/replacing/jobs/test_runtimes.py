"""A runtime does not change under TrainJobs of queues, whose JobSet takes no such change."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.recording import Graph
from tests.support.stackfile import Edit, at, environment_plan, planned, reading
from trainyard.objects.queues.queues import QUEUE_LABEL
from trainyard.plans.controllers import RELEASE
from trainyard.replacing.compared import compared
from trainyard.replacing.deployed import PROVIDER, Deployed
from trainyard.replacing.jobs.runtimes import runtime_errors, runtime_warnings
from trainyard.replacing.moving import TRAINER
from trainyard.replacing.replacing import RUNTIME

OWN, SHIPPED = "torch-distributed-resilient", "torch-distributed"
AT = f"trainer.own_runtimes.{OWN}"
TEAM = {"deployer": "arn:aws:iam::123456789012:role/vision"}
QUEUES = (at("jobs", {}), at("teams", {"vision": TEAM}), at("queues", {}))
NEWER = at("trainer.version", "2.3.0")
DEBUG = at(f"{AT}.env", {"NCCL_DEBUG": "WARN"})
KUBECONFIG = {"kubeconfig": "ours", "clusterIdentifier": "arn"}


def _filled(value: Any) -> Any:
    """A spec with some defaults of the API server."""
    if isinstance(value, list):
        return [_filled(each) for each in value]
    if not isinstance(value, dict):
        return value
    more = {"replicas": 1.0, "groupName": "default"} if "template" in value else {}
    return more | {key: _filled(each) for key, each in value.items()}


def _before(*edits: Edit) -> Deployed:
    """An environment that is deployed, as the engine tells it."""
    plan = environment_plan(*QUEUES, *edits)
    runtimes = {
        (RUNTIME, each.name): {"spec": {**each.spec, "template": _filled(each.spec["template"])}}
        for each in plan.runtimes
    }
    release = {(RELEASE, TRAINER): {"version": plan.trainer.version}}
    return Deployed(resources=runtimes | release | {(PROVIDER, "cluster"): KUBECONFIG})


def _job(name: str, *conditions: str, queue: str = "vision", **spec: Any) -> Any:
    shown = [{"type": each, "status": "True"} for each in conditions]
    labels = {QUEUE_LABEL: queue} if queue else {}
    return {
        "metadata": {"name": name, "namespace": "team-vision", "labels": labels},
        "spec": {"runtimeRef": {"name": OWN}} | spec,
        "status": {"conditions": shown},
    }


def _said(rule: Any, jobs: tuple[Any, ...], *edits: Edit, before: tuple[Edit, ...] = ()) -> Any:
    def show(kubeconfig: str, kind: str, namespace: str | None) -> list[Any]:
        assert (kubeconfig, namespace) == ("ours", None)
        return [*jobs] if kind.startswith("trainjobs") else []

    return [str(one) for one in rule(environment_plan(*QUEUES, *edits), _before(*before), show)]


def _refused(*jobs: Any, edits: tuple[Edit, ...] = (DEBUG,), before: tuple[Edit, ...] = ()) -> Any:
    return _said(runtime_errors, jobs, *edits, before=before)


def test_a_runtime_keeps_its_pods_while_jobs_of_queues_name_it() -> None:
    waits, runs = _job("waits", suspend=True), _job("runs", suspend=False)
    [error] = _refused(waits, runs)
    assert error.startswith(f"environment.{AT}: must keep the pods of runtime {OWN} as they are")
    assert "NCCL_DEBUG" in error and "beside team-vision/runs, team-vision/waits." in error
    assert "add a runtime of another name beside it" in error and "trainyard again" in error


@pytest.mark.parametrize(
    "edit",
    [
        at(f"{AT}.image", "registry.example.com/other:1"),
        at(f"{AT}.command", ["python", "other.py"]),
        at(f"{AT}.image_pull_policy", "always"),
        at(f"{AT}.pool", "g6e"),
    ],
)
def test_each_setting_of_the_pods_holds_a_job_that_does_not_say_it_itself(edit: Edit) -> None:
    assert _refused(_job("waits", suspend=True), edits=(edit,))
    assert _refused(_job("waits", suspend=True), before=(edit,), edits=())


def test_what_a_job_says_itself_is_no_change_of_its_runtime() -> None:
    trainer = {
        "image": "registry.example.com/mine:1",
        "command": ["python", "mine.py"],
        "env": [{"name": "NCCL_DEBUG", "value": "INFO"}],
    }
    mine = _job("mine", suspend=True, trainer=trainer)
    for setting, value in (
        ("image", "registry.example.com/other:1"),
        ("command", ["python", "other.py"]),
    ):
        assert not _refused(mine, edits=(at(f"{AT}.{setting}", value),))
    other = at(f"{AT}.env", {"NCCL_DEBUG": "TRACE"})
    assert not _refused(mine, before=(DEBUG,), edits=(other,))
    assert not _refused(mine, before=(DEBUG,), edits=())
    assert _refused(mine, edits=(at(f"{AT}.env", {"NCCL_ALGO": "Ring"}),))


def test_jobs_that_ended_or_name_another_runtime_or_run_without_a_queue_hold_nothing() -> None:
    theirs = {"kind": "TrainingRuntime", "name": OWN}
    assert not _refused(
        _job("ended", "Complete", suspend=True),
        _job("failed", "Failed"),
        _job("other", suspend=True, runtimeRef={"name": SHIPPED}),
        _job("theirs", suspend=True, runtimeRef=theirs),
        _job("free", queue="", suspend=False),
    )
    assert _refused(_job("free", queue="", suspend=True))


def test_what_jobset_lets_change_or_replaces_the_runtime_holds_nobody() -> None:
    waits = _job("waits", suspend=True)
    assert not _refused(waits, edits=())
    assert not _refused(waits, edits=(at(f"{AT}.max_restarts", 9),))


def test_a_trainer_that_moves_changes_what_upstream_ships() -> None:
    bare = _job("bare", suspend=True, runtimeRef={"name": SHIPPED})
    [error] = _refused(bare, edits=(NEWER,))
    assert error.startswith("environment.trainer.version: must keep the pods of runtime")
    assert "another name" not in error
    named = _job("named", suspend=True, runtimeRef={"name": SHIPPED}, trainer={"image": "mine:1"})
    assert not _refused(named, edits=(NEWER,))


def test_a_trainer_that_keeps_the_runtime_of_each_job_only_warns_of_gangs_that_kueue_stops() -> (
    None
):
    waits, runs = _job("waits", suspend=True), _job("runs", suspend=False)
    assert not _refused(waits, runs, edits=(NEWER, DEBUG), before=(NEWER,))
    [warning] = _said(runtime_warnings, (waits, runs), NEWER, DEBUG, before=(NEWER,))
    assert "Kueue stops team-vision/runs and starts it again, with the runtime of before" in warning
    assert not _said(runtime_warnings, (waits,), NEWER, DEBUG, before=(NEWER,))
    assert not _said(runtime_warnings, (waits, runs), DEBUG)


def test_nobody_is_asked_where_no_runtime_changes_or_nothing_is_deployed(dev: Graph) -> None:
    def show(*_: Any) -> list[Any]:
        raise AssertionError

    assert not [*runtime_errors(environment_plan(*QUEUES), _before(), show)]
    assert not [*runtime_errors(environment_plan(*QUEUES, DEBUG), Deployed(), show)]
    recorded = {
        (RUNTIME, name): dev[f"ClusterTrainingRuntime {name}"].inputs for name in (OWN, SHIPPED)
    }
    before = Deployed(resources=recorded | {(PROVIDER, "cluster"): KUBECONFIG})
    assert not [*runtime_errors(environment_plan(), before, show)]


def test_a_preview_says_it_with_everything_else_that_it_compares() -> None:
    edits = (*QUEUES, DEBUG)
    found = compared(
        planned(*edits),
        reading(*edits).lines,
        lambda types, other: _before(),
        lambda config, kind, namespace: [_job("j")] if kind.startswith("trainjobs") else [],
    )
    assert any("must keep the pods of runtime" in str(each) for each in found.errors)
