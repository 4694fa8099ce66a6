"""Use of nodes and GPUs by each run, and its time, as far as the cluster or the history still
knows.

A pod takes its node from the moment at which it is scheduled to the end of its last container.
Kubernetes deletes the pods of a node that is gone, and Karpenter deletes nodes that have been empty
for 15 minutes: what is left then is the job, which knows when it was created and when it ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from trainyard.catalog.aws.node_price import REGION, TYPE, ZONE, service_of
from trainyard.catalog.quantities import amount
from trainyard.derive.pools import TYPES
from trainyard.manifests.context import live_view
from trainyard.objects.jobs.pod_template import GPU, POOL
from trainyard.objects.programs.history import LEFT
from trainyard.operations.reach.snapshot import Job, Object, Snapshot
from trainyard.plans.jobs import EXPECTED, RUN, Expected

EXACT, AT_LEAST, AT_MOST, ABOUT = "", "at least", "at most", "about"
"""Words for how well an amount is known."""
FIRST_PODS = timedelta(minutes=1)
"""Time after its creation in which a job still creates the pods of its first attempt."""
Labels = dict[str, str]


@dataclass(frozen=True, kw_only=True)
class NodeTime:
    """The time that one pod took of a node."""

    instance_type: str
    """Empty where it is not known."""
    service: str
    """Service whose prices count; empty where it is not known."""
    region: str
    """Region whose prices count; empty where it is not known."""
    gpus: int
    hours: Decimal

    @property
    def gpu_hours(self) -> Decimal:
        return self.gpus * self.hours

    @property
    def node_hours(self) -> Decimal:
        """Its share of the node: that of the GPUs; a node without GPUs counts wholly."""
        kind = TYPES.get(self.instance_type)
        if kind is None or not kind.gpus:
            return self.hours
        return self.hours * min(self.gpus, kind.gpus) / kind.gpus


@dataclass(frozen=True, kw_only=True)
class Run:
    """A job that has begun or ended. One that goes on counts to the moment of the snapshot."""

    job: Job
    created: datetime
    began: datetime | None
    """When its first pod got a node; None where it is not known, or not so yet."""
    ended: datetime
    """When it ended; of a run that goes on, the moment of the snapshot."""
    identity: str
    """Identity of the run in the stack's plan; empty for a job that no stack owns."""
    times: tuple[NodeTime, ...]
    expected: Expected | None
    """Plan of the run; None without expected_hours, and for a job that no stack owns."""
    known: str
    """EXACT; AT_LEAST where pods of it are gone; AT_MOST where all are, and the job's whole life
    stands for their time."""

    @property
    def hours_expected(self) -> float | None:
        """`expected_hours` of its entry, when it began."""
        return self.expected.hours if self.expected else None


def finished_runs(snapshot: Snapshot) -> list[Run]:
    """Every job that has ended, the first to end first."""
    runs = [_run(snapshot, job, job.since) for job in snapshot.jobs() if job.ended and job.since]
    return sorted(runs, key=lambda run: run.ended)


def going_runs(snapshot: Snapshot) -> list[Run]:
    """Every job that has not ended, the first to be created first."""
    jobs = [job for job in snapshot.jobs() if not job.ended]
    runs = [_run(snapshot, job, snapshot.taken_at, going=True) for job in jobs]
    return sorted(runs, key=lambda run: run.created)


def uid_of(run: Run) -> str:
    """Uid of the run's job."""
    return run.job.body["metadata"].get("uid", "")


def scheduled_at(pod: Object) -> str:
    """Time at which the pod got its node; time of its creation where the object does not tell."""
    return next(
        (
            condition["lastTransitionTime"]
            for condition in pod["status"].get("conditions", [])
            if condition["type"] == "PodScheduled" and condition["status"] == "True"
        ),
        pod["metadata"]["creationTimestamp"],
    )


def pod_gpus(pod: Object) -> int:
    """GPUs of all containers of the pod."""
    limits = [one.get("resources", {}).get("limits", {}) for one in pod["spec"]["containers"]]
    return int(sum(amount(limit.get(GPU, 0)) or 0 for limit in limits))


def duration(seconds: int, *, to_the_second: bool = False) -> str:
    """As short as people say it: 2 h 05 min, 12 min, 40 s. `to_the_second`: 12 min 03 s."""
    minutes, hours = seconds // 60, seconds // 3600
    if hours:
        return f"{hours} h {minutes % 60:02} min"
    if not minutes:
        return f"{seconds} s"
    return f"{minutes} min {seconds % 60:02} s" if to_the_second else f"{minutes} min"


def together(known: Iterable[str]) -> str:
    """Word for how well a sum is known. `known`: the words of its amounts."""
    inexact = {*known} - {EXACT}
    return ABOUT if len(inexact) > 1 else next(iter(inexact), EXACT)


