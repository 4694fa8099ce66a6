"""The objects and logs of a cluster that a diagnosis needs, read with kubectl at one moment."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from trainyard.catalog.job_kinds import ENDED, JOB_KINDS, SUCCEEDED, true_conditions
from trainyard.objects.programs.history import DELETED
from trainyard.operations.reach.kubectl import (
    Kubectl,
    Object,
    kubectl_with,
    logged_in,
    logged_in_to,
)
from trainyard.operations.reach.rank_logs import logs_of_ends

QUEUED = "workloads.kueue.x-k8s.io"
KINDS = (
    "trainjobs.trainer.kubeflow.org",
    "pytorchjobs.kubeflow.org",
    "clustertrainingruntimes.trainer.kubeflow.org",
    "trainingruntimes.trainer.kubeflow.org",
    "jobsets.jobset.x-k8s.io",
    QUEUED,
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
OF_TEAM = (
    "trainjobs.trainer.kubeflow.org",
    "pytorchjobs.kubeflow.org",
    "trainingruntimes.trainer.kubeflow.org",
    "jobsets.jobset.x-k8s.io",
    "pods",
    "events",
    "persistentvolumeclaims",
)
"""Objects that everybody of a listed team may read in its namespace:
trainyard/objects/teams/team_access.py. Where the environment has queues, QUEUED besides."""
FORBIDDEN = "forbidden"
"""Part of kubectl's message where the API server does not permit a call."""
JOB_LABELS = {name: kind.pod_label for name, kind in JOB_KINDS.items()}
"""Kind of job → label of its pods with the job's name."""
ROLE = "training.kubeflow.org/replica-type"
"""Label of the training-operator's pods: master or worker."""
CONTROLLER_LABELS = {"app.kubernetes.io/name", "control-plane"}
TIMESTAMP = re.compile(r"(\d{4}-\d\d-\d\dT\S+) ")
"""Text that `kubectl logs --timestamps` writes before a line."""
RESTARTING = "PyTorchJobRestarting"
"""Reason of an event of the training-operator v1.8.1 (its pod.go): it has deleted a failed pod and
creates it again."""
LOG_PREFIX = re.compile(r"\[pod/([^/\s]+)/[^]\s]+] ")
"""Text that kubectl writes before a line when it prints the logs of many pods."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """One training job."""

    kind: str
    namespace: str
    name: str
    runtime: str
    nodes: int
    body: Object
    state: str
    """Type of the last condition whose status is True; Running where there is none."""
    message: str
    """Reason and message of that condition."""
    since: datetime | None
    """Time at which that condition became True; None where the object does not tell."""
    restarts: int
    """Restarts of the whole gang; else of its containers; else deletions of failed pods."""
    pods: tuple[Object, ...]
    entry: str = ""
    """Its entry in the stack file; empty for a job of another stack, or of none."""

    def __str__(self) -> str:
        entry = f" (entry {self.entry})" if self.entry not in ("", self.name) else ""
        return f"{self.kind} {self.name}{entry}"

    @property
    def complete(self) -> bool:
        return self.state in SUCCEEDED

    @property
    def ended(self) -> bool:
        return self.state in (*ENDED, DELETED)

    @property
    def selector(self) -> str:
        """Selects the job's pods in kubectl."""
        return f"{JOB_LABELS[self.kind]}={self.name}"


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """Objects by kind (the first word of the plural name), and the last lines of logs."""

    objects: dict[str, list[Object]]
    unserved: frozenset[str] = frozenset()
    """Kinds that the API server does not serve, because their chart is not installed."""
    unseen: frozenset[str] = frozenset()
    """Kinds that a team cannot read: nodes, pools and controllers."""
    logs: dict[str, str] = field(default_factory=dict)
    """"namespace/pod" → the last lines of controllers and ranks."""
    ends: Mapping[str, str] = field(default_factory=dict)
    """"namespace/pod" of the rank of a job that failed first → the end of its log."""
    last_lines_at: dict[str, datetime] = field(default_factory=dict)
    """"namespace/pod" → when a running rank wrote its last log line."""
    taken_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    entries: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Entry of the stack file → kind, namespace and name of its job, as the stack output `jobs` has
    them."""
    complete: bool = False
    """The pods of earlier attempts are among the objects: those of the history."""

    def of(self, kind: str) -> list[Object]:
        return self.objects.get(kind, [])

    def jobs(self) -> list[Job]:
        """Every TrainJob of Trainer v2 and every PyTorchJob of the training operator."""
        return [_job(self, obj) for kind in ("trainjobs", "pytorchjobs") for obj in self.of(kind)]

    def runtimes(self) -> list[Object]:
        """Every runtime that a TrainJob may refer to."""
        return [*self.of("clustertrainingruntimes"), *self.of("trainingruntimes")]

    def age(self, obj: Object) -> int:
        """Seconds since the object was created."""
        created = datetime.fromisoformat(obj["metadata"]["creationTimestamp"])
        return int((self.taken_at - created).total_seconds())


def take(
    kubeconfig: str | None = None, *, logs: bool = True, namespace: str | None = None
) -> Snapshot:
    """Read the cluster of this kubeconfig, or of kubectl's current context. Raises RuntimeError with
    kubectl's error."""
    with logged_in_to(kubeconfig) if kubeconfig else logged_in(os.environ) as login:
        kubectl = kubectl_with(login, "--request-timeout=30s")
        return read(kubectl, logs=logs, namespace=namespace)


