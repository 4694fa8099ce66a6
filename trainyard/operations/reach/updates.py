"""Traces of the updates of a stack: Pulumi's history, and the state beside it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime, timedelta

from trainyard.operations.reach.pulumi import Entry, pulumi

REPAIR = "trainyard repair"
"""Message of the refreshes and imports of a repair in the history."""
_UPDATES = ("update", "destroy")
"""Kinds of the history that change what exists by the program."""
_LOOKED_AT = 20
"""Entries of the history that are read."""
_SECOND = timedelta(seconds=1)


@dataclass(frozen=True, kw_only=True)
class Update:
    """An entry of the history, which has ended. The history has no update that was killed."""

    kind: str
    """Such as update, destroy, refresh or resource-import."""
    result: str
    """Such as succeeded."""
    message: str = ""
    ended: datetime
    """In whole seconds."""

    @property
    def succeeded(self) -> bool:
        return self.result == "succeeded"

    def is_older_than(self, state: Entry) -> bool:
        """True where an engine has written the state after the end of this update: the engine that a kill
        ended, or a refresh."""
        written = (state["deployment"].get("manifest") or {}).get("time")
        return bool(written) and datetime.fromisoformat(written) > self.ended + _SECOND


@dataclass(frozen=True, kw_only=True)
class History:
    """The newest entries of a stack's history, newest first."""

    entries: tuple[Update, ...]

    @property
    def last(self) -> Update | None:
        """The newest `pulumi up` or `pulumi destroy`; None where none has ended. Others, such as the refresh
        of a repair, say nothing about what an update has left."""
        return next((each for each in self.entries if each.kind in _UPDATES), None)

    @property
    def failed(self) -> bool:
        """True where the newest update failed."""
        return self.last is not None and not self.last.succeeded

    def is_open(self, state: Entry) -> bool:
        """True where an update runs, or was killed: the state has operations that have not ended, or is newer
        than all that has ended."""
        if state["deployment"].get("pending_operations"):
            return True
        if not self.entries:
            return bool(state["deployment"].get("resources"))
        return self.entries[0].is_older_than(state)

    def is_repaired(self, state: Entry) -> bool:
        """True where a repair has read what the last update left, and none has begun since."""
        after = self.entries[: self.entries.index(self.last)] if self.last else self.entries
        read = any(each.message == REPAIR and each.succeeded for each in after)
        return read and not self.is_open(state)


def history_of(stack: str) -> History:
    """The newest entries of a stack's history."""
    asked = ("stack", "history", "--json", "--page-size", str(_LOOKED_AT))
    return History(
        entries=tuple(
            Update(
                kind=each.get("kind", ""),
                result=each.get("result", ""),
                message=each.get("message", ""),
                ended=datetime.fromisoformat(each["endTime"]),
            )
            for each in json.loads(pulumi(stack, *asked) or "[]")
        )
    )
