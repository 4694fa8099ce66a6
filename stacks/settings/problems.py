"""One thing wrong with a stack file, said so that it can be mended: path, rule, value, way out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Fault:
    """A refusal."""

    path: str
    """The setting, as a path from the project's key."""
    rule: str
    value: str
    """What the stack file says."""
    way_out: str

    def __str__(self) -> str:
        return f"{self.path}: {self.rule}, got {self.value}; {self.way_out}"


@dataclass(frozen=True, kw_only=True)
class Notice:
    """Something that will work, and that somebody should know."""

    path: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}: {self.text}"


class Refused(Exception):
    """The stack file asks for something that cannot work; nothing was created."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = tuple(faults)
        lines = "\n".join(f"  {fault}" for fault in self.faults)
        super().__init__(
            f"{len(self.faults)} fault{'s' * (len(self.faults) != 1)} in the stack file\n{lines}"
        )
