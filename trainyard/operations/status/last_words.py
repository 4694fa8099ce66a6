"""Ends of the ranks of a job that failed or that keeps crashing: their exit codes, and what they
logged last."""

from __future__ import annotations

from trainyard.operations.reach.pods import container_statuses, full_name
from trainyard.operations.reach.snapshot import Job, Snapshot, about
from trainyard.operations.status.symptoms import CRASHES, EXITS, read

OUT_OF_MEMORY = "OOMKilled"
"""Reason of a container that the kernel killed because its pod had no more memory."""


def why_it_ended(snapshot: Snapshot, job: Job, otherwise: str) -> tuple[str, str]:
    """The cause, and what to do: `otherwise` where nothing tells more."""
    if OUT_OF_MEMORY in _reasons(job):
        return (
            f"its pods have too little memory: the kernel killed a rank ({OUT_OF_MEMORY})",
            "raise memory_gib of the job, or lower the number of its data loaders",
        )
    for pod in job.pods:
        log = snapshot.logs.get(full_name(pod), "")
        why, do = read(CRASHES, log, "", namespace=job.namespace, job=job.selector)
        if do:
            return why, do
    return _last_output(snapshot, job), otherwise


def _reasons(job: Job) -> set[str]:
    """Reasons why its containers ended, those before the last restart included."""
    return {
        state["terminated"].get("reason", "")
        for pod in job.pods
        for status in container_statuses(pod)
        for state in (status.get("state", {}), status.get("lastState", {}))
        if "terminated" in state
    }


def _last_output(snapshot: Snapshot, job: Job) -> str:
    """The exit code of its pods and the last line of their logs, as far as they are known."""
    code = next((code for code in _exit_codes(snapshot, job) if code), None)
    logs = [snapshot.logs.get(full_name(pod), "").strip() for pod in job.pods]
    line = next((log.splitlines()[-1] for log in logs if log), None)
    parts = [f"exit code {code}: {EXITS.get(code, 'an error of the program')}"] if code else []
    parts += [f"last log line: {line}"] if line else []
    return "; ".join(parts) or "no log and no exit code tells the reason"


def _exit_codes(snapshot: Snapshot, job: Job) -> list[int]:
    """Exit codes of the containers that exist; then those of the last pod that the controller has
    deleted."""
    states = [
        state
        for pod in job.pods
        for status in container_statuses(pod)
        for state in (status["state"], status.get("lastState", {}))
    ]
    deleted = [
        event["message"]
        for event in snapshot.of("events")
        if event.get("reason") == "ExitedWithCode" and about(event) == job.name
    ]
    return [
        *(state["terminated"]["exitCode"] for state in states if "terminated" in state),
        *(int(message.rpartition(" ")[2]) for message in deleted[-1:]),
    ]
