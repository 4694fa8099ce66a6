"""Properties that AWS or Kubernetes cannot change in place: a change makes another object."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


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
