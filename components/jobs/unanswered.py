"""A cluster that does not answer while `up` waits, such as to credentials that have expired: it is said, and ends a
wait that nothing else would end."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

SECONDS = 60.0
"""After which it is said: an API server may be away for a moment."""
MINUTES = 30.0
"""After which it ends a wait without a limit of its own."""
LINES = 3
"""Last lines shown of an error: that of `aws` stands before that of kubectl."""
_OF_LOGS = re.compile(r"[IWEF]\d{4} ")
"""Begins lines that kubectl logs for its authors (k8s.io/klog), five for one error."""


class NotAnswered(RuntimeError):
    """The cluster has not answered for MINUTES; the message says why."""


class Answers:
    """Answers of a cluster to a wait, look by look: how long none has come."""

    def __init__(
        self, what: str, ask: Callable[[], str], say: Callable[[str], object], *, ends: bool
    ) -> None:
        """`what`: is waited for. `ask`: asks once more, and returns the error. `ends`: the wait ends after MINUTES."""
        self._what, self._ask, self._say, self._ends = what, ask, say, ends
        self._last, self._said = time.monotonic(), False

    def look(self, *, answered: bool) -> None:
        """Note a look. Raises NotAnswered."""
        if answered:
            self._last, self._said = time.monotonic(), False
            return
        silent = time.monotonic() - self._last
        if self._ends and silent >= MINUTES * 60:
            raise NotAnswered(
                f"the cluster has not answered for {MINUTES:g} minutes: {_in_short(self._ask())}. Fix: if your"
                " credentials have expired, log in again; then run `pulumi up` again, which goes on"
            )
        if not self._said and silent >= SECONDS:
            self._said = True
            self._say(
                f"{self._what}: the cluster has not answered for {silent:.0f} seconds: {_in_short(self._ask())}. If"
                " your credentials have expired, log in again in another terminal, such as with `aws sso login`, and"
                " this update goes on"
            )


def _in_short(error: str) -> str:
    """The last lines of an error."""
    lines = [line.strip() for line in error.splitlines() if not _OF_LOGS.match(line)]
    return "; ".join([line.rstrip(".") for line in lines if line][-LINES:]) or "it says nothing"
