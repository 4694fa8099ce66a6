"""Surroundings of a job file: its other objects, and what the stack makes in the namespace and in the
cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from trainyard.catalog.job_kinds import JOB_KINDS
from trainyard.manifests.document import Workload
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.team_entry import TeamEntryConfig


@dataclass(frozen=True, kw_only=True)
class Around:
    """The file, and the stack that its objects go to."""

    environment: EnvironmentConfig
    pool: str
    namespace: str
    claims: Mapping[str, str]
    """Claim of the file → claim of the stack."""
    workloads: tuple[Workload, ...]
    """Every object of the file, also of kinds that a file cannot hold."""

    @cached_property
    def job(self) -> str:
        """Name of the job; empty where the file has none."""
        return next((each.name for each in self.workloads if each.kind in JOB_KINDS), "")

    def in_file(self, kind: str) -> dict[str, Workload]:
        """Objects of a kind in the file, by name."""
        return {each.name: each for each in self.workloads if each.get("kind") == kind}

    def has(self, kind: str, name: str) -> bool:
        """True where the file has the object, or one whose name is not known yet."""
        return bool({name, ""} & self.in_file(kind).keys())

    @cached_property
    def _team(self) -> tuple[str, TeamEntryConfig] | None:
        teams = self.environment.teams.items()
        return next(
            (each for each in teams if each[1].namespace_of(each[0]) == self.namespace), None
        )

    @property
    def team(self) -> str:
        """Team that the environment lists, and whose namespace it is; empty where there is none."""
        return self._team[0] if self._team else ""

    @property
    def queue(self) -> str:
        """Queue of the job, which has the name of its team; empty where the job is in none."""
        return self.team if self.environment.queues else ""

    @property
    def priorities(self) -> Iterable[str]:
        """PriorityClasses that the pods may name."""
        return self._team[1].allowed_priorities if self._team else self.environment.priorities

    @property
    def others_may_serve(self) -> bool:
        """True in a cluster that the stack did not make: somebody else may run in it what the stack
        does not."""
        return self.environment.cluster.name is not None