def read(kubectl: Kubectl, *, logs: bool = True, namespace: str | None = None) -> Snapshot:
    """Read the cluster; with `logs` those of jobs and controllers, too. The number of calls grows
    with the jobs, not with their pods. `namespace`: of a team that can read no other."""
    served = set(kubectl("api-resources", "--output=name").split())
    scope = f"--namespace={namespace}" if namespace else "--all-namespaces"
    kinds = _of_team(kubectl, served, scope) if namespace else KINDS
    objects = _objects(kubectl, [kind for kind in kinds if kind in served], scope)
    unserved = frozenset(kind.partition(".")[0] for kind in KINDS if kind not in served)
    unseen = frozenset(kind.partition(".")[0] for kind in KINDS if kind not in kinds)
    if not logs:
        return Snapshot(objects=objects, unserved=unserved, unseen=unseen)
    pods = objects["pods"]
    jobs = _jobs_with_pods(pods)
    running = {full_name(pod) for pod in pods if pod["status"].get("phase") == "Running"}
    stamped = _logs_of_jobs(kubectl, jobs)
    of_jobs = {pod: "\n".join(map(_without_time, lines)) for pod, lines in stamped.items()}
    return Snapshot(
        objects=objects,
        unserved=unserved,
        unseen=unseen,
        last_lines_at={
            pod: max(times)
            for pod, lines in stamped.items()
            if pod in running and (times := _timestamps(lines))
        },
        logs=_logs_of_pods(kubectl, _controllers(pods)) | of_jobs,
        ends=logs_of_ends(kubectl, pods, jobs),
    )


def _of_team(kubectl: Kubectl, served: set[str], scope: str) -> tuple[str, ...]:
    """The kinds that a listed team may read. A Kueue in the cluster is not always that of queues."""
    if QUEUED not in served:
        return OF_TEAM
    try:
        kubectl("auth", "can-i", "list", QUEUED, scope)
    except RuntimeError:  # the answer is no
        return OF_TEAM
    return (*OF_TEAM, QUEUED)


def _objects(kubectl: Kubectl, kinds: list[str], scope: str) -> dict[str, list[Object]]:
    """The objects of these kinds, by the first word of the plural name. `scope`: kubectl's flag for
    the namespaces."""
    objects: dict[str, list[Object]] = {kind.partition(".")[0]: [] for kind in kinds}
    shown = json.loads(kubectl("get", ",".join(kinds), scope, "--output=json"))
    for obj in shown["items"]:
        kind = obj["kind"].lower()
        plural = next(name for name in objects if name in (f"{kind}s", f"{kind}es"))
        objects[plural].append(obj)
    return objects


def _controllers(pods: list[Object]) -> list[Object]:
    """Pods of controllers. Pods of DaemonSets, such as device plugins, log nothing about a job."""
    labelled = [pod for pod in pods if pod["metadata"].get("labels", {}).keys() & CONTROLLER_LABELS]
    return [pod for pod in labelled if not _is_of_daemon_set(pod)]


def _is_of_daemon_set(pod: Object) -> bool:
    owners = pod["metadata"].get("ownerReferences", [])
    return any(owner["kind"] == "DaemonSet" for owner in owners)


def _jobs_with_pods(pods: list[Object]) -> list[tuple[str, str]]:
    """(namespace, selector of its pods) of every job that has pods."""
    labels = [(pod["metadata"]["namespace"], pod["metadata"].get("labels", {})) for pod in pods]
    return sorted(
        {
            (namespace, f"{label}={values[label]}")
            for namespace, values in labels
            for label in JOB_LABELS.values()
            if label in values
        }
    )


def _logs_of_jobs(kubectl: Kubectl, jobs: list[tuple[str, str]]) -> dict[str, list[str]]:
    """ "namespace/pod" → lines with their times. One call reads the logs of all pods of a job."""
    calls = [
        (
            f"--namespace={namespace}",
            f"--selector={selector}",
            "--prefix",
            "--ignore-errors",
            "--timestamps",
            "--tail=60",
        )
        for namespace, selector in jobs
    ]
    lines: dict[str, list[str]] = {}
    for (namespace, _), text in zip(jobs, _logs(kubectl, calls), strict=True):
        _, *parts = LOG_PREFIX.split(text)
        for pod, line in zip(parts[::2], parts[1::2], strict=True):
            lines.setdefault(f"{namespace}/{pod}", []).append(line.partition("\n")[0])
    return lines


