"""The settings with which a PyTorchJob stays one in its entry."""

from __future__ import annotations

import math
from typing import Any

from plans.pod_template import GPU
from stacks.manifests.document import Workload, mapping

GPUS_BY_ROLE_OF_A_COORDINATOR = {"Master": False, "Worker": True}
"""Role → whether its pods have GPUs, where the master only coordinates the workers."""


def pytorch_job(job: Workload) -> dict[str, Any]:
    """Settings with which the job stays a PyTorchJob."""
    policy = mapping(job.get("spec", "runPolicy"))
    elastic = mapping(job.get("spec", "elasticPolicy"))
    own = {
        "clean_pods": str(policy.get("cleanPodPolicy") or "none").lower(),
        "restarts": policy.get("backoffLimit"),
        "keep_finished_minutes": _minutes(policy.get("ttlSecondsAfterFinished")),
    }
    settings: dict[str, Any] = {
        "pytorch_job": {name: value for name, value in own.items() if value is not None}
    }
    if limit := _minutes(policy.get("activeDeadlineSeconds")):
        settings["time_limit_minutes"] = limit
    if elastic.get("minReplicas") and elastic.get("maxReplicas"):
        settings["elastic"] = {
            "min_nodes": elastic["minReplicas"],
            "max_nodes": elastic["maxReplicas"],
        }
    if _gpus_by_role(job) == GPUS_BY_ROLE_OF_A_COORDINATOR:
        settings["pytorch_job"]["coordinator"] = True
        settings["nodes"] = job.get("spec", "pytorchReplicaSpecs", "Worker", "replicas") or 1
    return settings


def _gpus_by_role(job: Workload) -> dict[str, bool]:
    return {
        pod.role: any(container.amount(GPU) for container in pod.containers) for pod in job.pods
    }


def _minutes(seconds: Any) -> int | None:
    return math.ceil(int(seconds) / 60) if seconds else None
