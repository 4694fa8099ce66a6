"""The objects and logs of a cluster that a diagnosis needs, read at one moment."""

from __future__ import annotations

import json
import urllib.parse
from collections.abc import Collection, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

from trainyard.catalog.aws.own_prices import LIST, OwnPrices
from trainyard.catalog.job_kinds import (
    ENDED,
    JOB_KINDS,
    RESTARTING,
    SUCCEEDED,
    is_suspended,
    resource_of,
    true_conditions,
)
from trainyard.catalog.logs.events import is_about
from trainyard.catalog.logs.first_end import container_statuses
from trainyard.catalog.logs.waiting import state_beside
from trainyard.catalog.workloads import WORKLOADS
from trainyard.objects.programs.history import DELETED
from trainyard.operations.reach.kubectl import NOT_FOUND, Kubectl, Object
from trainyard.operations.reach.pods import AT_ONCE, Gangs, Log, full_name, gangs, read_logs
from trainyard.operations.reach.rank_logs import logs_of_ends
from trainyard.operations.reach.served import served
from trainyard.operations.reach.target import namespace_of
from trainyard.plans.jobs import SCHEDULE

JOBS = tuple(f"{kind.lower()}s" for kind in JOB_KINDS)
"""Kinds of jobs, as Snapshot.objects has them."""
KINDS = (
    "trainjobs.trainer.kubeflow.org",
    "pytorchjobs.kubeflow.org",
    "clustertrainingruntimes.trainer.kubeflow.org",
    "trainingruntimes.trainer.kubeflow.org",
    "jobsets.jobset.x-k8s.io",
    WORKLOADS,
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
trainyard/objects/teams/team_access.py. Where the environment has queues, WORKLOADS besides."""
FORBIDDEN = "forbidden"
"""Part of kubectl's message where the API server does not permit a call."""
PAGE = 500
"""Objects of one answer, as kubectl asks for them."""
RECENT = timedelta(minutes=1)
"""The first rank of a run has written a line so lately: then its other ranks are not asked."""


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
    """Type of the last condition whose status is True, Running where there is none; WAITING where no pod runs."""
    message: str
    """Reason and message of that condition."""
    since: datetime | None
    """Time at which that condition became True; None where the object does not tell."""
    restarts: int
    """Restarts of the whole gang; else of its containers; else deletions of failed pods."""
    pods: tuple[Object, ...]
    waits_for: str = ""
    """Reason of WAITING."""
    entry: str = ""
    """Its entry in the stack file; empty for a job of another stack, or of none."""

    def __str__(self) -> str:
        entry = f" (entry {self.entry})" if self.entry not in ("", self.name) else ""
        return f"{self.kind} {self.name}{entry}"

    @property
    def shown(self) -> str:
        """Its state, with what it waits for."""
        return f"{self.state} ({self.waits_for})" if self.waits_for else self.state

    @property
    def complete(self) -> bool:
        return self.state in SUCCEEDED

    @property
    def ended(self) -> bool:
        return self.state in (*ENDED, DELETED)

    @property
    def suspended(self) -> bool:
        """True where it is to have no pods, such as of a job that waits in a queue."""
        return is_suspended(self.body)

    @property
    def percent(self) -> str:
        """Part of its work that its script says is done (status.trainerStatus), while it has not done all of it."""
        said = {} if self.complete else self.body.get("status", {}).get("trainerStatus") or {}
        return f"{said['progressPercentage']}%" if "progressPercentage" in said else ""

    @property
    def selector(self) -> str:
        """Selects the job's pods in kubectl."""
        return f"{JOB_KINDS[self.kind].pod_label}={self.name}"


@dataclass(frozen=True, kw_only=True)
class Snapshot:
    """Objects by kind (the first word of the plural name), and the last lines of logs."""

    objects: dict[str, list[Object]]
    unserved: frozenset[str] = frozenset()
    """Kinds that the API server does not serve, because their chart is not installed."""
    unseen: frozenset[str] = frozenset()
    """Kinds that a team cannot read: nodes, pools and controllers."""
    logs: dict[str, str] = field(default_factory=dict)
    """"namespace/pod" → the last lines of controllers and ranks, as far as they were read (pods.py)."""
    ends: Mapping[str, str] = field(default_factory=dict)
    """"namespace/pod" of the rank of a job that failed first → the end of its log."""
    last_lines_at: dict[str, datetime] = field(default_factory=dict)
    """"namespace/pod" → when a running rank wrote its last log line."""
    unread: frozenset[str] = frozenset()
    """"namespace/pod" of ranks whose logs were asked for, and whose kubelet did not answer."""
    taken_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    entries: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Entry of the stack file → kind, namespace and name of its job, as the output `jobs` has them."""
    stack: str = ""
    """The stack that is asked about."""
    environment: str = ""
    """The stack that has its pools and controllers: of a team's stack another one."""
    schedules: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Entry of the stack file → times of its runs, as the stack output `schedules` has them."""
    prices: OwnPrices = LIST
    """Prices of the stack."""
    complete: bool = False
    """The pods of earlier attempts are among the objects: those of the history."""

    def of(self, kind: str) -> list[Object]:
        return self.objects.get(kind, [])

    @property
    def of_environment(self) -> str:
        """Option of a command about pools or controllers; empty where the stack is not known."""
        return f" --stack {self.environment}" if self.environment else ""

    def jobs(self) -> list[Job]:
        """Every TrainJob of Trainer v2 and every job of the training-operator."""
        return self._jobs

    @cached_property
    def _jobs(self) -> list[Job]:
        of_jobs = gangs(self.of("pods"))
        restarts = _Restarts(self)
        return [_job(self, obj, of_jobs, restarts) for kind in JOBS for obj in self.of(kind)]

    def runtimes(self) -> list[Object]:
        """Every runtime that a TrainJob may refer to."""
        return [*self.of("clustertrainingruntimes"), *self.of("trainingruntimes")]

    def age(self, obj: Object) -> int:
        """Seconds since the object was created."""
        created = datetime.fromisoformat(obj["metadata"]["creationTimestamp"])
        return int((self.taken_at - created).total_seconds())


def snapshot_of(
    stack: str, kubectl: Kubectl, *, logs: bool = False, recent: timedelta = RECENT
) -> Snapshot:
    """The cluster of a stack; of a team that may read no more, its namespace. RuntimeError has kubectl's error."""
    try:
        return read(kubectl, logs=logs, recent=recent)
    except RuntimeError as error:
        namespace = namespace_of(stack) if FORBIDDEN in str(error) else None
        if namespace is None:
            raise
        return read(kubectl, logs=logs, namespace=namespace, recent=recent)


def read(
    kubectl: Kubectl,
    *,
    logs: bool = True,
    namespace: str | None = None,
    recent: timedelta = RECENT,
) -> Snapshot:
    """Read the cluster; with `logs` those of jobs and controllers, too. `namespace`: of a team that can
    read no other. `recent`: of a run whose first rank has written a line so lately, the other ranks are
    not asked. So the number of questions grows with the jobs, and with the ranks of those in trouble."""
    groups = _groups(kubectl)
    kinds = _of_team(kubectl, groups, namespace) if namespace else _of_cluster(kubectl, groups)
    lists = _lists(kubectl, {kind: groups.get(_group(kind)) for kind in kinds}, namespace)
    objects = {_plural(kind): found for kind, found in lists.items() if found is not None}
    of_jobs = gangs(objects["pods"])
    heard = read_logs(kubectl, objects["pods"], of_jobs, recent) if logs else {}
    return Snapshot(
        objects=objects,
        unserved=_unserved(groups, lists),
        unseen=frozenset(_plural(kind) for kind in KINDS if kind not in kinds),
        logs={pod: log.text for pod, log in heard.items()},
        last_lines_at=_last_lines_at(of_jobs, heard),
        unread=frozenset(pod for pod, log in heard.items() if log.unread),
        ends=logs_of_ends(kubectl, of_jobs) if logs else {},
    )


def _unserved(groups: Collection[str], lists: Mapping[str, list[Object] | None]) -> frozenset[str]:
    """Kinds whose group is not served, and those whose list is not."""
    missing = {kind for kind in KINDS if _group(kind) not in groups}
    missing |= {kind for kind, found in lists.items() if found is None}
    return frozenset(map(_plural, missing))


def _last_lines_at(of_jobs: Gangs, heard: Mapping[str, Log]) -> dict[str, datetime]:
    """ "namespace/pod" → when a running rank wrote its last log line."""
    ranks = [pod for gang in of_jobs.values() for pod in gang]
    running = [full_name(pod) for pod in ranks if pod["status"].get("phase") == "Running"]
    return {name: log.last for name in running if (log := heard.get(name)) and log.last is not None}


def _groups(kubectl: Kubectl) -> dict[str, str]:
    """Each API group that is served → its preferred version, as group/version."""
    found = json.loads(kubectl("get", "--raw", "/apis"))["groups"]
    return {"": "v1"} | {each["name"]: each["preferredVersion"]["groupVersion"] for each in found}


def _plural(kind: str) -> str:
    return kind.partition(".")[0]


def _group(kind: str) -> str:
    """The API group of a kind; of "events" and its neighbours that of Pods."""
    return kind.partition(".")[2]


def _of_cluster(kubectl: Kubectl, groups: Collection[str]) -> tuple[str, ...]:
    """KINDS, and the kinds of jobs that the training-operator runs beside PyTorchJob here."""
    more = served(kubectl) if _group(resource_of("PyTorchJob")) in groups else ()
    return tuple(dict.fromkeys((*KINDS, *more)))


def _of_team(kubectl: Kubectl, groups: Collection[str], namespace: str) -> tuple[str, ...]:
    """The kinds that a listed team may read. A Kueue in the cluster is not always that of queues."""
    if _group(WORKLOADS) not in groups:
        return OF_TEAM
    try:
        kubectl("auth", "can-i", "list", WORKLOADS, f"--namespace={namespace}")
    except RuntimeError:  # the answer is no
        return OF_TEAM
    return (*OF_TEAM, WORKLOADS)


def _lists(
    kubectl: Kubectl, versions: Mapping[str, str | None], namespace: str | None
) -> dict[str, list[Object] | None]:
    """Kind → its objects; None where the API server does not serve it. `versions`: of each kind, as
    group/version; None where its group is not served."""

    def ask(kind: str) -> list[Object] | None:
        version = versions[kind]
        try:
            return objects_at(kubectl, _path(version, kind, namespace)) if version else None
        except RuntimeError as error:
            if NOT_FOUND not in str(error):
                raise
            return None

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return dict(zip(versions, pool.map(ask, versions), strict=True))


def _path(version: str, kind: str, namespace: str | None) -> str:
    return f"{root_of(version)}{f'/namespaces/{namespace}' if namespace else ''}/{_plural(kind)}"


def root_of(version: str) -> str:
    """Path of an apiVersion at the API server."""
    return f"/apis/{version}" if "/" in version else f"/api/{version}"


def objects_at(kubectl: Kubectl, path: str) -> list[Object]:
    """The objects of a list at a path of the API server, page by page, as `kubectl get` shows each. Raises
    RuntimeError with kubectl's error."""
    found: list[Object] = []
    more = ""
    while True:
        asked = urllib.parse.urlencode({"limit": PAGE} | ({"continue": more} if more else {}))
        page = json.loads(kubectl("get", "--raw", f"{path}?{asked}"))
        own = {"apiVersion": page["apiVersion"], "kind": page["kind"].removesuffix("List")}
        for each in page["items"]:
            each["metadata"].pop("managedFields", None)
            found.append(own | each)
        more = page["metadata"].get("continue", "")
        if not more:
            return found


def _job(snapshot: Snapshot, obj: Object, of_jobs: Gangs, restarts: _Restarts) -> Job:
    kind, namespace, name = obj["kind"], obj["metadata"]["namespace"], obj["metadata"]["name"]
    pods = tuple(of_jobs.get((kind, namespace, name), ()))
    replicas, condition = _replicas(obj), last_condition(obj)
    since = condition.get("lastTransitionTime")
    state, waits_for = state_beside(condition["type"], pods)
    return Job(
        kind=kind,
        namespace=namespace,
        name=name,
        runtime=obj["spec"].get("runtimeRef", {}).get("name", "-"),
        nodes=sum(replica.get("numNodes", 1) for replica in replicas),
        body=obj,
        state=state,
        waits_for=waits_for,
        message=f"{condition.get('reason')}: {condition.get('message', '')}",
        since=datetime.fromisoformat(since) if since else None,
        restarts=restarts.of(obj, pods),
        pods=pods,
        entry=entry_of(obj, snapshot.entries),
    )


def entry_of(job: Object, entries: Mapping[str, Mapping[str, Any]]) -> str:
    """The entry that describes a job; empty where none does. `entries`: the stack output `jobs`. A run of a
    schedule has it as a label."""
    meta = job["metadata"]
    if scheduled := meta.get("labels", {}).get(SCHEDULE):
        return scheduled
    same = {"kind": job["kind"], "namespace": meta["namespace"], "name": meta["name"]}
    return next((key for key, each in entries.items() if same.items() <= dict(each).items()), "")


def _replicas(obj: Object) -> list[Object]:
    """The trainer of a TrainJob; the first container of each role of another job, with its number of
    nodes."""
    spec = obj["spec"]
    if obj["kind"] == "TrainJob":
        return [spec.get("trainer", {})]
    return [
        replica["template"]["spec"]["containers"][0] | {"numNodes": replica.get("replicas", 1)}
        for replica in spec[JOB_KINDS[obj["kind"]].replicas].values()
    ]


class _Restarts:
    """Counts of restarts of all jobs."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._job_sets = {
            full_name(job_set): job_set.get("status", {}).get("restarts") or 0
            for job_set in snapshot.of("jobsets")
        }
        events = snapshot.of("events")
        self._begun = [event for event in events if event.get("reason") == RESTARTING]

    def of(self, obj: Object, pods: tuple[Object, ...]) -> int:
        """Number of restarts of the gang, else of a container, else of a deleted pod."""
        own = JOB_KINDS[obj["kind"]].restarts_as_job_set
        of_gang = self._job_sets.get(full_name(obj), 0) if own else 0
        of_containers = sum(
            status.get("restartCount", 0) for pod in pods for status in container_statuses(pod)
        )
        begun = (event.get("count") or 1 for event in self._begun if is_about(event, obj))
        return of_gang or of_containers or sum(begun)


def last_condition(job: Object) -> Object:
    """The last condition of a job whose status is True; its type is the job's state."""
    conditions = true_conditions(job)
    return conditions[-1] if conditions else {"type": "Running"}


def condition_of(obj: Object, name: str) -> Object:
    """A condition of an object by its type; an empty one where there is none."""
    conditions = obj.get("status", {}).get("conditions", [])
    return next((each for each in conditions if each["type"] == name), {})
