"""What a cluster says about its jobs right now, read with kubectl: the raw material of a
diagnosis."""

from __future__ import annotations

import json
import os
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime

from catalog.job_kinds import ENDED, JOB_KINDS, SUCCEEDED
from operations.kubectl import Kubectl, Object, kubectl_with, logged_in

KINDS = (
    "trainjobs.trainer.kubeflow.org",
    "pytorchjobs.kubeflow.org",
    "jobsets.jobset.x-k8s.io",
    "pods",
    "events",
    "nodes",
    "nodeclaims.karpenter.sh",
    "nodepools.karpenter.sh",
    "ec2nodeclasses.karpenter.k8s.aws",
    "deployments.apps",
    "daemonsets.apps",
    "persistentvolumeclaims",
)
JOB_LABELS = {name: kind.pods for name, kind in JOB_KINDS.items()}
CONTROLLER_LABELS = {"app.kubernetes.io/name", "control-plane"}
STAMP = re.compile(r"\d{4}-\d\d-\d\dT\S+")
RESTARTING = "PyTorchJobRestarting"
"""Event of the training-operator v1.8.1 (its pod.go): a pod that failed is deleted, to be made
again."""
LINE_OF = re.compile(r"\[pod/([^/\s]+)/[^]\s]+] ")
"""What kubectl puts before a line of the logs of many pods."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """One run."""

    kind: str
    namespace: str
    name: str
    runtime: str
    nodes: int
    command: str
    state: str
    said: str
    """Type of the last condition that holds; its reason and message."""
    since: datetime | None
    """When that began; None where nobody says."""
    restarts: int
    """Of the whole gang, else of containers, else of pods that were deleted for it."""
    pods: tuple[Object, ...]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"

    @property
    def complete(self) -> bool:
        return self.state in SUCCEEDED

    @property
    def ended(self) -> bool:
        return self.state in ENDED

    @property
    def selector(self) -> str:
        """Of its pods, for kubectl."""
        return f"{JOB_LABELS[self.kind]}={self.name}"


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """Objects by kind (the plural's first word), and the ends of logs that matter."""

    objects: dict[str, list[Object]]
    unserved: frozenset[str] = frozenset()
    """Kinds that the API server does not know: their chart is not installed."""
    logs: dict[str, str] = field(default_factory=dict)
    """"namespace/pod" → the last lines of controllers and ranks."""
    spoke: dict[str, datetime] = field(default_factory=dict)
    """"namespace/pod" → when a rank that runs wrote its last line."""
    at: datetime = field(default_factory=lambda: datetime.now(UTC))

    def of(self, kind: str) -> list[Object]:
        return self.objects.get(kind, [])

    def jobs(self) -> list[Job]:
        """Every run, TrainJobs of Trainer v2 and PyTorchJobs of the training operator alike."""
        return [_job(self, obj) for kind in ("trainjobs", "pytorchjobs") for obj in self.of(kind)]

    def age(self, obj: Object) -> int:
        """Seconds since the object was made."""
        return int(
            (self.at - datetime.fromisoformat(obj["metadata"]["creationTimestamp"])).total_seconds()
        )


def take() -> Snapshot:
    """Read everything through the current kubeconfig. Raises RuntimeError with kubectl's
    complaint."""
    with logged_in(os.environ) as login:
        return read(kubectl_with(login, "--request-timeout=30s"))


def read(kubectl: Kubectl) -> Snapshot:
    """Everything, in few calls."""
    served = set(kubectl("api-resources", "--output=name").split())
    kinds = [kind for kind in KINDS if kind in served]
    objects: dict[str, list[Object]] = {kind.partition(".")[0]: [] for kind in kinds}
    for obj in json.loads(kubectl("get", ",".join(kinds), "--all-namespaces", "--output=json"))[
        "items"
    ]:
        kind = obj["kind"].lower()
        objects[next(plural for plural in objects if plural in (f"{kind}s", f"{kind}es"))].append(
            obj
        )
    unserved = frozenset(kind.partition(".")[0] for kind in KINDS if kind not in served)
    running = {full_name(pod) for pod in objects["pods"] if pod["status"].get("phase") == "Running"}
    runs = _runs(objects["pods"])
    # Apart, since the rehearsal's kubelet knows the time of the last line only: containers write to
    # a file themselves.
    last = _logs_of_runs(kubectl, runs, "--timestamps", "--tail=1").items()
    return Snapshot(
        objects=objects,
        unserved=unserved,
        spoke={
            pod: max(written)
            for pod, lines in last
            if pod in running and (written := _written(lines))
        },
        logs=_logs(kubectl, _controllers(objects["pods"]))
        | {
            pod: "\n".join(lines)
            for pod, lines in _logs_of_runs(kubectl, runs, "--tail=60").items()
        },
    )


def _controllers(pods: list[Object]) -> list[Object]:
    """Device plugins and the like have nothing to say about a job."""
    labelled = [pod for pod in pods if pod["metadata"].get("labels", {}).keys() & CONTROLLER_LABELS]
    return [
        pod
        for pod in labelled
        if not any(
            owner["kind"] == "DaemonSet" for owner in pod["metadata"].get("ownerReferences", [])
        )
    ]


def _runs(pods: list[Object]) -> list[tuple[str, str]]:
    """(namespace, selector of its pods) of every run that has any."""
    labels = [(pod["metadata"]["namespace"], pod["metadata"].get("labels", {})) for pod in pods]
    return sorted(
        {
            (space, f"{label}={has[label]}")
            for space, has in labels
            for label in JOB_LABELS.values()
            if label in has
        }
    )


def _logs_of_runs(
    kubectl: Kubectl, runs: list[tuple[str, str]], *words: str
) -> dict[str, list[str]]:
    """ "namespace/pod" → lines: one call for a whole gang, whatever its size."""
    calls = [
        (f"--namespace={space}", f"--selector={selector}", "--prefix", "--ignore-errors", *words)
        for space, selector in runs
    ]
    found: dict[str, list[str]] = {}
    for (space, _), said in zip(runs, _all_logs(kubectl, calls), strict=True):
        _, *parts = LINE_OF.split(said)
        for pod, line in zip(parts[::2], parts[1::2], strict=True):
            found.setdefault(f"{space}/{pod}", []).append(line.partition("\n")[0])
    return found


def _logs(kubectl: Kubectl, pods: list[Object]) -> dict[str, str]:
    """ "namespace/pod" → its last lines."""
    calls = [
        (pod["metadata"]["name"], f"--namespace={pod['metadata']['namespace']}", "--tail=60")
        for pod in pods
    ]
    return dict(zip(map(full_name, pods), _all_logs(kubectl, calls), strict=True))


def _all_logs(kubectl: Kubectl, calls: list[tuple[str, ...]]) -> list[str]:
    def log(words: tuple[str, ...]) -> str:
        try:
            return kubectl("logs", *words, "--all-containers")
        except RuntimeError:
            return ""  # not started, or gone: what kubectl says of that is no log

    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(log, calls))


