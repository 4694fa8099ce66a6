"""Plan of a team that an environment lists: namespace, limits, access and contract."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainyard.objects.queues.queues import TeamQueuePlan
from trainyard.objects.teams.team_identity import TeamIdentityPlan
from trainyard.plans.directories import DirectoryPlan
from trainyard.plans.identity import Identity
from trainyard.plans.jobs import JobNamespacePlan

IMAGE_PREFIXES = "trainyard.io/image-prefixes"
PRIORITIES = "trainyard.io/priorities"
ALLOWED_URGENCIES = "trainyard.io/urgencies"
"""Annotations of a team's namespace: lists with commas, which the admission policies read. They are
there and not in a ConfigMap, because a team can write ConfigMaps."""
SCHEDULES = "trainyard.io/schedules"
"""Annotation of a team's namespace with STARTER, where its jobs can have schedules."""
STARTER = "trainyard-schedules"
"""Service account in a team's namespace, of the pods that make the runs of its schedules."""
CRON_JOBS = "cronjobs.batch"
"""Kind of the object that a schedule is, as kubectl and quotas call it."""
PARAMETER_BYTES = 4096
"""Size of a value in the standard tier of SSM Parameter Store (AWS quotas of Systems Manager)."""
ADVANCED_BYTES = 8192
"""Size of a value in its advanced tier, which costs $0.05 a month for each parameter."""
REACHED_BYTES = 2100
"""Bytes of the contract that say how to reach the cluster: its certificate authority (1,500), ARN,
endpoint and name."""


@dataclass(frozen=True, kw_only=True)
class EntrantPlan:
    """An IAM role that enters the cluster for a team."""

    role_arn: str
    role: str
    """In the team: a key of trainyard/objects/teams/team_access.py, ROLES."""
    groups: tuple[str, ...]
    """Kubernetes groups of whoever has the role."""


@dataclass(frozen=True, kw_only=True)
class TeamEntryPlan:
    """One team of an environment."""

    identity: Identity
    name: str
    workspace: JobNamespacePlan
    directories: Mapping[str, DirectoryPlan]
    """Store → the team's own directory on it, of the stores that keep teams apart."""
    pods: TeamIdentityPlan | None
    """Rights of its pods in AWS; None: they have no identity there."""
    max_jobs: int
    """Most jobs of each kind in job_kinds."""
    job_kinds: tuple[str, ...]
    """Kinds of jobs whose controllers the environment has, as quotas name them."""
    max_pods: int
    entrants: Mapping[str, EntrantPlan]
    """By logical name."""
    parameter: str
    """Name of the SSM parameter with the contract."""
    contract: Mapping[str, Any]
    """Promises to this team; AWS adds how to reach the cluster."""
    queue: TeamQueuePlan | None
    """None: the environment has no queues."""
    pushes: bool
    """Pods of the team reach a Pushgateway."""
    schedules: bool
    """Its jobs can have schedules."""

    @property
    def contract_bytes(self) -> int:
        """Size of the contract without the cluster, as the parameter holds it."""
        return len(json.dumps(self.contract).encode())

    @property
    def tier(self) -> str | None:
        """Tier of the parameter; None for the standard one, which costs nothing."""
        return "Advanced" if self.contract_bytes + REACHED_BYTES > PARAMETER_BYTES else None


def parameter_name(environment: str, team: str) -> str:
    """SSM parameter in which an environment publishes the contract of a team."""
    return f"/trainyard/{environment}/teams/{team}"
