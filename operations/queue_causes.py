"""Why a job waits in the queue of its team: which quota it lacks, who holds it, and since when.

What Kueue says of it: conditions of the job's Workload (Kueue 0.16.2, pkg/scheduler/flavorassigner and
pkg/workload).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime

from catalog.quantities import amount
from operations.snapshot import Object, Snapshot, condition_of
from operations.symptoms import GRACE_SECONDS, Finding
from plans.dispatch import CHECK

LACKS = re.compile(r"insufficient unused quota for \S+ in flavor (\S+), (\d+) more needed")
NEVER = re.compile(r"insufficient quota for \S+ in flavor (\S+),.*maximum capacity \((\d+)\)")
GPU = "nvidia.com/gpu"
EVICTED = {
    "Preempted": "it was stopped for a job with the right to its nodes",
    "PodsReadyTimeout": "it did not get all its pods in time and gave its nodes back",
}
"""Reason of the condition Evicted → what happened."""


def waiting_jobs(snapshot: Snapshot) -> Iterator[Finding]:
    """Jobs that their queue has not started."""
    for workload in snapshot.of("workloads"):
        seconds = snapshot.age(workload)
        if seconds < GRACE_SECONDS or not _owner(workload) or _is(workload, "Finished"):
            continue
        if _is(workload, "QuotaReserved"):
            yield from _handed_on(workload)
        else:
            since = _since(workload)
            yield Finding(
                what=(
                    f"{_owner(workload)} waits in the queue of team"
                    f" {workload['spec'].get('queueName', '')} since {since:%H:%M:%S}"
                    f" ({(snapshot.taken_at - since).total_seconds():.0f} s)"
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
            do="run make status of each worker; kubectl get multikueueclusters says which are reached",
        )


def _why(snapshot: Snapshot, workload: Object) -> dict[str, str]:
    message = condition_of(workload, "QuotaReserved").get("message", "")
    before = EVICTED.get(condition_of(workload, "Evicted").get("reason", ""), "")
    if match := NEVER.search(message):
        pool, most = match.groups()
        return {
            "why": f"it never starts: the team can have at most {most} GPUs of pool {pool}",
            "do": f"write fewer nodes, or raise the team's max_nodes of {pool}",
        }
    if match := LACKS.search(message):
        pool, lacking = match.groups()
        held = "; ".join(_holders(snapshot, pool)) or "other jobs hold them"
        return {
            "why": f"{before}{before and '; '}pool {pool} has {lacking} GPUs too few for it: {held}",
            "do": "it starts by itself when they are free; urgency: high puts it before others of its team",
        }
    return {
        "why": f"{before}{before and '; '}{message or 'Kueue has not looked at it yet'}",
        "do": "kubectl -n kueue-system logs -l app.kubernetes.io/name=kueue --tail=50",
    }


def _holders(snapshot: Snapshot, pool: str) -> list[str]:
    """Who holds GPUs of a pool, how many, and since when."""
    held: list[str] = []
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
            since = _time(condition_of(workload, "QuotaReserved"))
            team = workload["spec"].get("queueName", "")
            held.append(f"{_owner(workload)} of team {team} has {gpus} since {since:%H:%M:%S}")
    return held


def _since(workload: Object) -> datetime:
    """When it last went to its queue."""
    evicted = condition_of(workload, "Evicted")
    if evicted.get("status") == "True" or evicted.get("reason") in EVICTED:
        return _time(evicted)
    return datetime.fromisoformat(workload["metadata"]["creationTimestamp"])


def _owner(workload: Object) -> str:
    owners = workload["metadata"].get("ownerReferences", [])
    return f"{owners[0]['kind']} {owners[0]['name']}" if owners else ""


def _is(workload: Object, name: str) -> bool:
    return condition_of(workload, name).get("status") == "True"


def _time(condition: Object) -> datetime:
    return datetime.fromisoformat(condition["lastTransitionTime"])
