"""One sentence about why a run failed: the same in `up`, `status`, `logs`, `runs` and in messages of `told`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from trainyard.catalog.logs.first_end import End, Object, first_to_fail
from trainyard.catalog.logs.known_failures import KNOWN, NO_LOG
from trainyard.catalog.logs.last_error import reason_of, sentence

TAIL = 600
"""Lines of a log that are read: the summary of torchrun has 7 lines for each rank of a node."""


@dataclass(frozen=True)
class Cause:
    """The reason why a run failed."""

    sentence: str
    do: str
    """Advice; empty where none is known."""
    shown: tuple[str, ...] = ()
    """Lines of the log that end with the one that says why."""


def cause_of(pods: Iterable[Object], log_of: Callable[[End], str]) -> Cause | None:
    """Find out why the pods of a run failed; None where no container of theirs has ended with an error."""
    end = first_to_fail(pods)
    return cause_of_end(end, log_of(end)) if end else None


def cause_of_end(end: End | None, log: str) -> Cause:
    """Find out why a rank ended. None: its pod is gone. `log`: empty where there is none."""
    code, ended = (end.code, end.reason) if end else (None, "")
    reason = reason_of(log, KNOWN, code, ended)
    do = "; ".join(filter(None, (reason.do, "" if reason.line else NO_LOG)))
    return Cause(sentence(end, reason), do, tuple(reason.shown))
