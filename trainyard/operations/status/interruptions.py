"""Interruptions of jobs: nodes that Kueue took from a job, for another job or because pods were missing, and
nodes that AWS takes back.

What Kueue says of it: conditions and schedulingStats of the job's Workload (Kueue 0.16.2 and 0.19.2,
pkg/scheduler/preemption and pkg/workload), which live as long as the job. What Karpenter says of a node: events, which
Kubernetes keeps for an hour.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from trainyard.catalog.logs.events import about, is_about, owner_of
from trainyard.catalog.workloads import evictions, job_of
from trainyard.operations.reach.snapshot import Job, Object, Snapshot, condition_of
from trainyard.operations.status.finding import said
from trainyard.operations.status.sick_nodes import NOTICES

PREEMPTED = re.compile(
    r"Preempted to accommodate a workload \(UID: (\S+), JobUID: (\S+)\) due to ([^;]+);"
    r" preemptor path: ([^;\s]+)"
)
"""Message of the condition Evicted: uids of Workload and job, why, and the way to the team's queue."""
RIGHTS = {
    "prioritization in the ClusterQueue": ", which is more urgent",
    "reclamation within the cohort": ", whose team took back nodes that it is guaranteed",
    "Fair Sharing within the cohort": ", whose team has the smaller share",
    "reclamation within the cohort while borrowing": ", which is more urgent",
}
"""Kueue's words for the right of a job to the nodes of another one → ours."""
REASONS = {
    "PodsReadyTimeout": "because it did not get all its pods in time",
    "NodeFailures": "because a node failed",
    "Deactivated": "because its Workload was deactivated",
    "ClusterQueueStopped": "because the queue of its team was stopped",
    "LocalQueueStopped": "because the queue of its team was stopped",
}
"""Reason of the condition Evicted → why the job gave its nodes back. Preempted: PREEMPTED and RIGHTS."""
EVENTS = ("Preempted", "EvictedDueTo")
"""Beginnings of the reasons of Kueue's events about a Workload that loses its nodes."""
PLACED = re.compile(r"Successfully assigned \S+ to (\S+)")
"""Message of the scheduler's event about a pod."""


@dataclass(frozen=True, kw_only=True)
class Interruption:
    """Loss of nodes by a job before its end."""

    job: Job
    what: str
    """Loss in words: by whom or why, and when."""
    evictions: int
    """Number of times that Kueue took its nodes; 0 where AWS takes a node back."""
    now: str
    """State of the job since then: it waits again, or has nodes again."""

    def __str__(self) -> str:
        times = f" ({self.evictions} evictions in all)" if self.evictions > 1 else ""
        return f"{self.job} {self.what}{times}; {self.now}"


def interruptions(snapshot: Snapshot) -> list[Interruption]:
    """The last eviction of each job by Kueue, and each node of a job that AWS takes back."""
    return [*_evicted(snapshot), *_taken_back(snapshot)]


def interruptions_by_uid(snapshot: Snapshot) -> Mapping[str, tuple[Interruption, ...]]:
    """Interruptions of each job that is there, by its uid."""
    found: dict[str, tuple[Interruption, ...]] = {_uid(job): () for job in snapshot.jobs()}
    for each in interruptions(snapshot):
        found[_uid(each.job)] += (each,)
    return found


def _evicted(snapshot: Snapshot) -> Iterator[Interruption]:
    jobs = {(job.kind, job.namespace, job.name): job for job in snapshot.jobs()}
    for workload in snapshot.of("workloads"):
        job = jobs.get(job_of(workload))
        count = _count(workload)
        if job is None or not count:
            continue
        at = _at(snapshot, _evicted_at(snapshot, workload, count))
        yield Interruption(
            job=job,
            what=_what(snapshot, workload, at),
            evictions=count,
            now=_now(snapshot, job, workload),
        )


def _count(workload: Object) -> int:
    """Number of times that Kueue took the nodes of the Workload."""
    counted = sum(each.get("count", 0) for each in evictions(workload))
    return counted or int(bool(condition_of(workload, "Evicted")))


def _what(snapshot: Snapshot, workload: Object, at: str) -> str:
    """Loss of the job of a Workload, in words. `at`: the time."""
    evicted = condition_of(workload, "Evicted")
    message = evicted.get("message", "").removeprefix("Previously: ")
    if match := PREEMPTED.search(message):
        return f"was preempted{at} by {_taker(snapshot, *match.groups())}"
    reasons = [evicted.get("reason", "")] if evicted.get("status") == "True" else []
    reasons += [each["reason"] for each in reversed(evictions(workload))]
    because = next((REASONS[reason] for reason in reasons if reason in REASONS), message)
    return f"gave its nodes back{at}{because and ', '}{because}"


