"""Logs of ranks that have ended."""

from __future__ import annotations

from collections.abc import Iterable

from trainyard.catalog.logs.cause import TAIL, Cause, cause_of
from trainyard.catalog.logs.first_end import End, first_to_fail
from trainyard.operations.reach.kubectl import Kubectl, Object


def cause_on(kubectl: Kubectl, namespace: str, pods: Iterable[Object]) -> Cause | None:
    """Find out why a run with these pods failed; None where no container of theirs has ended with an error."""
    return cause_of(pods, lambda end: log_of_end(kubectl, namespace, end))


def logs_of_ends(
    kubectl: Kubectl, pods: list[Object], jobs: list[tuple[str, str]]
) -> dict[str, str]:
    """ "namespace/pod" of the rank of each of these jobs that failed first → the end of its log."""
    ends: dict[str, str] = {}
    for namespace, selector in jobs:
        label, _, name = selector.partition("=")
        own = [
            pod
            for pod in pods
            if pod["metadata"]["namespace"] == namespace
            and pod["metadata"].get("labels", {}).get(label) == name
        ]
        if end := first_to_fail(own):
            ends[f"{namespace}/{end.pod}"] = log_of_end(kubectl, namespace, end)
    return ends


def log_of_end(kubectl: Kubectl, namespace: str, end: End) -> str:
    """The end of the log of a rank that has ended; empty where there is none any more."""
    previous = ["--previous"] if end.previous else []
    try:
        return kubectl(
            *("logs", end.pod, f"--namespace={namespace}", f"--container={end.container}"),
            *(f"--tail={TAIL}", *previous),
        )
    except RuntimeError:
        return ""
