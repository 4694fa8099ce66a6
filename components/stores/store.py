"""Interface of the component of every kind of store, for those that mount stores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import pulumi
import pulumi_kubernetes as k8s

from components.jobs.namespace import Volume
from trainyard.plans.directories import DirectoryPlan


@dataclass(frozen=True, kw_only=True)
class Roots:
    """From where directories of teams are made, on stores whose drivers make none."""

    claims: Mapping[str, k8s.core.v1.PersistentVolumeClaim] = field(default_factory=dict)
    """Store → the claim of all of it, in a namespace of its own."""
    group_id: pulumi.Input[str] = ""
    """Security group of the nodes that mount these claims: the system nodes."""


class Store(Protocol):
    """A store of any kind."""

    volume: Volume
    """All of it."""

    def directory(self, plan: DirectoryPlan, roots: Roots, opts: pulumi.ResourceOptions) -> Volume:
        """Make the directory of a team; returns it as the team's pods mount it. `opts`: of what
        makes it."""
        ...
