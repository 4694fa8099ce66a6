"""What is kept of a run: its job, its pods and their nodes, without variables, commands and volumes,
which can hold secrets. Pure; for the programs that look at runs, in the folders beside this one."""

from __future__ import annotations

import base64
import calendar
import gzip
import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from pods import JOBSET, PYTORCH_JOB, Object

TRAIN_JOB = "TrainJob"
JOB_LABELS = (JOBSET, PYTORCH_JOB)
"""Labels of pods with the name of their job."""
POD_LABELS = (
    *JOB_LABELS,
    "batch.kubernetes.io/job-completion-index",
    "training.kubeflow.org/replica-type",
    "training.kubeflow.org/replica-index",
)
NODE_LABELS = (
    "node.kubernetes.io/instance-type",
    "karpenter.sh/capacity-type",
    "karpenter.k8s.aws/capacity-reservation-type",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
)
"""Those from which the price of a node follows."""
NOT_KEPT = frozenset(
    {
        *("env", "envFrom", "command", "args", "initializer", "lifecycle", "managedFields"),
        *("volumes", "volumeMounts", "initContainers", "imagePullSecrets", "securityContext"),
        *("tolerations", "affinity", "serviceAccountName"),
    }
)
"""Fields of a job's spec, at any depth."""
SUCCESS = ("Complete", "Succeeded")
ENDS = (*SUCCESS, "Failed")
"""Types of the conditions with which jobs end."""
SEEN_FROM_THE_START = 60.0
"""A job that is first seen so many seconds after its creation has lost no pod by then."""
MOST_PODS = 4000
"""Of a record; a ConfigMap has 1 MiB."""


class Names(Protocol):
    """What the settings of a program say of pods."""

    @property
    def left(self) -> str:
        """Annotation of a recorded pod: when it was missed."""
        ...

    @property
    def pool_label(self) -> str:
        """Key by which a pod selects the nodes of a pool."""
        ...


@dataclass
class Record:
    """A run."""

    job: Object
    pods: dict[str, Object] = field(default_factory=dict)
    """By uid, those of all attempts."""
    nodes: dict[str, Object] = field(default_factory=dict)
    """By name, those of the pods."""
    restarts: int = 0
    complete: bool = False
    """It was seen from its beginning on, without a gap."""
    deleted: str = ""
    """When the job was missed, if it had not ended."""
    measured: Object = field(default_factory=dict)
    """How far it was and how well it used its time, by what it has printed: for readers."""
    progress: Object = field(default_factory=dict)
    """The same as progress.py goes on from."""

    @property
    def uid(self) -> str:
        return self.job["metadata"]["uid"]

    @property
    def ended(self) -> str:
        """When the job ended or was missed; empty where it goes on."""
        return next(
            (
                condition.get("lastTransitionTime", "")
                for condition in self.job.get("status", {}).get("conditions") or []
                if condition["type"] in ENDS and condition["status"] == "True"
            ),
            self.deleted,
        )

    @property
    def succeeded(self) -> bool:
        """It has ended, and not failed."""
        conditions = self.job.get("status", {}).get("conditions") or []
        true = {each["type"] for each in conditions if each["status"] == "True"}
        return bool(true & {*SUCCESS})

    @property
    def began(self) -> float:
        """When its first pod got a node, in seconds since 1970; 0 before that."""
        scheduled = [
            each["lastTransitionTime"]
            for pod in self.pods.values()
            for each in pod["status"]["conditions"]
            if each["status"] == "True"
        ]
        return float(seconds(min(scheduled))) if scheduled else 0.0

    def packed(self) -> str:
        """As base64; the same record is the same text."""
        text = json.dumps(vars(self), sort_keys=True, separators=(",", ":")).encode()
        return base64.b64encode(gzip.compress(text, mtime=0)).decode()

    @staticmethod
    def unpacked(text: str) -> Record:
        return Record(**json.loads(gzip.decompress(base64.b64decode(text))))


def of_job(job: Object) -> Object:
    """What is kept of a job."""
    meta = job["metadata"]
    notes = {
        key: value
        for key, value in (meta.get("annotations") or {}).items()
        if key.startswith("trainyard.io/")
    }
    kept = {key: meta[key] for key in ("name", "namespace", "uid", "creationTimestamp")}
    conditions = (job.get("status") or {}).get("conditions") or []
    return {
        "apiVersion": job["apiVersion"],
        "kind": job["kind"],
        "metadata": kept | {"annotations": notes, "labels": meta.get("labels") or {}},
        "spec": _trimmed(job["spec"]),
        "status": {"conditions": conditions},
    }


def of_pod(pod: Object, pool_label: str) -> Object:
    """What is kept of a pod."""
    meta, spec, status = pod["metadata"], pod["spec"], pod.get("status") or {}
    own, selector = meta.get("labels") or {}, spec.get("nodeSelector") or {}
    return {
        "metadata": {
            **{key: meta[key] for key in ("name", "namespace", "uid", "creationTimestamp")},
            "labels": {key: own[key] for key in POD_LABELS if key in own},
        },
        "spec": {
            "nodeName": spec.get("nodeName", ""),
            "nodeSelector": {pool_label: selector[pool_label]} if pool_label in selector else {},
            "containers": [
                {"name": each["name"], "resources": each.get("resources") or {}}
                for each in spec["containers"]
            ],
        },
        "status": {
            "phase": status.get("phase", ""),
            "conditions": [
                {key: each[key] for key in ("type", "status", "lastTransitionTime") if key in each}
                for each in status.get("conditions") or []
                if each["type"] == "PodScheduled"
            ],
            "containerStatuses": [
                {
                    "name": each["name"],
                    "restartCount": each.get("restartCount", 0),
                    "state": {
                        "terminated": {key: value for key, value in end.items() if key != "message"}
                    },
                }
                for each in status.get("containerStatuses") or []
                if (end := (each.get("state") or {}).get("terminated"))
            ],
        },
    }


