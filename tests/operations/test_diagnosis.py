"""What `make status` says, from snapshots: each cause is named, and a finished job is left alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from operations.diagnosis import diagnose
from operations.snapshot import Snapshot

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
Object = dict[str, Any]


def _object(kind: str, name: str, age: int = 300, **rest: Any) -> Object:
    created = (NOW - timedelta(seconds=age)).strftime("%Y-%m-%dT%H:%M:%SZ")
    meta = {"name": name, "namespace": "training", "creationTimestamp": created, **rest.pop("metadata", {})}
    return {"kind": kind, "metadata": meta, **rest}


def _job(command: str = "torchrun --rdzv_endpoint=a:1", **status: Any) -> Object:
    return _object("TrainJob", "run", spec={"runtimeRef": {"name": "torch"}, "trainer": {
        "numNodes": 2, "command": ["/bin/bash", "-c", command]}}, status=status)


CONTROLLERS = [_object("Deployment", name, status={"availableReplicas": 1}) for name in
               ("karpenter", "jobset-controller", "kubeflow-trainer-controller-manager")]


def _said(**objects: list[Object]) -> str:
    logs = objects.pop("logs", {})
    found = {"trainjobs": [_job()], "deployments": CONTROLLERS, **objects}
    return "\n".join(map(str, diagnose(Snapshot(objects=found, logs=logs), NOW)))  # type: ignore[arg-type]


def test_a_running_job_with_its_controllers_is_left_alone():
    assert _said() == ""


def test_a_complete_job_is_left_alone_whatever_else_is_wrong():
    complete = _job(conditions=[{"type": "Complete", "status": "True"}])
    assert _said(trainjobs=[complete], deployments=[]) == ""


def test_a_chart_that_is_not_installed_is_named():
    assert "nothing launches nodes" in _said(deployments=CONTROLLERS[1:])
    assert "nothing starts jobs" in _said(deployments=CONTROLLERS[:2])


def test_kinds_that_nobody_serves_name_their_release():
    snapshot = Snapshot(objects={}, unserved=frozenset({"trainjobs", "nodepools"}))
    said = "\n".join(map(str, diagnose(snapshot, NOW)))
    assert "release kubeflow-trainer is not installed" in said
    assert "release karpenter-crd is not installed" in said


def test_a_role_that_is_too_narrow_is_named_from_the_controllers_log():
    log = ('jobsets.jobset.x-k8s.io is forbidden: User \\"system:serviceaccount:kubeflow-system:trainer\\" cannot'
           ' create resource \\"jobsets\\" in API group')
    said = _said(logs={"kubeflow-system/trainer": log})  # type: ignore[arg-type]
    assert "system:serviceaccount:kubeflow-system:trainer may not create jobsets" in said
    assert "its Role is too narrow" in said


def test_a_call_that_aws_refuses_is_named_once():
    log = "UnauthorizedOperation: you are not authorized\nUnauthorizedOperation: you are not authorized"
    assert _said(logs={"kube-system/karpenter": log}).count("AWS refused a call") == 1  # type: ignore[arg-type]


def test_a_condition_of_the_node_class_that_is_false_is_named():
    broken = _object("EC2NodeClass", "gpu", status={"conditions": [
        {"type": "SubnetsReady", "status": "False", "message": "no subnet"}]})
    assert "SubnetsReady is False" in _said(ec2nodeclasses=[broken])


@pytest.mark.parametrize("state, words", [
    ({}, "is not launched"),
    ({"Launched": "True"}, "needs an access entry"),
    ({"Launched": "True", "Registered": "True"}, "device plugin is missing"),
])
def test_a_node_that_does_not_come_names_the_step_it_hangs_at(state: dict[str, str], words: str):
    every = {"Launched": "Unknown", "Registered": "Unknown", "Initialized": "Unknown", **state}
    claim = _object("NodeClaim", "gpu-x", status={"conditions": [
        {"type": kind, "status": status, "message": ""} for kind, status in every.items()]})
    assert words in _said(nodeclaims=[claim])


def test_a_node_that_is_just_coming_is_not_worth_a_word():
    assert _said(nodeclaims=[_object("NodeClaim", "gpu-x", age=5)]) == ""


def test_a_command_without_a_rendezvous_endpoint_is_named_also_when_its_line_continues():
    assert "no --rdzv_endpoint" in _said(trainjobs=[_job("torchrun \\\n --nproc_per_node=8 a.py")])


def test_a_failed_job_says_the_reason_and_its_last_words():
    failed = _job(conditions=[{"type": "Failed", "status": "True", "reason": "ReachedMaxRestarts", "message": "m"}])
    said = _said(trainjobs=[failed], logs={"training/run-node-0-0-x": "a\nboom"})  # type: ignore[arg-type]
    assert "ReachedMaxRestarts" in said
    assert "last words: boom" in said


def test_an_event_about_nothing_that_has_a_name_is_no_obstacle():
    assert _said(events=[_object("Event", "e", involvedObject={}, message="hello")]) == ""


def test_a_pending_pod_says_what_the_scheduler_says():
    pod = _object("Pod", "run-node-0-0-x", metadata={"labels": {"jobset.sigs.k8s.io/jobset-name": "run"}},
                  status={"phase": "Pending"})
    event = _object("Event", "e", involvedObject={"name": "run-node-0-0-x"}, type="Warning", message="0/2 nodes")
    assert "0/2 nodes" in _said(pods=[pod], events=[event])
