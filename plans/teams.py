"""What an environment makes for a team that it lists: namespace, limits, access and contract."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from frozen import dataclass
from plans.directories import DirectoryPlan
from plans.parts import Identity, JobNamespacePlan
from plans.queues import TeamQueuePlan
from plans.team_identity import TeamIdentityPlan

IMAGE_PREFIXES = "trainyard.io/image-prefixes"
PRIORITIES = "trainyard.io/priorities"
ALLOWED_URGENCIES = "trainyard.io/urgencies"
"""Annotations of a team's namespace: lists with commas, which the admission policies read. They are
there and not in a ConfigMap, because a team can write ConfigMaps."""
PARAMETER_BYTES = 4096
"""Size of a value in the standard tier of SSM Parameter Store (AWS quotas of Systems Manager)."""


@dataclass(frozen=True, kw_only=True)
class EntrantPlan:
    """An IAM role that enters the cluster for a team."""

    role_arn: str
    role: str
    """In the team: a key of plans/team_access.py, ROLES."""
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
    """What its pods may do in AWS; None: they have no identity there."""
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
    """What this team can rely on; AWS adds how to reach the cluster."""
    queue: TeamQueuePlan | None
    """None: the environment has no queues."""
    pushes: bool
    """Whether its pods reach a Pushgateway."""


def parameter_name(environment: str, team: str) -> str:
    """SSM parameter in which an environment publishes the contract of a team."""
    return f"/trainyard/{environment}/teams/{team}"
