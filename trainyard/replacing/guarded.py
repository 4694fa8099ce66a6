"""A deployed object that an update must not replace by accident, and the setting change that would
replace it. Which ones there are: replacing.py."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Guarded:
    """A deployed object that an update must not replace by accident."""

    entry: str
    """Entry of `environment.allow_replace` that names it."""
    lost: str
    """Loss by a replacement, as a sentence."""
    kept: bool = False
    """Its `data` is `keep`, which no entry overrules."""


@dataclass(frozen=True, kw_only=True)
class Change:
    """A change of a setting that would replace a deployed object."""

    guarded: Guarded
    path: str
    must: str
    """Requirement for the setting, so that the object stays."""
    got: str
    back: str
    """Value to write, so that the object stays."""
    at_once: bool = True
    """One update can do it. Where not, no entry allows it."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """A setting whose value is another one than that of what is deployed."""

    path: str
    was: Any
    wanted: Any
    at_once: bool = True

    def change(self, guarded: Guarded) -> Change:
        """Change of the guarded object by this setting."""
        was = shown(self.was)
        return Change(
            guarded=guarded,
            path=self.path,
            must=f"stay {was}",
            got=shown(self.wanted),
            back=was,
            at_once=self.at_once,
        )


def shown(value: Any) -> str:
    """A value as a stack file says it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}"
    return "nothing" if value is None else str(value)
