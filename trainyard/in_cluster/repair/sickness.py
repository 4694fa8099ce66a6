"""What is wrong with a node, and which pods end with it: pure. Who acts on it: repair.py."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pods import PYTORCH_JOB, Object, labels, trains
from silence import REASON, Limits, Silence


@dataclass(frozen=True)
class Settings:
    """What trainyard/objects/programs/repair.py writes."""

    namespace: str
    taint: str
    """Key of the taint of a sick node."""
    note: str
    """Annotation of a sick node: what becomes of it, as a sentence."""
    nodes_label: str
    """Label of the nodes that it looks after, as key=value."""
    pool_label: str
    shell_label: str
    """Of pods in which somebody has a terminal: they may be silent."""
    conditions: tuple[str, ...]
    """Of the node monitoring agent: False means that something is broken."""
    at_end: tuple[str, ...]
    """Reasons with which a run can go on; the node is replaced when its pods have ended."""
    events: tuple[str, ...]
    """Of the node monitoring agent: what it says in an event alone, and what a node does not survive."""
    notices: tuple[str, ...]
    """Reasons of events of Karpenter, which deletes the node itself: AWS takes it away soon."""
    region: str
    """Whose EC2 is asked about instances."""
    look_seconds: float
    blind_seconds: float
    """Of its own sight: after a longer gap it knows nothing about leases."""
    silence: Limits
    """How long a kubelet may be silent."""
    grace_seconds: int
    """For the pods of a node that still answers."""
    share: float
    """Part of a pool that may be replaced within an hour; one node always."""
    nodes_an_hour: int | None
    """In place of the share."""
    hung_minutes: int | None
    """After so long without a log line a gang starts anew; None: never."""

    @staticmethod
    def read(path: Path) -> Settings:
        """The file of the ConfigMap."""
        return Settings.of(json.loads(path.read_text()))

    @staticmethod
    def of(said: Mapping[str, Any]) -> Settings:
        """From what the file says."""
        lists = {key: tuple(said[key]) for key in ("conditions", "at_end", "events", "notices")}
        return Settings(**{**said, **lists, "silence": Limits(**said["silence"])})


@dataclass(frozen=True)
class Sick:
    """What is wrong with a node."""

    reason: str
    message: str
    silent: bool = False
    """Whether nobody is there to end its pods."""
    waits: str = ""
    """Why it is waited for, and nothing is done; empty: something is."""


def sickness(
    node: Object, silence: Silence | None, settings: Settings, events: Iterable[Object] = ()
) -> Sick | None:
    """What is wrong with a node, if anything. A dead kubelet first: it says nothing of the rest. Last
    one that is waited for: what broke before it fell silent counts. `events`: of the namespace in which
    those of nodes are."""
    if silence and not silence.waits:
        return Sick(REASON, silence.message, silent=True)
    broken = _broken(node, settings, events)
    if silence and broken:
        return replace(broken, silent=True)
    return broken or (silence and Sick(REASON, silence.message, silent=True, waits=silence.waits))


def _broken(node: Object, settings: Settings, events: Iterable[Object]) -> Sick | None:
    """What others say of the node."""
    for condition in node["status"].get("conditions", []):
        if condition["type"] in settings.conditions and condition["status"] == "False":
            words = condition.get("message") or f"{condition['type']} is False"
            return Sick(condition.get("reason") or condition["type"], words)
    for event in events:
        reason, _, words = (event.get("message") or "").partition(": ")
        if reason in settings.events and _is_of(node, event):
            return Sick(reason, words)
        if event.get("reason") in settings.notices and _is_of(node, event):
            return Sick(event["reason"], "AWS takes the instance away")
    return None


def _is_of(node: Object, event: Object) -> bool:
    """Whether it is about this node, and not about one before that had the same name: names are
    addresses."""
    about, meta = event.get("involvedObject") or {}, node["metadata"]
    since = meta.get("creationTimestamp") or ""
    mine = about.get("kind") == "Node" and about.get("name") == meta["name"]
    return mine and (event.get("lastTimestamp") or "") >= since


def most(nodes: int, settings: Settings) -> int:
    """How many nodes of a pool may be replaced within an hour."""
    return settings.nodes_an_hour or max(1, math.ceil(settings.share * nodes))


def siblings(pods: Iterable[Object], node: str) -> list[Object]:
    """Pods of PyTorchJobs with a pod on a node, or one that has failed there. The operator recreates
    that one pod only, while the others wait for the lost rank, but in an elastic job. JobSet ends the rest
    of its gang itself."""
    of_operator = [pod for pod in pods if PYTORCH_JOB in labels(pod)]
    gangs = {
        _gang(pod)
        for pod in of_operator
        if pod["spec"].get("nodeName") == node
        and pod["status"].get("phase") != "Succeeded"
        and not _others_go_on(pod)
    }
    return [
        pod
        for pod in of_operator
        if pod["spec"].get("nodeName") != node and _gang(pod) in gangs and trains(pod)
    ]


def _others_go_on(pod: Object) -> bool:
    """Whether the other pods of its job train without it: the job is elastic, so that its number of nodes is a range,
    and its ranks meet elsewhere (training-operator v1.8.1, pkg/controller.v1/pytorch/elastic.go)."""
    containers = pod["spec"].get("containers") or []
    variables = {
        each["name"]: each.get("value") or ""
        for container in containers
        for each in container.get("env") or []
    }
    fewest, _, most_nodes = variables.get("PET_NNODES", "").partition(":")
    host = variables.get("PET_RDZV_ENDPOINT", "").replace(".", ":").partition(":")[0]
    meets_elsewhere = host != pod["metadata"]["name"] or "rdzv_backend=etcd" in str(containers)
    return fewest != (most_nodes or fewest) and meets_elsewhere


def _gang(pod: Object) -> tuple[str, str | None]:
    return pod["metadata"]["namespace"], labels(pod).get(PYTORCH_JOB)
