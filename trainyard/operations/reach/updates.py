"""Traces of the updates of a stack: Pulumi's history, and the state beside it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from trainyard.operations.reach.pulumi import Entry, pulumi

REPAIR = "trainyard repair"
"""Message of the refreshes and imports of a repair in the history."""
_UPDATES = ("update", "destroy")
"""Kinds of the history that change what exists by the program."""
_LOOKED_AT = 20
"""Entries of the history that are read."""
_SECOND = timedelta(seconds=1)
_SECTIONS = {"trainyard:environment", "trainyard:team"}
"""Configuration of this program."""
_ANY_TIME = "9999-12-31T00:00:00Z"
"""Time of an object whose state has none: it may have changed at any time."""
_BEFORE_ALL = 2
"""Resources that this program registers before the component of its first object: the stack and the provider of
the account. Pulumi counts no default provider and no operation that failed."""


@dataclass(frozen=True, kw_only=True)
class Update:
    """An entry of the history. A state in files or in S3 has no update that goes on or was killed. Pulumi Cloud has it,
    as in-progress and without its end (pulumi 3.259, pkg/cmd/pulumi/stack/stack_history.go)."""

    kind: str
    """Such as update, destroy, refresh or resource-import."""
    result: str
    """Such as succeeded."""
    message: str = ""
    ended: datetime | None
    """In whole seconds; None of one that has not ended."""
    registered: Mapping[str, int] | None = None
    """Operation, such as create or same → number of resources; None where the history does not tell."""
    sections: frozenset[str] = field(default=frozenset())
    """Keys of _SECTIONS that its configuration had."""

    @property
    def succeeded(self) -> bool:
        return self.result == "succeeded"

    @property
    def refused(self) -> bool:
        """True where this program ended the update before its first object, as for a stack file with errors or a
        role that is missing. Of other programs nobody knows in which order they make objects."""
        if self.kind != "update" or self.succeeded or not self.sections or self.registered is None:
            return False
        return 0 < sum(self.registered.values()) <= _BEFORE_ALL

    def is_older_than(self, state: Entry) -> bool:
        """True where an engine has written the state after the end of this update: the engine that a kill
        ended, or a refresh."""
        written = (state["deployment"].get("manifest") or {}).get("time")
        return self._is_before(written)

    def is_older_than_objects(self, state: Entry) -> bool:
        """True where the state has an object that was made or changed after the end of this update."""
        return any(map(self._is_before, _times(state)))

    def _is_before(self, moment: str | None) -> bool:
        if not moment or self.ended is None:
            return False
        return datetime.fromisoformat(moment) > self.ended + _SECOND


@dataclass(frozen=True, kw_only=True)
class History:
    """The newest entries of a stack's history, newest first."""

    entries: tuple[Update, ...]

    @property
    def goes_on(self) -> bool:
        """True where the newest entry has not ended. None begins while another goes on, so an older one was killed."""
        return bool(self.entries) and self.entries[0].ended is None

    @property
    def last(self) -> Update | None:
        """The newest `pulumi up` or `pulumi destroy` that has begun with its objects; None where none has ended.
        Others, such as the refresh of a repair and an update that was refused, say nothing about what an update
        has left."""
        return next(
            (
                each
                for each in self.entries
                if each.kind in _UPDATES and each.ended and not each.refused
            ),
            None,
        )

    @property
    def failed(self) -> bool:
        """True where the newest update failed that was not refused."""
        return self.last is not None and not self.last.succeeded

    @property
    def refreshed(self) -> datetime | None:
        """Time of a refresh that has written into the state what somebody had changed, where no update has succeeded
        since: the state then has it as if an update had left it."""
        for each in self.entries:
            if each.kind in _UPDATES and each.succeeded:
                return None
            if each.kind == "refresh" and each.succeeded and each.message != REPAIR:
                counts = each.registered or {}
                if counts.get("update") or counts.get("delete"):
                    return each.ended
        return None

    @property
    def ends_refused(self) -> bool:
        """True where the newest entry is an update that was refused."""
        return bool(self.entries) and self.entries[0].refused

    def is_settled(self, state: Entry) -> bool:
        """True where the last update succeeded, or none has begun, and none was killed after it."""
        if self.goes_on:
            return False
        if self.last is None:
            begun = any(True for _ in _times(state))
            return self.ends_refused and not begun and not self.entries[0].is_older_than(state)
        if not self.ends_refused:
            return self.last.succeeded and not self.last.is_older_than(state)
        # What was refused has written the state anew. So the times of the objects tell of a kill before it.
        overtaken = self.entries[0].is_older_than(state) or self.last.is_older_than_objects(state)
        return self.last.succeeded and not overtaken

    def is_open(self, state: Entry) -> bool:
        """True where an update runs, or was killed: the state has operations that have not ended, or is newer
        than all that has ended."""
        if self.goes_on or state["deployment"].get("pending_operations"):
            return True
        if not self.entries:
            return bool(state["deployment"].get("resources"))
        return self.entries[0].is_older_than(state)

    def is_repaired(self, state: Entry) -> bool:
        """True where a repair has read what the last update left, and none has begun since."""
        after = self.entries[: self.entries.index(self.last)] if self.last else self.entries
        by_repair = next((it for it in after if it.message == REPAIR and it.succeeded), None)
        if by_repair is None or self.is_open(state):
            return False
        return not (self.ends_refused and by_repair.is_older_than_objects(state))


def _times(state: Entry) -> Iterator[str]:
    """The time of the last change of each component and object, which the stack itself and providers are not."""
    for each in state["deployment"].get("resources") or []:
        if not each.get("type", "").startswith("pulumi:"):
            yield each.get("modified") or each.get("created") or _ANY_TIME


def history_of(stack: str) -> History:
    """The newest entries of a stack's history."""
    asked = ("stack", "history", "--json", "--page-size", str(_LOOKED_AT))
    return History(
        entries=tuple(
            Update(
                kind=each.get("kind", ""),
                result=each.get("result", ""),
                message=each.get("message", ""),
                ended=datetime.fromisoformat(each["endTime"]) if each.get("endTime") else None,
                registered=each.get("resourceChanges"),
                sections=frozenset(_SECTIONS & (each.get("config") or {}).keys()),
            )
            for each in json.loads(pulumi(stack, *asked) or "[]")
        )
    )
