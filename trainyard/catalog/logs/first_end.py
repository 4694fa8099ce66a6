"""The rank of a run that ended first with an error.

It imports nothing of ours, so that a program in a pod can have it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

Object = dict[str, Any]

ROLE, MASTER = "training.kubeflow.org/replica-type", "master"
"""Label of the training-operator's pods, and the value of a Master's; a Worker has worker."""
FIRST = {MASTER, "chief", "launcher", "scheduler"}
"""Roles of which a job has one pod."""
RANKS = ("batch.kubernetes.io/job-completion-index", "training.kubeflow.org/replica-index")
TAIL = 600
"""Lines that are read of the log of that rank: the summary of torchrun has 7 lines for each rank of a node."""
KILLED = (137, 143)
"""Exit codes of a container that somebody else ended."""
OUT_OF_MEMORY = "OOMKilled"
"""Reason of a container that the kernel killed because its pod had no more memory."""
DISRUPTED, OF_KUBELET = "DisruptionTarget", "TerminationByKubelet"
"""Condition of a pod, and its reason: kubelet ended the pod. It stays where kubelet loses the reason in the
status (kubernetes/kubernetes#105467, #132001)."""
LATER_SECONDS = 120
"""More than kubelet gives a pod that it ends, and a gang to notice."""


@dataclass
class End:
    """The end of a rank, or the rank that is looked at."""

    pod: str
    uid: str
    container: str
    node: str
    rank: int
    at: str
    """Time at which its container ended, or at which it logged its last line."""
    created: str
    """Time at which its pod was created."""
    code: int | None = None
    """Its exit code; None where it has none."""
    reason: str = ""
    said: str = ""
    """The reason why kubelet ended its pod, or did not admit it: for want of disk, memory or a device."""
    previous: bool = False
    """Its log is that of the container before the present one."""
    runs: bool = False
    """The container runs again."""


def first_to_fail(pods: Iterable[Object]) -> End | None:
    """The rank that ended first with an error: the others of a gang end because of it. A container that
    runs again counts only where no other has ended so. None where no rank has."""
    found = [end for pod, number in ranks(pods) for end in _ends(pod, number)]
    errors = [end.at for end in found if end.at and not end.said and end.code not in KILLED]
    return min(found, key=functools.partial(_order, min(errors, default="")), default=None)


def _order(error: str, end: End) -> tuple[bool, bool, bool, str, int]:
    """First a rank that was killed for its memory, or its pod by kubelet: it cannot have ended because of another
    one. `error`: when the first rank ended by itself. A pod that kubelet ended long after that was not the first."""
    of_kubelet = bool(end.said) and not _is_later(end.at, error)
    return (
        end.runs,
        end.reason != OUT_OF_MEMORY and not of_kubelet,
        end.code in KILLED,
        end.at,
        end.rank,
    )


def _is_later(at: str, error: str) -> bool:
    """True of a moment after which a rank that ended by itself cannot have ended because of it."""
    if not at or not error:
        return False
    passed = datetime.fromisoformat(at) - datetime.fromisoformat(error)
    return passed.total_seconds() > LATER_SECONDS


def newer(found: End, known: End, there: Iterable[str]) -> bool:
    """True where an end counts in place of the one that is known. `there`: uids of the pods of which `found`
    was the first to fail. Where the known pod is gone, a pod of its own attempt may have ended because of
    it."""
    if known.uid in there:
        return (found.uid, found.at) != (known.uid, known.at)
    return found.created > known.at or found.at < known.at


def ranks(pods: Iterable[Object]) -> list[tuple[Object, int]]:
    """Each pod with the number of its node, as `trainyard logs --rank` counts: the Master, the Launcher, the Chief or
    the Scheduler of a job is node 0, and the first Worker is the node behind it."""
    places = [(pod, *_place(pod)) for pod in pods]
    sizes: dict[str, int] = {}
    for _, role, number in places:
        sizes[role] = max(sizes.get(role, 0), number + 1)
    roles = sorted(sizes, key=lambda role: (role not in FIRST, role))
    begins = {role: sum(sizes[each] for each in roles[:at]) for at, role in enumerate(roles)}
    return [(pod, begins[role] + number) for pod, role, number in places]


def _place(pod: Object) -> tuple[str, int]:
    """A pod's role, and its number in it."""
    own = _labels(pod)
    return own.get(ROLE, MASTER), next((int(own[key]) for key in RANKS if key in own), 0)


def end_of(pod: Object, at: str, number: int, **more: Any) -> End:
    """A rank at a moment."""
    meta = pod["metadata"]
    more = {"container": pod["spec"]["containers"][0]["name"], **more}
    return End(
        pod=meta["name"],
        uid=meta.get("uid", ""),
        node=pod["spec"].get("nodeName", ""),
        rank=number,
        at=at,
        created=meta.get("creationTimestamp", ""),
        **more,
    )


def _ends(pod: Object, number: int) -> Iterator[End]:
    """The last end of each container of the pod, where it was an error; else that of a pod that kubelet ended."""
    said, erred = _of_kubelet(pod), False
    at = _last_change(pod) if said else ""
    for each in container_statuses(pod):
        state, last = each.get("state") or {}, each.get("lastState") or {}
        end = state.get("terminated") or last.get("terminated") or {}
        if end.get("exitCode"):
            erred = True
            yield end_of(
                pod,
                end.get("finishedAt") or at,
                number,
                said=said,
                container=each["name"],
                code=end["exitCode"],
                reason=end.get("reason") or "",
                previous="terminated" not in state,
                runs="running" in state,
            )
    if said and not erred:
        yield end_of(pod, at, number, said=said)


def container_statuses(pod: Object) -> list[Object]:
    """Statuses of the pod's containers, init containers first."""
    status = pod.get("status") or {}
    kinds = ("initContainerStatuses", "containerStatuses")
    return [each for kind in kinds for each in status.get(kind) or ()]


def _of_kubelet(pod: Object) -> str:
    """The reason why kubelet ended a pod or did not admit it, with its message; empty of other pods."""
    status = pod.get("status") or {}
    if status.get("phase") != "Failed":
        return ""
    told = [
        f"{each['reason']}: {each['message']}"
        for each in (status, *(status.get("conditions") or ()))
        if each is status or (each.get("type"), each.get("reason")) == (DISRUPTED, OF_KUBELET)
        if each.get("reason") and each.get("message")
    ]
    return " ".join(told[0].split()) if told else ""


def _last_change(pod: Object) -> str:
    """The last time that the pod names: kubelet does not say when it ended a pod that no container ran in."""
    status, meta = pod.get("status") or {}, pod["metadata"]
    changes = (each.get("lastTransitionTime") for each in status.get("conditions") or ())
    times = (meta.get("creationTimestamp"), status.get("startTime"), *changes)
    return max(filter(None, times), default="")


def _labels(obj: Object) -> Mapping[str, str]:
    return obj["metadata"].get("labels") or {}
