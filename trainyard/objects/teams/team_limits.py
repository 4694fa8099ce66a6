"""Limits of namespaces in which jobs run: specs of ResourceQuotas and of the LimitRange of a team."""

from __future__ import annotations

from typing import Any

from trainyard.objects.jobs.pod_template import GPU
from trainyard.objects.teams.teams import CRON_JOBS, TeamEntryPlan

SMALLEST = {"cpu": "100m", "memory": "128Mi"}
"""Default request of a container: its pod is then Burstable and not BestEffort, which a full node
kills first. There is no default limit: a limit below the request of a job would refuse its pods."""


def counts(plan: TeamEntryPlan) -> Any:
    """ResourceQuota of a team: how many jobs of each kind, schedules and pods it can have."""
    kinds = (*plan.job_kinds, *((CRON_JOBS,) if plan.schedules else ()))
    jobs = {f"count/{kind}": str(plan.max_jobs) for kind in kinds}
    return {"hard": {**jobs, "pods": str(plan.max_pods)}}


def requests() -> Any:
    """LimitRange of a team: what containers request that say nothing."""
    return {"limits": [{"type": "Container", "defaultRequest": SMALLEST}]}


def gpus(most: int) -> Any:
    """ResourceQuota of a namespace: how many GPUs its pods can request together."""
    return {"hard": {f"requests.{GPU}": str(most)}}