def _taker(snapshot: Snapshot, uid: str, job_uid: str, right: str, path: str) -> str:
    """Job that took the nodes, and its right to them. `path`: of queues, whose last one has the name of the team."""
    workloads = [each for each in snapshot.of("workloads") if each["metadata"].get("uid") == uid]
    names = [
        *(" ".join(job_of(each)[::2]) for each in workloads),
        *(f"{job.kind} {job.name}" for job in snapshot.jobs() if _uid(job) == job_uid),
    ]
    name, team = names[0] if names else "a job", path.rpartition("/")[2]
    return f"{name} of team {team}{RIGHTS.get(right, f': {right}')}"


def _evicted_at(snapshot: Snapshot, workload: Object, count: int) -> datetime | None:
    """Time at which Kueue last took its nodes. A condition of a job that has nodes again says when it got them, so
    events tell; where they are gone, the time of the only eviction."""
    evicted = condition_of(workload, "Evicted")
    if evicted.get("status") == "True":
        return datetime.fromisoformat(evicted["lastTransitionTime"])
    times = [
        at
        for event in snapshot.of("events")
        if is_about(event, workload)
        and event.get("reason", "").startswith(EVENTS)
        and (at := _time_of(event))
    ]
    requeued = condition_of(workload, "Requeued")
    if not times and count == 1 and requeued.get("status") == "True":
        return datetime.fromisoformat(requeued["lastTransitionTime"])
    return max(times, default=None)


def _now(snapshot: Snapshot, job: Job, workload: Object) -> str:
    finished, reserved = condition_of(workload, "Finished"), condition_of(workload, "QuotaReserved")
    if finished.get("status") == "True":
        return "it has ended since"
    if reserved.get("status") == "True":
        since = datetime.fromisoformat(reserved["lastTransitionTime"])
        has = "has its quota again, and is still suspended," if job.suspended else "has nodes again"
        return f"it {has}{_at(snapshot, since, 'since')}"
    waits = f"it waits again in the queue of team {workload['spec'].get('queueName', '')}"
    again = (workload["status"].get("requeueState") or {}).get("requeueAt")
    if not again:
        return waits
    return f"{waits}, not before {said(datetime.fromisoformat(again), snapshot.taken_at)}"


def _taken_back(snapshot: Snapshot) -> Iterator[Interruption]:
    """Nodes of jobs that AWS takes back, as Karpenter's events say."""
    notices = [each for each in snapshot.of("events") if each.get("reason") in NOTICES]
    placed = _placed(snapshot) if notices else {}
    seen: set[tuple[int, str]] = set()
    for event in notices:
        node, at = about(event), _time_of(event)
        if at is None:
            continue
        for job in placed.get(node, ()):
            created = datetime.fromisoformat(job.body["metadata"]["creationTimestamp"])
            if at < created or (id(job), node) in seen:
                continue
            seen.add((id(job), node))
            why = NOTICES[event["reason"]]
            yield Interruption(
                job=job,
                what=f"loses node {node}: {why}, as Karpenter heard{_at(snapshot, at)}",
                evictions=0,
                now=_on_nodes(job, node),
            )


def _on_nodes(job: Job, lost: str) -> str:
    """State of a job that loses a node."""
    if job.ended:
        return "it has ended since"
    going = [pod for pod in job.pods if pod["status"].get("phase") in ("Pending", "Running")]
    if any(pod["spec"].get("nodeName") == lost for pod in going):
        return "its pods are still there, and its gang starts anew without it"
    if not going or any(not pod["spec"].get("nodeName") for pod in going):
        return "it waits for nodes again"
    return "it has nodes again"


def _placed(snapshot: Snapshot) -> Mapping[str, tuple[Job, ...]]:
    """Node → jobs whose pods it has or had: by the pods that are there, and by the scheduler's events."""
    pods = [(job, pod["spec"].get("nodeName", "")) for job in snapshot.jobs() for pod in job.pods]
    for event in snapshot.of("events"):
        if event.get("reason") == "Scheduled" and (
            match := PLACED.search(event.get("message", ""))
        ):
            job = owner_of(event, snapshot.jobs())
            pods += [(job, match[1])] if job else []
    found: dict[str, tuple[Job, ...]] = {}
    for job, node in pods:
        if job not in found.get(node, ()):
            found[node] = (*found.get(node, ()), job)
    return found


def _uid(job: Job) -> str:
    return job.body["metadata"].get("uid", "")


def _time_of(event: Object) -> datetime | None:
    times = (event.get("lastTimestamp"), event.get("eventTime"), event.get("firstTimestamp"))
    found = next(filter(None, times), None)
    return datetime.fromisoformat(found) if found else None


def _at(snapshot: Snapshot, at: datetime | None, word: str = "at") -> str:
    return f" {word} {said(at, snapshot.taken_at)}" if at else ""
