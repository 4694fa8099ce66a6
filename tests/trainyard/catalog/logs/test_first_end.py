"""Pods that kubelet ended or did not admit: what kubelet says counts, and no log and no exit code."""

from __future__ import annotations

from typing import Any

import pytest

from trainyard.catalog.logs.cause import cause_of
from trainyard.catalog.logs.first_end import first_to_fail

Object = dict[str, Any]
FULL = "The node was low on resource: ephemeral-storage. Threshold quantity: 1Gi, available: 80Ki. "
EVICTED: Object = {"reason": "Evicted", "message": FULL}
DISRUPTED: Object = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "TerminationByKubelet",
    "message": FULL,
    "lastTransitionTime": "2026-11-30T03:00:00Z",
}


def _pod(number: int, *ends: Object, phase: str = "Failed", **status: Any) -> Object:
    return {
        "metadata": {
            "name": f"t5-{number}",
            "uid": str(number),
            "creationTimestamp": "2026-11-30T01:00:00Z",
            "labels": {"batch.kubernetes.io/job-completion-index": str(number)},
        },
        "spec": {"nodeName": f"n{number}", "containers": [{"name": "node"}]},
        "status": {
            "phase": phase,
            "containerStatuses": [{"name": "node", "state": {"terminated": each}} for each in ends],
            **status,
        },
    }


def _end(code: int, at: str | None = "2026-11-30T03:00:00Z") -> Object:
    return {"exitCode": code, "reason": "Error", "finishedAt": at}


@pytest.mark.parametrize("log", ["", "step 10 loss 3.0\nstep 11 loss 2.9\n"])
@pytest.mark.parametrize(
    "status", [EVICTED, {"conditions": [{"type": "Ready"}, DISRUPTED]}], ids=["status", "condition"]
)
def test_a_pod_that_kubelet_evicted_says_so_whatever_its_log_says(log: str, status: Object) -> None:
    cause = cause_of([_pod(0, _end(137), **status)], lambda end: log)
    assert cause and "ended first, with exit code 137: " in cause.sentence
    assert (
        f": {FULL.strip()} (the disk of the node was full, and kubelet ended the pod)"
        in cause.sentence
    )
    assert "write to a store" in cause.do and "memory_gib" not in cause.do
    assert cause.shown[:-1] == tuple(log.splitlines()) and not cause.is_loss


def test_a_pod_that_kubelet_evicted_ended_first_although_it_was_killed() -> None:
    others = [_pod(number, _end(1, "2026-11-30T02:59:59Z")) for number in (0, 2)]
    end = first_to_fail([*others, _pod(1, _end(137), **EVICTED)])
    assert end and end.rank == 1


def test_a_pod_that_kubelet_ended_long_after_a_rank_did_not_end_first() -> None:
    crashed = _pod(0, _end(1, "2026-11-30T02:50:00Z"))
    end = first_to_fail([crashed, _pod(1, _end(143), **EVICTED)])
    assert end and end.rank == 0
    later = _pod(2, _end(1, "2026-11-30T03:01:00Z"))
    end = first_to_fail([later, _pod(1, _end(143), **EVICTED)])
    assert end and end.rank == 1


def test_a_pod_that_kubelet_did_not_admit_has_no_container_and_still_tells_why() -> None:
    said = "Pod was rejected: Allocate failed due to requested number of devices unavailable for"
    status = {"reason": "UnexpectedAdmissionError", "message": said}
    times = {"startTime": "2026-11-30T02:00:00Z", "conditions": [{"type": "PodScheduled"}]}
    pod = _pod(3, **status, **times)
    end = first_to_fail([_pod(0, phase="Running"), pod])
    assert end and (end.rank, end.code, end.at) == (3, None, "2026-11-30T02:00:00Z")
    cause = cause_of([pod], lambda end: "")
    assert cause and cause.is_told
    assert cause.sentence.startswith(
        f"node rank 3 on n3 ended: UnexpectedAdmissionError: {said} (kubelet"
    )


def test_a_container_that_kubelet_has_lost_ended_when_its_pod_changed_last() -> None:
    end = first_to_fail([_pod(0, _end(137, None), conditions=[DISRUPTED])])
    assert end and end.at == "2026-11-30T03:00:00Z"


@pytest.mark.parametrize(
    "pod",
    [
        _pod(0, phase="Running", **EVICTED),
        _pod(0, _end(0), conditions=[{**DISRUPTED, "reason": "PreemptionByScheduler"}]),
        _pod(0, _end(0), reason="Evicted"),
    ],
    ids=["it runs", "somebody else ended it", "no message"],
)
def test_other_pods_say_nothing_of_kubelet(pod: Object) -> None:
    assert first_to_fail([pod]) is None
