"""Jobs that have some of their pods, because the others would exceed the share of their namespace: its
ResourceQuota."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trainyard.catalog.logs.events import owner_of
from trainyard.operations.reach.snapshot import Job, Snapshot
from trainyard.operations.status.finding import Finding
from trainyard.operations.status.job_causes import stop_command

EXCEEDED = re.compile(
    r"exceeded quota: [^,]+, requested: \S*?=(\S+), used: (\S+?)=(\S+), limited: \S*?=(\S+)"
)
"""Message of the API server 1.35 about a pod beyond a ResourceQuota (resource_quota admission)."""


def exceeded(snapshot: Snapshot) -> Iterator[Finding]:
    """Each job that waits for a part of its pods. A job without pods is one of `failed_jobs`."""
    for job in snapshot.jobs():
        refused = _refused(snapshot, job)
        if refused is None or job.ended or not 0 < len(job.pods) < job.nodes:
            continue
        requested, resource, used, limit = refused
        yield Finding(
            what=(
                f"{job} has {len(job.pods)} of {job.nodes} pods: the next one would exceed the share"
                f" of namespace {job.namespace}"
            ),
            why=(
                f"{resource}: {used} of {limit} are requested, and the pod requests {requested}. The"
                " pods that run wait for the others, and their nodes are paid for"
            ),
            do=(
                f"wait until another job of the namespace ends, end this one ({stop_command(snapshot, job)}), or"
                " raise max_gpus of the team"
            ),
        )


def _refused(snapshot: Snapshot, job: Job) -> tuple[str, ...] | None:
    """Request, resource, use and limit of the last refused pod."""
    events = [
        match.groups()
        for event in snapshot.of("events")
        if (match := EXCEEDED.search(event.get("message", "")))
        and owner_of(event, snapshot.jobs()) is job
    ]
    return events[-1] if events else None