def of_gone(pod: Object, at: float, names: Names) -> Object:
    """What is kept of a pod that was deleted. `at`: the moment; it counts where not all its containers say when
    they ended."""
    kept = of_pod(pod, names.pool_label)
    statuses = (pod.get("status") or {}).get("containerStatuses") or []
    if not statuses or not all(map(_end, statuses)):
        kept["metadata"]["annotations"] = {names.left: stamp(at)}
    return kept


def _end(status: Object) -> str | None:
    """The moment at which a container ended; None of one that kubelet has lost (ContainerStatusUnknown)."""
    return ((status.get("state") or {}).get("terminated") or {}).get("finishedAt")


def of_node(node: Object) -> Object:
    """What is kept of a node."""
    own = node["metadata"].get("labels") or {}
    labels = {key: own[key] for key in NODE_LABELS if key in own}
    return {"metadata": {"name": node["metadata"]["name"], "labels": labels}}


Gangs = Mapping[tuple[str, str, str], list[Object]]
"""Label with the name of a job, namespace and name → its pods."""


def gangs(pods: Iterable[Object]) -> Gangs:
    """The pods of each job."""
    found: dict[tuple[str, str, str], list[Object]] = {}
    for pod in pods:
        for label in JOB_LABELS:
            if name := (pod["metadata"].get("labels") or {}).get(label):
                found.setdefault((label, pod["metadata"]["namespace"], name), []).append(pod)
    return found


def of_gang(job: Object) -> tuple[str, str, str]:
    """What gangs() calls a job."""
    label = JOBSET if job["kind"] == TRAIN_JOB else PYTORCH_JOB
    return label, job["metadata"]["namespace"], job["metadata"]["name"]


def look(
    records: dict[str, Record],
    jobs: Iterable[Object],
    pods: Gangs,
    nodes: Mapping[str, Object],
    restarts: Mapping[str, int],
    names: Names,
    now: float,
    gone: Iterable[tuple[Object, float]] = (),
) -> None:
    """Bring the records, by uid of the job, up to what is there. `nodes`: by name. `restarts`: by
    namespace/name of a TrainJob's JobSet. `gone`: pods that were deleted since the last look, and when."""
    there = {job["metadata"]["uid"]: job for job in jobs}
    ends = {pod["metadata"]["uid"]: (pod, at) for pod, at in gone}
    deleted = gangs(pod for pod, _ in ends.values())
    for uid, job in there.items():
        meta = job["metadata"]
        age = now - seconds(meta["creationTimestamp"])
        kept = of_job(job)
        record = records.setdefault(uid, Record(kept, complete=age <= SEEN_FROM_THE_START))
        record.job, record.deleted = kept, ""
        record.restarts = max(
            record.restarts, restarts.get(f"{meta['namespace']}/{meta['name']}", 0)
        )
        _see(record, pods.get(of_gang(job), []), nodes, names, now)
        for pod in deleted.get(of_gang(job), []):
            # An earlier job of its name has pods that are older.
            if pod["metadata"]["creationTimestamp"] >= meta["creationTimestamp"]:
                _see_gone(record, *ends[pod["metadata"]["uid"]], nodes, names)
    for uid, record in records.items():
        if uid not in there and not record.ended:
            record.deleted = stamp(now)
            _see(record, [], nodes, names, now)
            for pod in ends.keys() & record.pods.keys():
                _see_gone(record, *ends[pod], nodes, names)


def _see_gone(
    record: Record, pod: Object, at: float, nodes: Mapping[str, Object], names: Names
) -> None:
    """Keep a deleted pod as it was at last, also one that no look has seen."""
    _keep(record, pod, of_gone(pod, at, names), nodes)


def _see(
    record: Record, pods: list[Object], nodes: Mapping[str, Object], names: Names, now: float
) -> None:
    there = {pod["metadata"]["uid"]: pod for pod in pods}
    for uid, kept in record.pods.items():
        # A container beside one that runs may have ended long ago.
        over = kept["status"]["phase"] in ("Succeeded", "Failed")
        ended = over and any(map(_end, kept["status"]["containerStatuses"]))
        if (
            uid not in there
            and not ended
            and names.left not in kept["metadata"].get("annotations", {})
        ):
            kept["metadata"]["annotations"] = {names.left: stamp(now)}
    for pod in there.values():
        _keep(record, pod, of_pod(pod, names.pool_label), nodes)


def _keep(record: Record, pod: Object, kept: Object, nodes: Mapping[str, Object]) -> None:
    """Put a pod with its node into the record, as far as there is room. `kept`: what is kept of it."""
    uid, name = pod["metadata"]["uid"], pod["spec"].get("nodeName")
    if not name:
        return  # it costs nothing yet
    if uid not in record.pods and len(record.pods) >= MOST_PODS:
        record.complete = False
        return
    record.pods[uid] = kept
    if node := nodes.get(name):
        record.nodes[name] = of_node(node)


def stamp(now: float) -> str:
    """As Kubernetes writes a time."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now))


def seconds(moment: str) -> int:
    """Since 1970, of a time as Kubernetes writes it."""
    return calendar.timegm(time.strptime(moment, "%Y-%m-%dT%H:%M:%SZ"))


def _trimmed(part: Any) -> Any:
    if isinstance(part, dict):
        return {key: _trimmed(value) for key, value in part.items() if key not in NOT_KEPT}
    return [_trimmed(each) for each in part] if isinstance(part, list) else part
