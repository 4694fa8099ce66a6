"""A problem as `status` prints it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Finding:
    """A diagnosis: what is wrong, why, and what to do."""

    what: str
    why: str
    do: str

    def __str__(self) -> str:
        return f"{self.what}\n    {self.why}\n    → {self.do}"
