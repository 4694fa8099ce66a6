"""The settings with which a PyTorchJob stays one in its entry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainyard.manifests.document import REPLICAS, Workload, look, mapping
from trainyard.objects.jobs.pod_template import GPU, PULL_POLICIES
from trainyard.objects.jobs.pytorch import RESTARTS_PER_GANG_RESTART

GPUS_BY_ROLE_OF_A_COORDINATOR = {"Master": False, "Worker": True}
"""Role → whether its pods have GPUs, where the master only coordinates the workers."""


def pytorch_job(job: Workload) -> dict[str, Any]:
    """Settings with which the job stays a PyTorchJob."""
    policy = mapping(job.get("spec", "runPolicy"))
    elastic = mapping(job.get("spec", "elasticPolicy"))
    own = {
        "clean_pods": str(policy.get("cleanPodPolicy") or "none").lower(),
        "restarts": _first(elastic.get("maxRestarts"), policy.get("backoffLimit")),
        "image_pull_policy": _pull_policy(job),
        "master_labels": _labels(job, "Master"),
        "worker_labels": _labels(job, "Worker"),
    }
    settings: dict[str, Any] = {
        "pytorch_job": {name: value for name, value in own.items() if value is not None}
    }
    if elastic.get("minReplicas") and elastic.get("maxReplicas"):
        settings["elastic"] = {
            "min_nodes": elastic["minReplicas"],
            "max_nodes": elastic["maxReplicas"],
        }
    if _gpus_by_role(job) == GPUS_BY_ROLE_OF_A_COORDINATOR:
        settings["pytorch_job"]["coordinator"] = True
        settings["nodes"] = job.get("spec", "pytorchReplicaSpecs", "Worker", "replicas") or 1
    return settings


def fixed_nodes(job: Workload, settings: Mapping[str, Any], nodes: int) -> list[str]:
    """A sentence about a number of nodes that changes no more. `nodes`: those of the entry."""
    if "elastic" not in settings:
        return []
    return [
        f"{job.where('spec', 'elasticPolicy')}: the number of nodes stays {nodes}, since no TrainJob is elastic;"
        " pytorch_job keeps `elastic`"
    ]


def restarts_of_a_gang(job: Workload, settings: Mapping[str, Any]) -> list[str]:
    """Sentences about the limits of restarts of a PyTorchJob. `settings`: those it stays one
    with."""
    policy = ("spec", "runPolicy", "backoffLimit")
    limit, restarts = job.get(*policy), look(settings, "pytorch_job", "restarts")
    if limit is None or not isinstance(restarts, int) or restarts < 1:
        return []
    pods = sum(pod.nodes for pod in job.pods if isinstance(pod.nodes, int))
    made = restarts * pods * RESTARTS_PER_GANG_RESTART + 1
    return [
        f"{job.where(*policy)}: {limit}: pytorch_job.restarts {restarts} counts restarts of the whole"
        f" gang, so the object has backoffLimit {made}, which counts those of each pod"
    ]


def _first(*values: Any) -> Any:
    return next((value for value in values if value is not None), None)


def _pull_policy(job: Workload) -> str | None:
    """The setting for the imagePullPolicy of the containers; None where they have none, or
    several."""
    written = {container.body.get("imagePullPolicy") for container in job.containers}
    return next((name for name, value in PULL_POLICIES.items() if written == {value}), None)


def _labels(job: Workload, role: str) -> dict[str, str] | None:
    labels = mapping(job.get(*REPLICAS, role, "template", "metadata", "labels"))
    return {str(name): str(value) for name, value in labels.items()} or None


def _gpus_by_role(job: Workload) -> dict[str, bool]:
    return {
        pod.role: any(container.amount(GPU) for container in pod.containers) for pod in job.pods
    }