def _logs_of_pods(kubectl: Kubectl, pods: list[Object]) -> dict[str, str]:
    """ "namespace/pod" → the last lines of its log."""
    calls = [
        (pod["metadata"]["name"], f"--namespace={pod['metadata']['namespace']}", "--tail=60")
        for pod in pods
    ]
    return dict(zip(map(full_name, pods), _logs(kubectl, calls), strict=True))


def _logs(kubectl: Kubectl, calls: list[tuple[str, ...]]) -> list[str]:
    """The output of `kubectl logs` with each of these arguments; empty where it fails, because a
    container has not started or its pod is gone."""

    def log(arguments: tuple[str, ...]) -> str:
        try:
            return kubectl("logs", *arguments, "--all-containers")
        except RuntimeError:
            return ""

    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(log, calls))


def _timestamps(lines: list[str]) -> list[datetime]:
    """The times of the lines. A line of the kubelet about a missing log has none."""
    matches = [TIMESTAMP.match(line) for line in lines]
    return [datetime.fromisoformat(match[1]) for match in matches if match]


def _without_time(line: str) -> str:
    match = TIMESTAMP.match(line)
    return line[match.end() :] if match else line


def about(event: Object) -> str:
    """Name of the object that an event is about; empty where the event names none."""
    return event.get("involvedObject", {}).get("name", "")


def full_name(obj: Object) -> str:
    """namespace/name."""
    return f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"


def _job(snapshot: Snapshot, obj: Object) -> Job:
    kind, namespace, name = obj["kind"], obj["metadata"]["namespace"], obj["metadata"]["name"]
    pods = tuple(
        pod
        for pod in snapshot.of("pods")
        if pod["metadata"]["namespace"] == namespace
        and pod["metadata"].get("labels", {}).get(JOB_LABELS[kind]) == name
    )
    replicas, condition = _replicas(obj), last_condition(obj)
    since = condition.get("lastTransitionTime")
    return Job(
        kind=kind,
        namespace=namespace,
        name=name,
        runtime=obj["spec"].get("runtimeRef", {}).get("name", "-"),
        nodes=sum(replica.get("numNodes", 1) for replica in replicas),
        body=obj,
        state=condition["type"],
        message=f"{condition.get('reason')}: {condition.get('message', '')}",
        since=datetime.fromisoformat(since) if since else None,
        restarts=_restarts(snapshot, obj, pods),
        pods=pods,
        entry=entry_of(obj, snapshot.entries),
    )


def entry_of(job: Object, entries: Mapping[str, Mapping[str, Any]]) -> str:
    """The entry that describes a job; empty where none does. `entries`: the stack output `jobs`."""
    meta = job["metadata"]
    same = {"kind": job["kind"], "namespace": meta["namespace"], "name": meta["name"]}
    return next((key for key, each in entries.items() if same.items() <= dict(each).items()), "")


def _replicas(obj: Object) -> list[Object]:
    """The trainer of a TrainJob; the first container of each replica type of a PyTorchJob, with
    its number of nodes."""
    spec = obj["spec"]
    if obj["kind"] == "TrainJob":
        return [spec.get("trainer", {})]
    return [
        replica["template"]["spec"]["containers"][0] | {"numNodes": replica.get("replicas", 1)}
        for replica in spec["pytorchReplicaSpecs"].values()
    ]


def _restarts(snapshot: Snapshot, obj: Object, pods: tuple[Object, ...]) -> int:
    """Number of restarts of the gang, else of a container, else of a deleted pod."""
    namespace, name = obj["metadata"]["namespace"], obj["metadata"]["name"]
    of_gang = sum(
        job_set.get("status", {}).get("restarts") or 0
        for job_set in snapshot.of("jobsets")
        if JOB_KINDS[obj["kind"]].restarts_as_job_set
        and full_name(job_set) == f"{namespace}/{name}"
    )
    of_containers = sum(
        status.get("restartCount", 0) for pod in pods for status in container_statuses(pod)
    )
    of_deleted_pods = sum(
        event.get("count") or 1
        for event in snapshot.of("events")
        if event.get("reason") == RESTARTING and about(event) == name
    )
    return of_gang or of_containers or of_deleted_pods


def last_condition(job: Object) -> Object:
    """The last condition of a job whose status is True; its type is the job's state."""
    conditions = true_conditions(job)
    return conditions[-1] if conditions else {"type": "Running"}


def condition_of(obj: Object, name: str) -> Object:
    """A condition of an object by its type; an empty one where there is none."""
    conditions = obj.get("status", {}).get("conditions", [])
    return next((each for each in conditions if each["type"] == name), {})


def container_statuses(pod: Object) -> list[Object]:
    """Statuses of the pod's containers, init containers first."""
    return [
        status
        for key in ("initContainerStatuses", "containerStatuses")
        for status in pod.get("status", {}).get(key, [])
    ]
