"""A problem as `status` prints it, with its times, and an object as `drift` does."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A diagnosis: what is wrong, why, and what to do."""

    what: str
    why: str
    do: str

    def __str__(self) -> str:
        return f"{self.what}\n    {self.why}\n    → {self.do}"


@dataclass(frozen=True, kw_only=True)
class Drift:
    """An object that is not as the last update left it."""

    name: str
    type: str
    """Pulumi's type of it."""
    gone: bool
    changed: tuple[str, ...] = ()
    """A text for each changed field, such as "tags.team is b and was a"."""
    mends: tuple[str, ...] = ()
    """Commands that mend it where neither a refresh nor an update does."""


def said(at: datetime, now: datetime) -> str:
    """A time of day in UTC, with its day where that is not today."""
    at, now = at.astimezone(UTC), now.astimezone(UTC)
    return f"{at:%H:%M:%S}" if at.date() == now.date() else f"{at:%Y-%m-%d %H:%M:%S}"
