"""Pods that have a node and do not start, and why: pure. Who asks: told.py.

kubelet gives a container that it has not created yet one of the reasons in BEGINS, and its pod the phase Pending
until each of its containers has started once (Kubernetes 1.34, pkg/kubelet/kubelet_pods.go:
convertToAPIContainerStatuses, getPhase).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from missing_secrets import keys_of, literals
from record import Object, seconds
from symptom import BEGINS, Symptom, read

START_MINUTES = 15
"""For which a pod may have a node without a message: an image of 10 GB is pulled in one or two."""
OF_KUBELET = "kubelet"


@dataclass(frozen=True)
class Wait:
    """Pods of a run that have nodes and do not start."""

    pods: int
    """Those that do not start."""
    every: int
    """Those that the run has."""
    minutes: int
    pod: str
    """Name of the first one."""
    why: str
    """Why that one does not start; a second line shows it."""
    do: str


def not_started(pods: Iterable[Object], now: float) -> list[Object]:
    """The pods that have had their node for long, and have a container that waits."""
    return [pod for pod in pods if now - _since(pod) > START_MINUTES * 60 and _waits(pod)]


def wait_of(
    stuck: Sequence[Object],
    pods: Sequence[Object],
    events: Callable[[Object], list[Object]],
    symptoms: Iterable[Symptom],
    job: str,
) -> Wait:
    """What is said of a run some of whose pods do not start. `events`: asks for those of a pod. `job`: the selector
    of the pods."""
    first = min(stuck, key=lambda pod: pod["metadata"]["name"])
    cause, do = _why(first, events(first), symptoms, job=job)
    return Wait(len(stuck), len(pods), START_MINUTES, first["metadata"]["name"], cause, do)


def _why(
    pod: Object, events: Iterable[Object], symptoms: Iterable[Symptom], **names: str
) -> tuple[str, str]:
    """The cause why the pod does not start, and what to do. `events`: about the pod."""
    waits = _waits(pod) or {}
    reason, said = waits.get("reason") or "", waits.get("message") or ""
    # What keeps kubelet from creating a container is in an event alone.
    said = said or _last(events)
    text = ": ".join(filter(None, (reason or "a container waits", said)))
    meta = pod["metadata"]
    look = f"kubectl -n {meta['namespace']} describe pod {meta['name']}"
    names = {"namespace": meta["namespace"], "literals": literals(keys_of(pod, text)), **names}
    return read(symptoms, text, look, **names)


def _since(pod: Object) -> float:
    """When it got its node; infinity for a pod that has none, has started or ends."""
    status, meta = pod.get("status") or {}, pod["metadata"]
    node = pod["spec"].get("nodeName")
    if not node or status.get("phase") != "Pending" or meta.get("deletionTimestamp"):
        return float("inf")
    for each in status.get("conditions") or ():
        if each["type"] == "PodScheduled" and each["status"] == "True":
            return float(seconds(each["lastTransitionTime"]))
    return float(seconds(meta["creationTimestamp"]))


def _waits(pod: Object) -> Mapping[str, Any] | None:
    """What keeps the pod from its start, as its container says it; None where none waits, or an init container
    runs: it may copy data for hours."""
    states = [status.get("state") or {} for status in _statuses(pod)]
    waiting = [each["waiting"] for each in states if each.get("waiting") is not None]
    stuck = [each for each in waiting if each.get("reason") not in BEGINS]
    if not stuck and any("running" in each for each in states):
        return None
    return next(iter(stuck or waiting), None)


def _statuses(pod: Object) -> Iterator[Object]:
    """Those of its containers, init containers first."""
    for kind in ("initContainerStatuses", "containerStatuses"):
        yield from pod["status"].get(kind) or ()


def _last(events: Iterable[Object]) -> str:
    """The last thing that kubelet said of a pod, or anybody as a warning."""
    found = [
        (each.get("lastTimestamp") or each.get("eventTime") or "", each.get("message") or "")
        for each in events
        if each.get("type") == "Warning"
        or (each.get("source") or {}).get("component") == OF_KUBELET
        or each.get("reportingComponent") == OF_KUBELET
    ]
    return max(found, default=("", ""))[1]
