"""One sentence about why a run failed: the same in `up`, `status`, `logs`, `runs` and in messages of `told`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace

from trainyard.catalog.logs.first_end import End, Object, first_to_fail, newer
from trainyard.catalog.logs.known_failures import KNOWN, NO_LOG
from trainyard.catalog.logs.last_error import LOST, UNTOLD, Reason, reason_of, sentence


@dataclass(frozen=True)
class Cause:
    """The reason why a run failed."""

    sentence: str
    do: str
    """Advice; empty where none is known."""
    shown: tuple[str, ...] = ()
    """Lines of the log that end with the one that says why."""

    @property
    def is_told(self) -> bool:
        """True where a log, or how the container ended, tells why."""
        return UNTOLD not in self.sentence

    @property
    def is_loss(self) -> bool:
        """True where the rank ended because another one, or its pod, had ended before."""
        return any(LOST.search(line) for line in self.shown[-1:])


def most_told(*causes: Cause | None) -> Cause | None:
    """The first of these causes that tells why; the first one where none does, and None where there is none."""
    known = [each for each in causes if each]
    return next((each for each in known if each.is_told), known[0] if known else None)


class Watched:
    """The rank of a run that failed first, from look to look: at the next one its pod may be gone."""

    def __init__(self) -> None:
        self.end: End | None = None
        """None: in the last attempt no container has ended with an error yet."""
        self.cause: Cause | None = None
        self._earlier: Cause | None = None

    @property
    def known(self) -> Cause | None:
        """The cause, or that of an earlier try where the last one went before anybody read its log."""
        if self.cause or not self._earlier:
            return self.cause
        said = self._earlier.sentence
        return replace(
            self._earlier, sentence=f"the log of its last try was not read; before, {said}"
        )

    def look(self, pods: Iterable[Object], log_of: Callable[[End], str]) -> bool:
        """Look at the pods that are there. Returns whether something new is known."""
        every = [*pods]
        created = {pod["metadata"].get("creationTimestamp", "") for pod in every}
        if self.end and max(created, default="") > self.end.at:
            self._earlier = self.cause or self._earlier
            self.end = self.cause = None  # the gang has started anew
        found, there = first_to_fail(every), {pod["metadata"].get("uid", "") for pod in every}
        if not found or not self._counts(found, there):
            return False
        cause = cause_of_end(found, log_of(found))
        if self.end and self.end.uid == found.uid and not cause.shown:
            return False  # its log went before
        self.end, self.cause = found, cause
        return True

    def _counts(self, found: End, there: Collection[str]) -> bool:
        """True where `found` is the first end, a better one than the known one, or one without a log."""
        if self.end is None or self.cause is None:
            return True
        return newer(found, self.end, there) or (self.end.uid in there and not self.cause.shown)


def cause_of(pods: Iterable[Object], log_of: Callable[[End], str]) -> Cause | None:
    """Find out why the pods of a run failed; None where no container of theirs has ended with an error."""
    end = first_to_fail(pods)
    return cause_of_end(end, log_of(end)) if end else None


def cause_of_logs(logs: Iterable[tuple[End, str]]) -> Cause | None:
    """Find out why a gang ended whose pods are gone, from the last lines that each of its ranks wrote; None where
    no rank wrote an error. A rank that only lost another one does not say why that one ended."""
    for end, log in sorted(logs, key=lambda each: each[0].rank):
        reason = reason_of(log, KNOWN, end.code, end.reason)
        cause = _cause(end, reason)
        if reason.is_error and not cause.is_loss:
            return cause
    return None


def cause_of_end(end: End | None, log: str) -> Cause:
    """Find out why a rank ended. None: its pod is gone. `log`: empty where there is none."""
    if end is None:
        return _cause(end, reason_of(log, KNOWN))
    return _cause(end, reason_of(log, KNOWN, end.code, end.reason, end.said))


def _cause(end: End | None, reason: Reason) -> Cause:
    do = "; ".join(filter(None, (reason.do, "" if reason.line else NO_LOG)))
    return Cause(sentence(end, reason), do, tuple(reason.shown))
