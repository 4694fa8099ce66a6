"""What the pods of a run do now, in words. Why those that wait have not begun: test_symptoms.py, test_diagnosis.py."""

from __future__ import annotations

from typing import Any

import pytest

from trainyard.catalog.logs.waiting import (
    message_about_placement,
    phase,
    phases,
    waits_for,
    why_it_does_not_start,
)


def _pod(phase: str, reason: str = "", *, node: str = "n", **more: Any) -> dict[str, Any]:
    state = {"waiting": {"reason": reason}} if reason else {"running": {}}
    containers = [{"state": state, "restartCount": 0}]
    status: dict[str, Any] = {"phase": phase, "containerStatuses": containers, **more}
    return {"metadata": {"name": "p"}, "spec": {"nodeName": node}, "status": status}


INIT: dict[str, Any] = {
    "initContainerStatuses": [{"name": "init-pytorch", "state": {"running": {}}}]
}


def test_a_crash_loop_is_not_two_running_pods() -> None:
    def pod(restarts: int) -> dict[str, Any]:
        statuses = [{"restartCount": restarts}]
        return {"status": {"phase": "Running", "containerStatuses": statuses}}

    assert phases([pod(0), pod(0)]) == "2 Running"
    assert phases([pod(11), pod(9)]) == "2 Running, 20 restarts"
    assert phases([]) == "no pods yet"


def test_a_pod_that_cannot_start_is_counted_by_its_reason() -> None:
    pods = [_pod("Pending", "CreateContainerConfigError"), _pod("Pending", "ContainerCreating")]
    assert phases(pods) == "1 CreateContainerConfigError, 1 Pending"


def test_two_reasons_that_alternate_are_one() -> None:
    """`make up` ends its wait when nothing has changed for minutes."""
    assert phase(_pod("Pending", "ErrImagePull")) == phase(_pod("Pending", "ImagePullBackOff"))


@pytest.mark.parametrize(
    ("pods", "reason"),
    [
        ([_pod("Pending", "CreateContainerConfigError")], "CreateContainerConfigError"),
        ([_pod("Pending", "ErrImagePull")], "ImagePullBackOff"),
        ([_pod("Running", "CrashLoopBackOff")], "CrashLoopBackOff"),
        ([_pod("Pending", node="", containerStatuses=[])], "no node"),
        ([_pod("Pending", "PodInitializing", **INIT)], "init container init-pytorch"),
        ([_pod("Pending", "ContainerCreating")], "its containers"),
        ([_pod("Running"), _pod("Pending", "ImagePullBackOff")], ""),
        ([_pod("Succeeded"), _pod("Failed")], ""),
        ([], ""),
    ],
)
def test_a_job_of_which_no_pod_runs_waits_for_something(
    pods: list[dict[str, Any]], reason: str
) -> None:
    assert waits_for(pods) == reason


@pytest.mark.parametrize(
    ("spec", "literals"),
    [
        (
            {"env": [{"valueFrom": {"secretKeyRef": {"name": "hf", "key": "token"}}}]},
            "--from-literal=token=…",
        ),
        (
            {"env": [{"name": "A", "valueFrom": {"secretKeyRef": {"name": "other", "key": "a"}}}]},
            "--from-literal=<key>=…",
        ),
        ({}, "--from-literal=<key>=…"),
    ],
)
def test_a_secret_that_is_missing_has_the_command_that_makes_it(
    spec: dict[str, Any], literals: str
) -> None:
    pod = _pod("Pending")
    waiting = {"reason": "CreateContainerConfigError", "message": 'secret "hf" not found'}
    pod["status"]["containerStatuses"] = [{"state": {"waiting": waiting}}]
    pod["spec"]["containers"] = [spec]
    why, do = why_it_does_not_start(pod, [], "", namespace="training", job="a=b")
    assert why.startswith("Secret hf does not exist")
    assert do.startswith(f"kubectl -n training create secret generic hf {literals}; ")


def test_a_secret_that_is_mounted_names_the_keys_that_are_mounted() -> None:
    pod = _pod("Pending", containerStatuses=[])
    mounted = {"secretName": "hf", "items": [{"key": "a"}, {"key": "b"}]}
    pod["spec"]["volumes"] = [{"secret": mounted}, {"emptyDir": {}}]
    event = {
        "type": "Warning",
        "involvedObject": {"name": "p"},
        "message": 'MountVolume.SetUp failed for volume "s" : secret "hf" not found',
    }
    _, do = why_it_does_not_start(pod, [event], "", namespace="t", job="a=b")
    assert "generic hf --from-literal=a=… --from-literal=b=…" in do


def _warning(about: str, at: str, message: str, kind: str = "NodeClaim") -> Any:
    return {
        "type": "Warning",
        "involvedObject": {"kind": kind, "name": about},
        "lastTimestamp": at,
        "message": message,
        "reportingComponent": "karpenter",
    }


def test_only_a_node_of_its_own_pool_since_it_is_there_tells_why_a_pod_has_none() -> None:
    pod = {
        "metadata": {"name": "eval-0", "creationTimestamp": "2026-11-29T01:00:00Z"},
        "spec": {"nodeSelector": {"trainyard.io/pool": "g6e"}},
        "status": {"phase": "Pending"},
    }
    own = _warning("eval-0", "2026-11-29T01:00:05Z", "incompatible requirements", "Pod")
    others = [
        _warning("p5-fpc7s", "2026-11-29T01:10:00Z", "of another pool"),
        _warning("g6e-2-fpc7s", "2026-11-29T00:20:00Z", "of before"),
    ]
    assert message_about_placement([pod], [own, *others]) == "incompatible requirements"
    now = _warning("g6e-2-x2x2x", "2026-11-29T01:10:00Z", "no capacity")
    assert message_about_placement([pod], [own, *others, now]) == "no capacity"
    anywhere = {**pod, "spec": {}}
    assert message_about_placement([anywhere], [own, *others]) == "of another pool"


def test_what_keeps_the_pods_of_another_team_explains_none_of_the_same_name() -> None:
    pod = _pod("Pending", containerStatuses=[])
    pod["metadata"]["namespace"] = "team-b"
    event = _warning("p", "2026-11-29T01:00:05Z", 'secret "hf-token" not found', "Pod")
    event["metadata"] = {"namespace": "team-a"}
    assert why_it_does_not_start(pod, [event], "look", namespace="team-b", job="a=b") == (
        "no event tells the reason",
        "look",
    )
    assert message_about_placement([pod], [event]) == "no event tells the reason"