def _run(snapshot: Snapshot, job: Job, ended: datetime, *, going: bool = False) -> Run:
    pods = [pod for pod in job.pods if pod["spec"].get("nodeName") and _trains(pod)]
    times, known = _times(snapshot, job, pods, ended, going=going)
    notes = job.body["metadata"].get("annotations", {})
    return Run(
        job=job,
        created=_time(job.body["metadata"]["creationTimestamp"]),
        began=min((_time(scheduled_at(pod)) for pod in pods), default=None),
        ended=ended,
        identity=notes.get(RUN, ""),
        expected=Expected.read(notes.get(EXPECTED, "")),
        times=times,
        known=known,
    )


def _times(
    snapshot: Snapshot, job: Job, pods: list[Object], ended: datetime, *, going: bool
) -> tuple[tuple[NodeTime, ...], str]:
    """The time of each of these pods, and what is known of it; of no pod, the job's whole life."""
    view = live_view(job.body, snapshot.runtimes())
    created = _time(job.body["metadata"]["creationTimestamp"])
    if pods:
        short = not (going or snapshot.complete) and len(pods) < view.nodes
        known = AT_LEAST if short or _lost_pods(snapshot, job, pods, created) else EXACT
        return tuple(_of_pod(snapshot, pod, ended) for pod in pods), known
    if going or snapshot.complete:
        return (), AT_LEAST if job.restarts and not snapshot.complete else EXACT
    labels = _labels_of_pool(snapshot, _selected_pool(job.body["spec"]))
    whole = _node_time(labels, view.gpus, ended - created)
    return (whole,) * view.nodes, AT_MOST if view.nodes else AT_LEAST


def _lost_pods(snapshot: Snapshot, job: Job, pods: list[Object], created: datetime) -> bool:
    """True where the job had pods of an earlier attempt that are not among these."""
    late = (_time(pod["metadata"]["creationTimestamp"]) > created + FIRST_PODS for pod in pods)
    return not snapshot.complete and bool(job.restarts or any(late))


def _trains(pod: Object) -> bool:
    """True where the pod takes a node of a pool. The launcher of an MPI job does not."""
    return bool(pod_gpus(pod)) or POOL in pod["spec"].get("nodeSelector", {})


def _of_pod(snapshot: Snapshot, pod: Object, job_ended: datetime) -> NodeTime:
    return _node_time(
        _labels_of_node(snapshot, pod),
        pod_gpus(pod),
        _end_of(pod, job_ended) - _time(scheduled_at(pod)),
    )


def _end_of(pod: Object, job_ended: datetime) -> datetime:
    """The moment at which the pod gave its node back: the last of its containers ended, or its job where one
    runs. That its init containers have ended says nothing. Kubelet says no moment of a container that it has
    lost (ContainerStatusUnknown); such a pod ended when it was ready no more."""
    if left := pod["metadata"].get("annotations", {}).get(LEFT):
        return _time(left)
    states = [each.get("state", {}) for each in pod["status"].get("containerStatuses", [])]
    if not states or not all(state.get("terminated") for state in states):
        return job_ended
    ends = [_time(at) for state in states if (at := state["terminated"].get("finishedAt"))]
    lost = [
        _time(each["lastTransitionTime"])
        for each in pod["status"].get("conditions", [])
        if each["type"] == "Ready" and each["status"] == "False"
    ]
    return max(ends, default=max(lost, default=job_ended))


def _node_time(labels: Labels, gpus: int, time: timedelta) -> NodeTime:
    return NodeTime(
        instance_type=labels.get(TYPE, ""),
        service=service_of(labels),
        region=labels.get(REGION, ""),
        gpus=gpus,
        hours=Decimal(str(time.total_seconds())) / 3600,
    )


def _labels_of_node(snapshot: Snapshot, pod: Object) -> Labels:
    """Labels of the pod's node; where the node is gone, those of what its pool launches."""
    name = pod["spec"]["nodeName"]
    for node in snapshot.of("nodes"):
        if node["metadata"]["name"] == name:
            return node["metadata"]["labels"]
    return _labels_of_pool(snapshot, pod["spec"].get("nodeSelector", {}).get(POOL))


def _labels_of_pool(snapshot: Snapshot, pool: str | None) -> Labels:
    """Labels that all nodes of a pool have in common, their region among them."""
    several: dict[str, set[str]] = {}
    for node_pool in snapshot.of("nodepools"):
        template = node_pool["spec"]["template"]
        if pool and template["metadata"]["labels"].get(POOL) == pool:
            for wanted in template["spec"]["requirements"]:
                several.setdefault(wanted["key"], set()).update(wanted.get("values", ()))
    several[REGION] = {zone[:-1] for zone in several.get(ZONE, ())}
    return {key: next(iter(values)) for key, values in several.items() if len(values) == 1}


def _selected_pool(spec: Any) -> str | None:
    """The pool that a part of a job's spec selects. A TrainJob of either release and a PyTorchJob
    have it at different places."""
    return next((value for value in _pools_in(spec) if value), None)


def _pools_in(part: Any) -> Iterator[str | None]:
    if isinstance(part, dict):
        yield (part.get("nodeSelector") or {}).get(POOL)
    for inner in (
        part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    ):
        yield from _pools_in(inner)


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)
