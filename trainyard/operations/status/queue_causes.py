"""Causes why a job waits in the queue of its team: which quota it lacks, who holds it, since when,
and when at the latest the job starts.

What Kueue says of it: conditions of the job's Workload (Kueue 0.16.2, pkg/scheduler/flavorassigner and
pkg/workload).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from trainyard.catalog.job_kinds import time_limit
from trainyard.catalog.logs.symptoms import GRACE_SECONDS
from trainyard.catalog.quantities import amount
from trainyard.catalog.workloads import job_of
from trainyard.objects.jobs.pod_template import GPU
from trainyard.objects.programs.dispatch import CHECK
from trainyard.objects.programs.gangs import AGAIN, TRIES
from trainyard.operations.reach.snapshot import Object, Snapshot, condition_of
from trainyard.operations.status.finding import Finding, said
from trainyard.operations.status.upgrade import jobs_left_behind

LACKS = re.compile(r"insufficient unused quota for \S+ in flavor (\S+), (\d+) more needed")
NEVER = re.compile(r"insufficient quota for \S+ in flavor (\S+),.*?maximum capacity \((\d+)\)")
EVICTED = {
    "Preempted": "it was stopped for a job with the right to its nodes",
    "PodsReadyTimeout": "it did not get all its pods in time and gave its nodes back",
}
"""Reason of the condition Evicted → what happened."""
HALF = "a part of its pods ran without the others, and it gave its nodes back"


def waiting_jobs(snapshot: Snapshot) -> Iterator[Finding]:
    """Jobs that their queue has not started, and can start."""
    left = {(job.kind, job.namespace, job.name) for job in jobs_left_behind(snapshot)}
    for workload in snapshot.of("workloads"):
        seconds = snapshot.age(workload)
        if seconds < GRACE_SECONDS or not _owner(workload) or _is(workload, "Finished"):
            continue
        if job_of(workload) in left:
            continue
        if _is(workload, "QuotaReserved"):
            yield from _handed_on(workload)
        else:
            since = queued_since(workload)
            yield Finding(
                what=(
                    f"{_owner(workload)} waits in the queue of team"
                    f" {workload['spec'].get('queueName', '')} since"
                    f" {said(since, snapshot.taken_at)} ({(snapshot.taken_at - since).total_seconds():.0f} s)"
                ),
                **_why(snapshot, workload),
            )


def _handed_on(workload: Object) -> Iterator[Finding]:
    """A job that has its quota and that no worker has taken yet."""
    checks = workload.get("status", {}).get("admissionChecks", [])
    if any(each["name"] == CHECK and each["state"] in ("Pending", "Retry") for each in checks):
        yield Finding(
            what=(
                f"{_owner(workload)} waits in the queue of team"
                f" {workload['spec'].get('queueName', '')} for a worker with all its nodes free"
            ),
            why="no environment of queues.workers has taken it, or none is reached",
            do="run trainyard status of each worker; kubectl get multikueueclusters says which are reached",
        )


def _stopped(snapshot: Snapshot, workload: Object) -> dict[str, str]:
    """Reasons why a job waits whose Workload is deactivated: by trainyard/in_cluster/gangs, or by a
    person."""
    meta, notes = workload["metadata"], _notes(workload)
    if again := notes.get(AGAIN):
        at = said(datetime.fromisoformat(again), snapshot.taken_at)
        return {
            "why": f"{HALF} (try {notes.get(TRIES, '1')})",
            "do": f"its next try begins by itself at {at}",
        }
    return {
        "why": "somebody has deactivated its Workload (active: false)",
        "do": (
            f"an admin of the cluster activates it: kubectl -n {meta['namespace']} patch workload"
            f""" {meta["name"]} --type=merge -p '{{"spec": {{"active": true}}}}'"""
        ),
    }


def _why(snapshot: Snapshot, workload: Object) -> dict[str, str]:
    if not workload["spec"].get("active", True):
        return _stopped(snapshot, workload)
    message = condition_of(workload, "QuotaReserved").get("message", "")
    half = HALF if TRIES in _notes(workload) else ""
    before = EVICTED.get(condition_of(workload, "Evicted").get("reason", ""), half)
    if never := _never(message):
        pool, most = never
        return {
            "why": f"it never starts: the team can have at most {most} GPUs of pool {pool}",
            "do": f"write fewer nodes; or raise in the environment what limits them, max_nodes of"
            f" pool {pool} or of the team",
        }
    if match := LACKS.search(message):
        pool, lacking = match.groups()
        held = "; ".join([*_holders(snapshot, pool), *_hidden(snapshot)]) or "other jobs hold them"
        return {
            "why": f"{before}{before and '; '}pool {pool} has {lacking} GPUs too few for it: {held}",
            "do": (
                f"it starts by itself when they are free, {_at_the_latest(snapshot, workload, pool)}"
                f"{'; urgency: high puts it before others of its team' * _has_rivals(snapshot, workload)}"
            ),
        }
    return {
        "why": f"{before}{before and '; '}{message or 'Kueue has not looked at it yet'}",
        "do": "kubectl -n kueue-system logs -l app.kubernetes.io/name=kueue --tail=50",
    }


def _never(message: str) -> tuple[str, str] | None:
    """Pool and GPUs of it that are the most a team can have, where some pods of a job fit none. Kueue names every
    pool that they could have (0.16.9 and 0.19.2, flavorassigner.go, Assignment.Message)."""
    for pods in message.split("; "):
        if not LACKS.search(pods) and (found := NEVER.findall(pods)):
            pool, most = max(found, key=lambda each: int(each[1]))
            return pool, most
    return None


def _has_rivals(snapshot: Snapshot, workload: Object) -> bool:
    """True where other jobs of the team wait in the same queue, before which it could come."""
    own = workload["metadata"]
    return any(
        each["spec"].get("queueName") == workload["spec"].get("queueName")
        and each["metadata"]["namespace"] == own["namespace"]
        and each["metadata"]["name"] != own["name"]
        and not (_is(each, "QuotaReserved") or _is(each, "Finished"))
        for each in snapshot.of("workloads")
    )


def _at_the_latest(snapshot: Snapshot, workload: Object, pool: str) -> str:
    """When it starts, as far as it can be known. All GPUs of the pool are free when the time limit of the
    last holder is over; whoever waits for them, too, can get them first."""
    if others := [*_others_waiting(snapshot, workload, pool), *_hidden(snapshot)]:
        return f"and no time is known: {', '.join(others)}"
    ends = {_owner(each): _end(snapshot, each) for each, _ in _holding(snapshot, pool)}
    if endless := [job for job, end in ends.items() if end is None]:
        return f"and no time is known: time_limit_minutes is not set for {', '.join(endless)}"
    limited = {job: end for job, end in ends.items() if end}
    if not limited:
        return "and no time is known: nobody can be seen who holds them"
    last = max(limited, key=limited.__getitem__)
    return (
        f"at {said(limited[last], snapshot.taken_at)} at the latest, when the time limit of {last} is over, if no other"
        " job comes first"
    )


def _hidden(snapshot: Snapshot) -> tuple[str, ...]:
    """That a team sees its own jobs only."""
    return ("jobs of other teams are not shown",) if "nodes" in snapshot.unseen else ()


def _others_waiting(snapshot: Snapshot, workload: Object, pool: str) -> Iterator[str]:
    """Jobs that wait for GPUs of the pool and can get them earlier: of the own team those before
    it, and smaller ones, because Kueue starts whatever fits (BestEffortFIFO); of other teams all,
    because their guarantees decide and not their order."""
    team, own = workload["spec"].get("queueName", ""), _lacking(workload, pool)
    for each in snapshot.of("workloads"):
        lacking = _lacking(each, pool)
        if each is workload or not lacking or _is(each, "Finished"):
            continue
        theirs = each["spec"].get("queueName", "")
        if theirs != team:
            yield f"{_owner(each)} of team {theirs} waits for them, too"
        elif _turn(each) < _turn(workload):
            yield f"{_owner(each)} goes first"
        elif lacking < own:
            yield f"{_owner(each)} needs fewer and can pass it"


def _lacking(workload: Object, pool: str) -> int:
    """GPUs of the pool that a waiting job lacks; 0 where it waits for none of them."""
    reserved = condition_of(workload, "QuotaReserved")
    lacks = LACKS.search(reserved.get("message", ""))
    waits = lacks and lacks[1] == pool and reserved.get("status") != "True"
    return int(lacks[2]) if lacks and waits else 0


def _turn(workload: Object) -> tuple[int, datetime]:
    """Its place in the queue of its team: the most urgent first, then who has waited longest."""
    return -workload["spec"].get("priority", 0), queued_since(workload)


def _end(snapshot: Snapshot, workload: Object) -> datetime | None:
    """When its time limit ends a job that has started; None where it has none, or cannot be seen."""
    for job in snapshot.jobs():
        if (
            _owner(workload) == f"{job.kind} {job.name}"
            and job.namespace == workload["metadata"]["namespace"]
        ):
            limit = time_limit(job.kind, job.body)
            return _held_since(workload) + timedelta(seconds=limit) if limit else None
    return None


def _holding(snapshot: Snapshot, pool: str) -> Iterator[tuple[Object, int]]:
    """Workloads that hold GPUs of a pool, and how many."""
    for workload in snapshot.of("workloads"):
        if not _is(workload, "QuotaReserved") or _is(workload, "Finished"):
            continue
        given = workload["status"].get("admission", {}).get("podSetAssignments", [])
        gpus = sum(
            int(amount(each.get("resourceUsage", {}).get(GPU, "0")) or 0)
            for each in given
            if each.get("flavors", {}).get(GPU) == pool
        )
        if gpus:
            yield workload, gpus


def _holders(snapshot: Snapshot, pool: str) -> Iterator[str]:
    """Holders of GPUs of a pool, how many, and since when, as text."""
    for workload, gpus in _holding(snapshot, pool):
        team = workload["spec"].get("queueName", "")
        since = said(_held_since(workload), snapshot.taken_at)
        yield f"{_owner(workload)} of team {team} has {gpus} since {since}"


def _held_since(workload: Object) -> datetime:
    return _time(condition_of(workload, "QuotaReserved"))


def queued_since(workload: Object) -> datetime:
    """Time at which the Workload last went to its queue."""
    evicted = condition_of(workload, "Evicted")
    if evicted.get("status") == "True" or evicted.get("reason") in EVICTED:
        return _time(evicted)
    return datetime.fromisoformat(workload["metadata"]["creationTimestamp"])


def _notes(workload: Object) -> Mapping[str, str]:
    return workload["metadata"].get("annotations") or {}


def _owner(workload: Object) -> str:
    kind, _, name = job_of(workload)
    return f"{kind} {name}".strip()


def _is(workload: Object, name: str) -> bool:
    return condition_of(workload, name).get("status") == "True"


def _time(condition: Object) -> datetime:
    return datetime.fromisoformat(condition["lastTransitionTime"])
