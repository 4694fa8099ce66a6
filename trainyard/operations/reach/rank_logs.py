"""Logs of ranks that have ended."""

from __future__ import annotations

from collections.abc import Iterable

from trainyard.catalog.logs.cause import Cause, cause_of
from trainyard.catalog.logs.first_end import TAIL, End, first_to_fail
from trainyard.operations.reach.kubectl import Kubectl, Object
from trainyard.operations.reach.pods import Gangs


def cause_on(kubectl: Kubectl, namespace: str, pods: Iterable[Object]) -> Cause | None:
    """Find out why a run with these pods failed; None where no container of theirs has ended with an error."""
    return cause_of(pods, lambda end: log_of_end(kubectl, namespace, end))


def logs_of_ends(kubectl: Kubectl, gangs: Gangs) -> dict[str, str]:
    """ "namespace/pod" of the rank of each gang that failed first → the end of its log."""
    return {
        f"{namespace}/{end.pod}": log_of_end(kubectl, namespace, end)
        for (_, namespace, _), pods in gangs.items()
        if (end := first_to_fail(pods))
    }


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
