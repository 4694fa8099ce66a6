"""Why pods of controllers are not ready."""

from __future__ import annotations

from typing import Any

import pytest

from trainyard.catalog.logs.not_ready import MANY, of_release, why_not_ready

Object = dict[str, Any]
LABELS = {"app": "kueue"}


def _workload(**more: Any) -> Object:
    return {
        "metadata": {
            "name": "kueue-controller-manager",
            "namespace": "kueue-system",
            "annotations": {
                "meta.helm.sh/release-name": "kueue",
                "meta.helm.sh/release-namespace": "kueue-system",
            },
        },
        "spec": {"replicas": 1, "selector": {"matchLabels": LABELS}},
        **more,
    }


def _pod(state: Object | None = None, *, placed: bool = True, **more: Any) -> Object:
    container = {"name": "manager", "restartCount": 0, "state": state or {}, **more}
    return {
        "metadata": {
            "name": "kueue-7x",
            "namespace": "kueue-system",
            "labels": {**LABELS, "hash": "1"},
        },
        "spec": {"nodeName": "n1"} if placed else {},
        "status": {"phase": "Pending", "containerStatuses": [container] if placed else []},
    }


def _event(message: str) -> Object:
    return {
        "type": "Warning",
        "message": message,
        "involvedObject": {"kind": "Pod", "name": "kueue-7x"},
    }


def _waiting(reason: str, message: str) -> Object:
    return {"waiting": {"reason": reason, "message": message}}


CRASH = {"terminated": {"exitCode": 1, "reason": "Error"}}


@pytest.mark.parametrize(
    ("pod", "event", "why"),
    [
        (
            _pod(_waiting("ImagePullBackOff", 'image "kueue:1" not found')),
            "",
            "the image cannot be pulled: kueue:1 does not exist",
        ),
        (
            _pod(placed=False),
            "0/2 nodes are available: 2 Insufficient cpu.",
            "it has no node: resources: no node has cpu",
        ),
        (_pod(placed=False), "", "it has no node: no event tells the reason"),
        (
            _pod(
                _waiting("CrashLoopBackOff", "back-off 10s restarting failed container"),
                restartCount=3,
                lastState=CRASH,
            ),
            "",
            "container manager ended with exit code 1 (Error), after 3 restarts",
        ),
        (_pod(CRASH), "", "container manager ended with exit code 1 (Error)"),
        (
            _pod({"running": {}}, restartCount=1, lastState=CRASH),
            "Readiness probe failed: HTTP probe failed with statuscode: 500",
            "Readiness probe failed: HTTP probe failed with statuscode: 500",
        ),
        (_pod({"running": {}}), "", "it runs, and has not said that it is ready"),
        (_pod(_waiting("ContainerCreating", "")), "", "it starts"),
    ],
)
def test_a_pod_that_is_not_ready_is_named_with_the_reason(
    pod: Object, event: str, why: str
) -> None:
    events = [_event(event)] if event else []
    assert [*why_not_ready(_workload(), [pod], events)] == [f"pod kueue-7x: {why}"]


def test_pods_that_are_ready_and_pods_of_others_are_not_named() -> None:
    ready, other, elsewhere = _pod(), _pod(), _pod()
    ready["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
    other["metadata"]["labels"] = {"app": "karpenter"}
    elsewhere["metadata"]["namespace"] = "default"
    assert [*why_not_ready(_workload(), [ready, other, elsewhere], [])] == []


def test_a_workload_whose_pods_are_refused_is_said_with_the_message() -> None:
    refused = {"type": "ReplicaFailure", "status": "True", "message": "exceeded quota: small"}
    name = "kueue-controller-manager has no pod yet"
    assert [*why_not_ready(_workload(), [], [])] == [name]
    conditions = _workload(status={"conditions": [refused]})
    assert [*why_not_ready(conditions, [], [])] == [f"{name}: exceeded quota: small"]
    nowhere = _workload(status={"desiredNumberScheduled": 0})
    assert [*why_not_ready(nowhere, [], [])] == [], "a DaemonSet whose nodes are yet to come"


def test_of_many_pods_the_first_ones_have_a_line() -> None:
    lines = [*why_not_ready(_workload(), [_pod()] * (MANY + 4), [])]
    assert len(lines) == MANY + 1
    assert lines[-1] == "and 4 other pods of kueue-controller-manager"


def test_the_workloads_of_a_release_are_those_that_helm_says() -> None:
    mine, bare = _workload(), _workload()
    del bare["metadata"]["annotations"]
    assert of_release([mine, bare], "kueue", "kueue-system") == [mine]
    assert of_release([mine], "kueue", "default") == []
