"""Phases of the pods of a run, and why those that wait have not begun, for `up` while it waits and for `status`.
The meaning of a message: symptoms.py."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from trainyard.catalog.job_kinds import POOL
from trainyard.catalog.logs.events import about, is_about, is_of_karpenter, time_of
from trainyard.catalog.logs.first_end import Object, container_statuses
from trainyard.catalog.logs.missing_secrets import keys_of, literals
from trainyard.catalog.logs.symptom import BEGINS, read
from trainyard.catalog.logs.symptoms import PENDING, STARTING

SAME = {"ErrImagePull": "ImagePullBackOff"}
"""Reasons that alternate with another while the same thing is wrong."""
WAITING = "Waiting"
"""State of a job that has pods of which none runs."""
GOING = ("Running", "Created")
"""States that such a job has by its conditions: for the Trainer it has none, and counts as Running."""
UNKNOWN = "no event tells the reason"


def phases(pods: Sequence[Object]) -> str:
    """Such as `2 Running, 20 restarts`."""
    if not pods:
        return "no pods yet"
    counts = Counter(map(phase, pods))
    again = sum(restarts(pods))
    behind = f", {again} restart{'s' * (again != 1)}" if again else ""
    return ", ".join(f"{number} {phase}" for phase, number in counts.items()) + behind


def phase(pod: Object) -> str:
    """The pod's phase, or why a container of it waits: the phase of a crash loop is Running."""
    return next(iter(_reasons(pod)), pod["status"].get("phase", ""))


def goes_on(pod: Object) -> bool:
    """True of a pod that has not ended: it holds its node, or waits for one."""
    return pod.get("status", {}).get("phase") not in ("Succeeded", "Failed")


def waits_for(pods: Iterable[Object]) -> str:
    """Reason why no pod of a job runs; empty where one does, or where all have ended."""
    going = [pod for pod in pods if goes_on(pod)]
    if not going or any(map(_runs, going)):
        return ""
    if reasons := [reason for pod in going for reason in _reasons(pod)]:
        return reasons[0]
    if without_node(going):
        return "no node"
    inits = [line for pod in going for line in running_init_containers(pod)]
    return inits[0].removesuffix(" still runs") if inits else "its containers"


def state_beside(condition: str, pods: Iterable[Object]) -> tuple[str, str]:
    """State of a job beside its pods, and what it waits for. `condition`: the state that its conditions tell."""
    missing = waits_for(pods) if condition in GOING else ""
    return (WAITING, missing) if missing else (condition, "")


def _runs(pod: Object) -> bool:
    states = [status.get("state", {}) for status in container_statuses(pod)]
    return pod["status"].get("phase") == "Running" and not any("waiting" in each for each in states)


def _reasons(pod: Object) -> list[str]:
    """Reasons why containers of a pod wait that does not start as it should."""
    states = [status.get("state", {}).get("waiting") or {} for status in container_statuses(pod)]
    reasons = [str(each["reason"]) for each in states if each.get("reason")]
    return [SAME.get(reason, reason) for reason in reasons if reason not in BEGINS]


def restarts(pods: Iterable[Object]) -> list[int]:
    """Number of restarts of each container of the pods."""
    return [
        status["restartCount"]
        for pod in pods
        for status in pod["status"].get("containerStatuses", [])
    ]


def without_node(pods: Iterable[Object]) -> list[Object]:
    """Pods that have no node, but those that have failed."""
    return [
        pod
        for pod in pods
        if pod["status"].get("phase") != "Failed" and not pod["spec"].get("nodeName")
    ]


def waits_on_its_node(pod: Object) -> bool:
    """True of a pod that has a node and has not started."""
    return pod["status"].get("phase") == "Pending" and bool(pod["spec"].get("nodeName"))


def why_they_wait(
    pods: Sequence[Object], events: Sequence[Object], *, namespace: str, job: str
) -> list[str]:
    """Lines: why pods of a run have not started, and what to do; nothing where no event tells. The cause of pods
    without a node comes first. `job`: the selector of its pods."""
    names = {"namespace": namespace, "job": job}
    if waiting := without_node(pods):
        found = read(PENDING, message_about_placement(waiting, events), "", **names)
    else:
        there = sorted(filter(waits_on_its_node, pods), key=running_init_containers)
        found = why_it_does_not_start(there[0], events, "", **names) if there else ("", "")
    why, do = found
    if not why or why == UNKNOWN:
        return []
    return [*(line.strip() for line in why.splitlines()), *([f"→ {do}"] if do else [])]


def why_it_does_not_start(
    pod: Object, events: Iterable[Object], otherwise: str, **names: str
) -> tuple[str, str]:
    """The cause why a pod with a node does not start, and what to do. `otherwise`, `names`: as of `read`."""
    message = message_about_start(pod, events)
    return read(STARTING, message, otherwise, literals=literals(keys_of(pod, message)), **names)


def message_about_placement(waiting: Iterable[Object], events: Iterable[Object]) -> str:
    """Karpenter's last warning about these pods or about a node for them; without one the
    scheduler's."""
    pods = [*waiting]
    names = {pod["metadata"]["name"] for pod in pods}
    found = [
        event
        for event in events
        if event.get("type") == "Warning"
        and (
            (about(event) in names and any(is_about(event, pod) for pod in pods))
            or _is_about_a_node_for(pods, event)
        )
    ]
    found.sort(key=time_of)
    of_karpenter = [event for event in found if is_of_karpenter(event)]
    shortages = [e for e in of_karpenter if e.get("reason") == "InsufficientCapacityError"]
    chosen = shortages or of_karpenter or found
    return chosen[-1]["message"] if chosen else UNKNOWN


def _is_about_a_node_for(pods: Sequence[Object], event: Object) -> bool:
    """True of an event about a NodePool or a NodeClaim since these pods are there: of their pools, or of any where
    one of them names none. The name of a NodeClaim begins with that of its NodePool, and that with its pool's."""
    if event.get("involvedObject", {}).get("kind") not in ("NodeClaim", "NodePool"):
        return False
    begun = min((pod["metadata"].get("creationTimestamp") or "" for pod in pods), default="")
    if "" < time_of(event) < begun:
        return False
    pools = [(pod["spec"].get("nodeSelector") or {}).get(POOL) for pod in pods]
    return None in pools or any(f"{about(event)}-".startswith(f"{pool}-") for pool in pools)


def message_about_start(pod: Object, events: Iterable[Object]) -> str:
    """Reason why its containers wait; else the init container that runs; else the last warning
    about the pod."""
    waiting = [status.get("state", {}).get("waiting", {}) for status in container_statuses(pod)]
    reasons = [
        f"{state['reason']}: {state['message']}" for state in waiting if state.get("message")
    ]
    warnings = [
        event["message"]
        for event in events
        if event.get("type") == "Warning" and is_about(event, pod)
    ]
    messages = reasons or running_init_containers(pod) or warnings[-1:]
    return messages[0] if messages else UNKNOWN


def running_init_containers(pod: Object) -> list[str]:
    """A line for each. Such a pod often waits for another pod, which then has the cause: as a sort
    key this puts it behind pods without a running init container."""
    return [
        f"init container {status['name']} still runs"
        for status in pod["status"].get("initContainerStatuses", [])
        if "running" in status["state"]
    ]
