"""Pods that have a node and do not start, or have none while others of their run have one, and why: pure. Who
asks: told.py.

kubelet gives a container that it has not created yet one of the reasons in BEGINS, and its pod the phase Pending
until each of its containers has started once (Kubernetes 1.34, pkg/kubelet/kubelet_pods.go:
convertToAPIContainerStatuses, getPhase).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from first_end import container_statuses
from missing_secrets import keys_of, literals
from record import Object, seconds
from symptom import BEGINS, Symptom, read

START_MINUTES = 15
"""For which a pod may have a node without a message: an image of 10 GB is pulled in one or two. As long one may
have none while others of its run have theirs: a node that EC2 has is there in a few."""
OF_KUBELET, OF_KARPENTER = "kubelet", "karpenter"
NODE_CLAIM = re.compile(r"nodeclaim/([\w.-]+)")
"""In Karpenter's event about a pod that it makes a node for (1.14.1, pkg/controllers/provisioning/scheduling/events.go,
NominatePodEvent). Events about the launch itself are about the NodeClaim."""
NODES = "PET_NNODES"
"""Variable of a container: how many pods torchrun waits for, of an elastic job `fewest:most`."""


class Settings(Protocol):
    """What the settings of a program say of pods that do not start."""

    @property
    def stack(self) -> str:
        """The stack of the environment."""
        ...

    @property
    def symptoms(self) -> Sequence[Mapping[str, str]]:
        """Causes why a pod does not start on its node."""
        ...

    @property
    def placement(self) -> Sequence[Mapping[str, str]]:
        """Causes why a pod has no node."""
        ...

    @property
    def pool_label(self) -> str:
        """Key by which a pod selects the nodes of a pool."""
        ...

    @property
    def gpu(self) -> str:
        """The resource by whose name a container asks for GPUs."""
        ...


@dataclass(frozen=True)
class Wait:
    """Pods of a run that do not start."""

    pods: int
    """Those that have a node."""
    every: int
    """Those that the run has."""
    minutes: int
    pod: str
    """Name of the first one."""
    why: str
    """Why that one does not start; a second line shows it."""
    do: str
    homeless: int = 0
    """Those that have no node, while others have theirs; the first one is one of these then."""


def not_started(pods: Sequence[Object], now: float, settings: Settings) -> list[Object]:
    """The pods that have had their node for long, and have a container that waits; and those that have had none
    for long, while nodes of others are paid for."""
    stuck = [pod for pod in pods if _is_long(now, _since(pod)) and _waits(pod)]
    homeless = [pod for pod in pods if _is_long(now, _without(pod))]
    return [*stuck, *homeless] if homeless and _pays(pods, now, settings) else stuck


def _is_long(now: float, since: float) -> bool:
    return now - since > START_MINUTES * 60


def _pays(pods: Iterable[Object], now: float, settings: Settings) -> bool:
    """True where pods have had nodes for long and torchrun waits for more: that of an elastic job goes on with its
    fewest."""
    placed = [pod for pod in pods if pod["spec"].get("nodeName") and _goes_on(pod)]
    fewest = max(map(_fewest, placed), default=0)
    if fewest and len(placed) >= fewest:
        return False
    return any(_is_long(now, _scheduled(pod)) and _takes(pod, settings) for pod in placed)


def _fewest(pod: Object) -> int:
    """How many pods torchrun waits for; 0: nobody says."""
    said = [
        (each.get("value") or "").partition(":")[0]
        for container in pod["spec"]["containers"]
        for each in container.get("env") or ()
        if each["name"] == NODES
    ]
    return int(said[-1]) if said and re.fullmatch("[0-9]{1,6}", said[-1]) else 0


def _takes(pod: Object, settings: Settings) -> bool:
    """True where it takes a node of a pool: the launcher of an MPI job runs on a system node."""
    limits = [each.get("resources", {}).get("limits") or {} for each in pod["spec"]["containers"]]
    selected = settings.pool_label in (pod["spec"].get("nodeSelector") or {})
    return selected or any(settings.gpu in each for each in limits)


def wait_of(
    stuck: Sequence[Object],
    pods: Sequence[Object],
    events: Callable[[Object], list[Object]],
    settings: Settings,
    job: str,
) -> Wait:
    """What is said of a run some of whose pods do not start. `events`: asks for those of a pod. `job`: the selector
    of the pods."""
    homeless = [pod for pod in stuck if not pod["spec"].get("nodeName")]
    first = min(homeless or stuck, key=lambda pod: pod["metadata"]["name"])
    cause, do = _why(first, events(first), settings, job=job)
    name, placed = first["metadata"]["name"], len(stuck) - len(homeless)
    return Wait(placed, len(pods), START_MINUTES, name, cause, do, len(homeless))


def _why(
    pod: Object, events: Iterable[Object], settings: Settings, **names: str
) -> tuple[str, str]:
    """The cause why the pod does not start, and what to do. `events`: about the pod."""
    meta = pod["metadata"]
    look = f"kubectl -n {meta['namespace']} describe pod {meta['name']}"
    names = {"namespace": meta["namespace"], **names}
    if not pod["spec"].get("nodeName"):
        names["of_stack"] = f" --stack {settings.stack}"
        return _without_a_node([*events], settings.placement, look, **names)
    waits = _waits(pod) or {}
    reason, said = waits.get("reason") or "", waits.get("message") or ""
    # What keeps kubelet from creating a container is in an event alone.
    said = said or _last(filter(_tells, events))
    text = ": ".join(filter(None, (reason or "a container waits", said)))
    rows = [Symptom(**row) for row in settings.symptoms]
    return read(rows, text, look, literals=literals(keys_of(pod, text)), **names)


def _since(pod: Object) -> float:
    """When it got its node; infinity for a pod that has none, has started or ends."""
    begins = pod["spec"].get("nodeName") and _is_pending(pod)
    return _scheduled(pod) if begins else float("inf")


def _without(pod: Object) -> float:
    """Since when it has no node; infinity for one that has one or ends."""
    waits = not pod["spec"].get("nodeName") and _is_pending(pod)
    return float(seconds(pod["metadata"]["creationTimestamp"])) if waits else float("inf")


def _is_pending(pod: Object) -> bool:
    phase = (pod.get("status") or {}).get("phase")
    return phase == "Pending" and not pod["metadata"].get("deletionTimestamp")


def _goes_on(pod: Object) -> bool:
    return (pod.get("status") or {}).get("phase") in ("Pending", "Running")


def _scheduled(pod: Object) -> float:
    for each in (pod.get("status") or {}).get("conditions") or ():
        if each["type"] == "PodScheduled" and each["status"] == "True":
            return float(seconds(each["lastTransitionTime"]))
    return float(seconds(pod["metadata"]["creationTimestamp"]))


def _waits(pod: Object) -> Mapping[str, Any] | None:
    """What keeps the pod from its start, as its container says it; None where none waits, or an init container
    runs: it may copy data for hours."""
    states = [status.get("state") or {} for status in container_statuses(pod)]
    waiting = [each["waiting"] for each in states if each.get("waiting") is not None]
    stuck = [each for each in waiting if each.get("reason") not in BEGINS]
    if not stuck and any("running" in each for each in states):
        return None
    return next(iter(stuck or waiting), None)


def _tells(event: Object) -> bool:
    """True of what kubelet said of a pod, or anybody as a warning."""
    return event.get("type") == "Warning" or OF_KUBELET in _authors(event)


def _authors(event: Object) -> tuple[str | None, str | None]:
    return (event.get("source") or {}).get("component"), event.get("reportingComponent")


def _without_a_node(
    events: Sequence[Object], placement: Iterable[Mapping[str, str]], look: str, **names: str
) -> tuple[str, str]:
    """The cause why a pod has no node, and what to do. Karpenter's last warning knows what it asked EC2 for. Without
    one a node may be on its way, of which the scheduler knows nothing: its words stand as they are."""
    of_karpenter = [each for each in events if OF_KARPENTER in _authors(each)]
    if warned := _last(each for each in of_karpenter if each.get("type") == "Warning"):
        return read([Symptom(**row) for row in placement], warned, look, **names)
    if chosen := NODE_CLAIM.search(_last(of_karpenter)):
        return (
            f"Karpenter makes a node for it, which has not joined: {chosen[0]}",
            f"kubectl describe nodeclaim {chosen[1]}",
        )
    warnings = [each for each in events if each.get("type") == "Warning"]
    return _last(warnings) or "no event tells the reason", look


def _last(events: Iterable[Object]) -> str:
    """What was said last."""
    found = [
        (each.get("lastTimestamp") or each.get("eventTime") or "", each.get("message") or "")
        for each in events
    ]
    return max(found, default=("", ""))[1]
