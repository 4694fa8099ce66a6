"""Reasons why jobs fail or keep crashing: the sentence of trainyard/catalog/logs/cause.py, from a snapshot."""

from __future__ import annotations

import re

from trainyard.catalog.job_kinds import JOB_KINDS
from trainyard.catalog.logs.cause import Cause, cause_of_end
from trainyard.catalog.logs.events import is_about
from trainyard.catalog.logs.first_end import End, first_to_fail
from trainyard.catalog.logs.noted import noted
from trainyard.operations.reach.pods import full_name
from trainyard.operations.reach.snapshot import Job, Snapshot

DELETED_POD = re.compile(r"-(master|worker)-(\d+) exited with code (\d+)$")
"""End of the message of an ExitedWithCode event: training-operator v1.8.1, its pod.go."""


def why_it_ended(snapshot: Snapshot, job: Job, otherwise: str) -> tuple[str, str]:
    """The cause, and what to do: `otherwise` where nothing is known of the cause, or no log is there."""
    cause = cause_of_job(snapshot, job)
    if cause.shown:
        return cause.sentence, cause.do or otherwise
    return cause.sentence, "; ".join(filter(None, (cause.do, otherwise)))


def cause_of_job(snapshot: Snapshot, job: Job) -> Cause:
    """Find out why a job failed, as far as the snapshot knows it. The log of another rank counts where it says more
    than that this rank was lost, and where no pod tells why, what the update has noted that waited for the run."""
    there = first_to_fail(job.pods)
    end = there or _deleted(snapshot, job)
    cause = cause_of_end(end, _log(snapshot, f"{job.namespace}/{end.pod}") if end else "")
    if cause.shown and cause.do and not cause.is_loss:
        return cause
    others = _of_all_logs(snapshot, job, end)
    told = [each for each in others if each.do and not each.is_loss]
    found = next(iter(told or ([cause] if end else others)), cause)
    known = noted(job.body)
    if known and not told and (there is None or not found.is_told):
        return known
    return found


def _of_all_logs(snapshot: Snapshot, job: Job, end: End | None) -> list[Cause]:
    logs = (_log(snapshot, full_name(pod)) for pod in job.pods)
    return [cause_of_end(end, log) for log in logs if log]


def _log(snapshot: Snapshot, pod: str) -> str:
    """The end of the log of the rank that failed first; of other pods, their last lines."""
    return snapshot.ends.get(pod) or snapshot.logs.get(pod, "")


def _deleted(snapshot: Snapshot, job: Job) -> End | None:
    """The end of the last pod of a PyTorchJob that its controller has deleted; None where no event is left."""
    said = [
        match
        for event in snapshot.of("events")
        if event.get("reason") == "ExitedWithCode" and is_about(event, job.body)
        if (match := DELETED_POD.search(event["message"]))
    ]
    if not said:
        return None
    role, number, code = said[-1].groups()
    behind = role == "worker" and "Master" in job.body["spec"].get(JOB_KINDS[job.kind].replicas, {})
    return End(
        pod=f"{job.name}-{role}-{number}",
        uid="",
        container="",
        node="",
        rank=int(number) + behind,
        at="",
        created="",
        code=int(code),
    )
