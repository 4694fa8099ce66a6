"""Limits of namespaces in which jobs run: specs of ResourceQuotas and of the LimitRange of a team."""

from __future__ import annotations

from typing import Any

from trainyard.objects.jobs.pod_template import GPU
from trainyard.objects.teams.teams import CRON_JOBS, TeamEntryPlan

SMALLEST = {"cpu": "100m", "memory": "128Mi"}
"""Default request of a container: its pod is then Burstable and not BestEffort, which a full node
kills first. There is no default limit: a limit below the request of a job would refuse its pods."""

CONFIG_MAPS_OF_A_JOB, CONFIG_MAPS_BESIDE = 10, 50
"""A job of ours has one, and one of MPI two. Each can have 1 MiB, and etcd has room for 8 GiB of all teams."""

OBJECTS_BESIDE = 50
"""Runtimes that a team can have beside one for each of its jobs. No entry of a stack file makes one in the namespace of
a team, and a file of a job brings one at most."""
RUNTIMES = "trainingruntimes.trainer.kubeflow.org"


def counts(plan: TeamEntryPlan) -> Any:
    """ResourceQuota of a team: how many jobs of each kind, schedules, runtimes, pods and ConfigMaps it can have."""
    kinds = (*plan.job_kinds, *((CRON_JOBS,) if plan.schedules else ()))
    jobs = {f"count/{kind}": str(plan.max_jobs) for kind in kinds}
    files = CONFIG_MAPS_OF_A_JOB * plan.max_jobs + CONFIG_MAPS_BESIDE
    others = {"count/configmaps": files, f"count/{RUNTIMES}": plan.max_jobs + OBJECTS_BESIDE}
    return {
        "hard": {**jobs, "pods": str(plan.max_pods)}
        | {name: str(most) for name, most in others.items()}
    }


def requests() -> Any:
    """LimitRange of a team: what containers request that say nothing."""
    return {"limits": [{"type": "Container", "defaultRequest": SMALLEST}]}


def gpus(most: int) -> Any:
    """ResourceQuota of a namespace: how many GPUs its pods can request together."""
    return {"hard": {f"requests.{GPU}": str(most)}}
