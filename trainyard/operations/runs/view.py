"""View of a cluster that `trainyard watch` shows: pure, from one snapshot. Its looks: frame.py."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from types import MappingProxyType

from trainyard.catalog.aws.node_price import TYPE, node_price
from trainyard.catalog.aws.own_prices import LIST, OwnPrices
from trainyard.catalog.logs.first_end import container_statuses
from trainyard.catalog.logs.share_done import Reached
from trainyard.catalog.logs.waiting import goes_on
from trainyard.catalog.quantities import amount
from trainyard.catalog.workloads import job_of
from trainyard.objects.jobs.pod_template import GPU, NODES_FOR, POOL
from trainyard.objects.programs.repair import NOTE
from trainyard.operations.reach.snapshot import Job, Object, Snapshot, condition_of
from trainyard.operations.reach.target import environment_of
from trainyard.operations.runs.logs import node_number
from trainyard.operations.runs.node_time import going_runs, pod_gpus, uid_of
from trainyard.operations.runs.reported import far_of
from trainyard.operations.status.diagnosis import diagnose
from trainyard.operations.status.finding import Finding
from trainyard.operations.status.interruptions import interruptions
from trainyard.operations.status.queue_causes import queued_since

READY, LAUNCHING, JOINING, NOT_READY, SICK, LEAVING = (
    "ready",
    "launching",
    "joining",
    "not ready",
    "sick",
    "leaving",
)
"""States of a node, the best first."""
RUNS, DONE, STARTS, NO_NODE, GONE, BROKEN = (
    "runs",
    "done",
    "starts",
    "waits",
    "missing",
    "failed",
)
"""States of a rank."""
ENDED_SECONDS = 3600
"""Seconds for which a job that has ended is shown."""


@dataclass(frozen=True, kw_only=True)
class Pool:
    """The nodes of a pool."""

    name: str
    instance_types: tuple[str, ...]
    nodes: dict[str, int]
    """State → how many."""
    most: int | None
    """Most nodes that the pool may have; None where that is not known."""
    gpus: int
    gpus_used: int
    """Requested by pods."""
    usd_per_hour: Decimal
    unpriced: int
    """Nodes whose price is not known."""


@dataclass(frozen=True, kw_only=True)
class Gang:
    """A job, and its ranks by number of the node."""

    name: str
    state: str
    seconds: int | None
    """Since it has this state."""
    ended: bool
    ranks: tuple[str, ...]
    """State of each."""
    restarts: int
    how_far: str
    """Per cent, time to go and dollars to the end, as its script says it, or what it waits for; empty where nothing
    tells."""


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """A job in a queue."""

    job: str
    queue: str
    seconds: int


@dataclass(frozen=True, kw_only=True)
class View:
    """One look at a cluster."""

    stack: str
    taken_at: datetime
    pools: tuple[Pool, ...] | None
    """None: a team cannot read them."""
    gangs: tuple[Gang, ...]
    queue: tuple[Waiting, ...]
    alerts: tuple[str, ...] | None
    """Alerts that fire; None where no metrics are on, or where they cannot be read."""
    interrupted: tuple[str, ...]
    """Jobs that lost nodes to another job or to AWS, by whom or why, when, and whether they wait again."""
    problems: tuple[str, ...]

    @property
    def usd_per_hour(self) -> Decimal:
        return sum((pool.usd_per_hour for pool in self.pools or ()), Decimal())

    @property
    def unpriced(self) -> int:
        return sum(pool.unpriced for pool in self.pools or ())


def view(
    stack: str,
    snapshot: Snapshot,
    alerts: tuple[str, ...] | None,
    changed: Sequence[Finding] = (),
    prices: OwnPrices = LIST,
    reached: Mapping[str, Reached] = MappingProxyType({}),
) -> View:
    """View of a snapshot. `alerts`: what Prometheus says. `changed`: objects that are not as the last
    update left them. `prices`: of the stack. `reached`: by logs, by uid of the job."""
    environment = environment_of(stack) or stack
    snapshot = replace(snapshot, prices=prices, stack=stack, environment=environment)
    problems = [*diagnose(snapshot, silence=None), *changed]
    return View(
        stack=stack,
        taken_at=snapshot.taken_at,
        pools=None if "nodes" in snapshot.unseen else tuple(_pools(snapshot, prices)),
        gangs=tuple(_gangs(snapshot, prices, reached)),
        queue=tuple(_queue(snapshot)),
        alerts=alerts,
        interrupted=tuple(map(str, interruptions(snapshot))),
        problems=tuple(finding.what for finding in problems),
    )


def node_state(node: Object, snapshot: Snapshot) -> str:
    """State of a node, in one word."""
    meta = node["metadata"]
    if meta.get("deletionTimestamp"):
        return LEAVING
    if NOTE in (meta.get("annotations") or {}):
        return SICK
    if condition_of(node, "Ready").get("status") == "True":
        return READY
    young = "creationTimestamp" in meta and snapshot.age(node) < 300
    return JOINING if young else NOT_READY


def _pools(snapshot: Snapshot, prices: OwnPrices) -> Iterator[Pool]:
    nodes = [
        node
        for node in snapshot.of("nodes")
        if node["metadata"].get("labels", {}).get(NODES_FOR) == "training"
    ]
    made: dict[str, list[Object]] = {}
    for node_pool in snapshot.of("nodepools"):
        labels = node_pool["spec"]["template"]["metadata"].get("labels", {})
        made.setdefault(labels.get(POOL, "-"), []).append(node_pool)
    names = {*made, *(node["metadata"]["labels"].get(POOL, "-") for node in nodes)}
    for name in sorted(names):
        own = [node for node in nodes if node["metadata"]["labels"].get(POOL, "-") == name]
        yield _pool(snapshot, name, own, made.get(name, []), prices)


def _pool(
    snapshot: Snapshot, name: str, nodes: list[Object], made: list[Object], prices: OwnPrices
) -> Pool:
    names = {node["metadata"]["name"] for node in nodes}
    paid = [node_price(node["metadata"]["labels"], prices) for node in nodes]
    launching = [each for each in coming(snapshot, names) if pool_of(each) == name]
    states = [node_state(node, snapshot) for node in nodes] + [LAUNCHING] * len(launching)
    return Pool(
        name=name,
        instance_types=tuple(sorted({node["metadata"]["labels"].get(TYPE, "") for node in nodes})),
        nodes={state: states.count(state) for state in dict.fromkeys(states)},
        most=_most(made),
        gpus=sum(allocatable(node, GPU) for node in nodes),
        gpus_used=sum(pod_gpus(pod) for pod in snapshot.of("pods") if _holds(pod, names)),
        usd_per_hour=sum((each.usd for each in paid if each), Decimal()),
        unpriced=paid.count(None),
    )


def _most(made: list[Object]) -> int | None:
    """Most nodes that the NodePools of a pool may have, one for each of its types; None where one has no limit."""
    limits = [node_pool["spec"].get("limits", {}).get("nodes") for node_pool in made]
    return sum(map(int, limits)) if limits and all(limits) else None


def coming(snapshot: Snapshot, nodes: Collection[str]) -> list[Object]:
    """NodeClaims that have none of these nodes."""
    return [
        claim
        for claim in snapshot.of("nodeclaims")
        if claim.get("status", {}).get("nodeName") not in nodes
    ]


def pool_of(node: Object) -> str | None:
    """Pool of a node or of a NodeClaim; None where it is of none."""
    return node["metadata"].get("labels", {}).get(POOL)


def allocatable(node: Object, resource: str) -> int:
    """Devices of a resource that a node or a NodeClaim has for pods."""
    return int(amount(node.get("status", {}).get("allocatable", {}).get(resource, 0)) or 0)


def _holds(pod: Object, nodes: set[str]) -> bool:
    return pod["spec"].get("nodeName") in nodes and goes_on(pod)


def _gangs(snapshot: Snapshot, prices: OwnPrices, reached: Mapping[str, Reached]) -> Iterator[Gang]:
    """Jobs that go on, then those that have ended within the hour, the last first."""
    shown = []
    far = {
        id(run.job.body): far_of(run, prices, reached.get(uid_of(run)))
        for run in going_runs(snapshot)
    }
    for job in snapshot.jobs():
        since = (snapshot.taken_at - job.since).total_seconds() if job.since else None
        if not job.ended or since is None or since <= ENDED_SECONDS:
            shown.append((job.ended, since or 0, job))
    for ended, since, job in sorted(shown, key=lambda each: each[:2]):
        yield Gang(
            name=f"{job.namespace}/{job.name}",
            state=job.state,
            seconds=int(since) if job.since else snapshot.age(job.body),
            ended=ended,
            ranks=() if ended else tuple(_ranks(job)),
            restarts=job.restarts,
            how_far=str(far.get(id(job.body)) or job.waits_for),
        )


def _ranks(job: Job) -> Iterable[str]:
    pods = [*job.pods]
    states = {node_number(pod, pods): _rank(pod) for pod in pods}
    return [states.get(number, GONE) for number in range(max(job.nodes, len(states)))]


def _rank(pod: Object) -> str:
    phase = pod["status"].get("phase")
    if phase == "Failed":
        return BROKEN
    if phase == "Succeeded":
        return DONE
    if not pod["spec"].get("nodeName"):
        return NO_NODE
    waiting = [status.get("state", {}).get("waiting") for status in container_statuses(pod)]
    return STARTS if phase == "Pending" or any(waiting) else RUNS


def _queue(snapshot: Snapshot) -> Iterator[Waiting]:
    """Workloads of Kueue without a quota; first the one that has waited longest since it last came to its queue."""
    for workload in sorted(snapshot.of("workloads"), key=queued_since):
        states = {kind: condition_of(workload, kind) for kind in ("QuotaReserved", "Finished")}
        if any(each.get("status") == "True" for each in states.values()):
            continue
        yield Waiting(
            job=job_of(workload)[-1] or workload["metadata"]["name"],
            queue=workload["spec"].get("queueName", ""),
            seconds=int((snapshot.taken_at - queued_since(workload)).total_seconds()),
        )
