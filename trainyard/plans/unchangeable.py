"""Properties that AWS or Kubernetes cannot change in place: a change makes another object."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Output = Callable[[str, str, str], Any]
"""Ask for an output of a deployed resource: its type, its logical name, and the output's path, such as
vpcConfig.vpcId → the value; None where there is none."""


@dataclass(frozen=True, kw_only=True)
class Fixed:
    """One property of an object that stays as long as the object does."""

    path: str
    """The setting that decides it, from the project's key."""
    output: str
    """Its place in the resource's outputs, such as vpcConfig.vpcId."""
    wanted: Any
    """Value that the stack file asks for."""
    grows: bool = False
    """A larger value is a change in place."""

    def differs(self, deployed: Any) -> bool:
        """True where the deployed value needs another object. Off and not set are the same."""
        if self.grows and deployed is not None:
            return float(deployed) > float(self.wanted)
        return (deployed or None) != (self.wanted or None)
