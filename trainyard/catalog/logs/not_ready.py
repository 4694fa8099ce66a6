"""Pods of controllers that are not ready, and why: for `up` while it waits for a Helm release, and for `status`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from trainyard.catalog.logs.first_end import Object
from trainyard.catalog.logs.symptom import read
from trainyard.catalog.logs.symptoms import PENDING, STARTING
from trainyard.catalog.logs.waiting import (
    UNKNOWN,
    container_statuses,
    message_about_placement,
    message_about_start,
)

RELEASE, SPACE = "meta.helm.sh/release-name", "meta.helm.sh/release-namespace"
"""Annotations of every object of a Helm release (helm v3, pkg/action/validate.go)."""
WORKLOADS = ("deployments", "daemonsets", "statefulsets")
"""Kinds of the group apps whose pods Helm waits for."""
MANY = 3
"""Pods that have a line each. Those of a DaemonSet can be as many as nodes."""


def of_release(workloads: Iterable[Object], name: str, namespace: str) -> list[Object]:
    """Workloads that a release has made."""
    wanted = {RELEASE: name, SPACE: namespace}.items()
    return [
        each for each in workloads if wanted <= (each["metadata"].get("annotations") or {}).items()
    ]


def why_not_ready(
    workload: Object, pods: Iterable[Object], events: Sequence[Object]
) -> Iterator[str]:
    """A line for each pod of a Deployment, DaemonSet or StatefulSet that is not ready; or one about a workload that
    has no pod. Nothing where all are ready. `pods`, `events`: of its namespace, or of more."""
    own = [pod for pod in pods if _is_of(pod, workload)]
    if not own and _wanted(workload):
        yield f"{workload['metadata']['name']} has no pod yet{_refused(workload)}"
    waiting = [pod for pod in own if not _ready(pod)]
    for pod in waiting[:MANY]:
        yield f"pod {pod['metadata']['name']}: {_why(pod, events)}"
    if len(waiting) > MANY:
        yield f"and {len(waiting) - MANY} other pods of {workload['metadata']['name']}"


def _is_of(pod: Object, workload: Object) -> bool:
    selected = (_spec(workload).get("selector") or {}).get("matchLabels") or {}
    same = pod["metadata"].get("namespace") == workload["metadata"].get("namespace")
    labels = pod["metadata"].get("labels") or {}
    return same and bool(selected) and selected.items() <= labels.items()


def _wanted(workload: Object) -> bool:
    """True where it should have a pod. A DaemonSet without a node for it has none."""
    counted = (workload.get("status") or {}).get("desiredNumberScheduled")
    return bool(_spec(workload).get("replicas", 1) if counted is None else counted)


def _spec(workload: Object) -> Object:
    return workload.get("spec") or {}


def _refused(workload: Object) -> str:
    """The message about pods that the API server does not admit."""
    conditions = (workload.get("status") or {}).get("conditions") or []
    said = (each for each in conditions if each["type"] == "ReplicaFailure")
    return next((f": {each.get('message', '')}" for each in said if each["status"] == "True"), "")


def _ready(pod: Object) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or []
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _why(pod: Object, events: Sequence[Object]) -> str:
    """The reason why a pod is not ready, in one line."""
    names = {"namespace": pod["metadata"].get("namespace", ""), "job": ""}
    if not pod["spec"].get("nodeName"):
        said, _ = read(PENDING, message_about_placement([pod], events), "", **names)
        return f"it has no node: {_line(said)}"
    if crashed := _crashed(pod):
        return crashed
    said, _ = read(STARTING, message_about_start(pod, events), "", **names)
    if _line(said) != UNKNOWN:
        return _line(said)
    running = any("running" in (each.get("state") or {}) for each in container_statuses(pod))
    return "it runs, and has not said that it is ready" if running else "it starts"


def _crashed(pod: Object) -> str:
    """The last end of the container that has restarted most often; empty where none has ended with an error."""
    ended = [
        (each.get("restartCount", 0), each["name"], end)
        for each in container_statuses(pod)
        if (end := _end(each)).get("exitCode")
    ]
    if not ended:
        return ""
    times, name, end = max(ended, key=lambda each: each[0])
    reason = f" ({end['reason']})" if end.get("reason") else ""
    restarts = f", after {times} restart{'s' * (times != 1)}" if times else ""
    return f"container {name} ended with exit code {end['exitCode']}{reason}{restarts}"


def _end(status: Object) -> Object:
    """The end of a container that does not run; empty for others."""
    state, last = status.get("state") or {}, status.get("lastState") or {}
    if "running" in state:
        return {}
    return state.get("terminated") or last.get("terminated") or {}


def _line(text: str) -> str:
    """The first line of a cause; the second one is the message that shows it."""
    return text.partition("\n")[0].strip().removesuffix(".")