def _written(lines: list[str]) -> list[datetime]:
    """When each was; a kubelet's own words about a log have no time."""
    return [datetime.fromisoformat(found[0]) for line in lines if (found := STAMP.match(line))]


def about(event: Object) -> str:
    """What an event is about; some are about nothing that has a name."""
    return event.get("involvedObject", {}).get("name", "")


def full_name(obj: Object) -> str:
    """namespace/name."""
    return f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"


def _job(snapshot: Snapshot, obj: Object) -> Job:
    kind, meta, spec = obj["kind"], obj["metadata"], obj["spec"]
    same = {"namespace": meta["namespace"], "name": meta["name"]}
    parts = (
        [spec.get("trainer", {})]
        if kind == "TrainJob"
        else [
            r["template"]["spec"]["containers"][0] | {"numNodes": r.get("replicas", 1)}
            for r in spec["pytorchReplicaSpecs"].values()
        ]
    )
    sets = [
        s
        for s in snapshot.of("jobsets")
        if kind == "TrainJob" and s["metadata"].items() >= same.items()
    ]
    pods = tuple(
        pod
        for pod in snapshot.of("pods")
        if pod["metadata"]["namespace"] == meta["namespace"]
        and pod["metadata"].get("labels", {}).get(JOB_LABELS[kind]) == meta["name"]
    )
    last = last_condition(obj)
    return Job(
        kind=kind,
        **same,
        runtime=spec.get("runtimeRef", {}).get("name", "-"),
        pods=pods,
        state=last["type"],
        nodes=sum(part.get("numNodes", 1) for part in parts),
        said=f"{last.get('reason')}: {last.get('message', '')}",
        since=(
            datetime.fromisoformat(last["lastTransitionTime"])
            if "lastTransitionTime" in last
            else None
        ),
        command=" ".join(
            word for part in parts for key in ("command", "args") for word in part.get(key) or []
        ),
        restarts=sum(s.get("status", {}).get("restarts") or 0 for s in sets)
        or sum(c.get("restartCount", 0) for pod in pods for c in containers(pod))
        or sum(
            event.get("count") or 1
            for event in snapshot.of("events")
            if event.get("reason") == RESTARTING and about(event) == meta["name"]
        ),
    )


def last_condition(job: Object) -> Object:
    """The last condition that holds of a run; its type is the run's state."""
    held = [c for c in job.get("status", {}).get("conditions", []) if c["status"] == "True"]
    return held[-1] if held else {"type": "Running"}


def containers(pod: Object) -> list[Object]:
    """Their states, those that prepare the pod first."""
    return [
        c
        for kind in ("initContainerStatuses", "containerStatuses")
        for c in pod.get("status", {}).get(kind, [])
    ]
