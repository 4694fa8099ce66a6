"""The settings with which a PyTorchJob stays one in its entry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainyard.manifests.document import REPLICAS, Path, Workload, look, mapping
from trainyard.manifests.owned_fields import DEFAULT_RESTART
from trainyard.manifests.pod_rules import RESTARTS
from trainyard.manifests.pod_shape import NEVER
from trainyard.objects.jobs.pod_template import GPU, PULL_POLICIES
from trainyard.objects.jobs.pytorch import RESTARTS_PER_GANG_RESTART

LIMIT: Path = ("spec", "runPolicy", "backoffLimit")
ELASTIC: Path = ("spec", "elasticPolicy")
GPUS_BY_ROLE_OF_A_COORDINATOR = {"Master": False, "Worker": True}
"""Role → whether its pods have GPUs, where the master only coordinates the workers."""


def pytorch_job(job: Workload) -> dict[str, Any]:
    """Settings with which the job stays a PyTorchJob."""
    policy = mapping(job.get("spec", "runPolicy"))
    elastic = mapping(job.get(*ELASTIC))
    own = {
        "clean_pods": str(policy.get("cleanPodPolicy") or "none").lower(),
        "restarts": _restarts(job),
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
        f"{job.where(*ELASTIC)}: the number of nodes stays {nodes}, since no TrainJob is elastic;"
        " pytorch_job keeps `elastic`"
    ]


def restarts_of_a_gang(job: Workload, settings: Mapping[str, Any]) -> list[str]:
    """Sentences about the limits of restarts of a PyTorchJob. `settings`: those it stays one
    with."""
    limit, restarts = job.get(*LIMIT), look(settings, "pytorch_job", "restarts")
    if limit is None and restarts is not None and job.get(*ELASTIC, "maxRestarts") is None:
        return [
            f"{job.where(*REPLICAS)}: no runPolicy.backoffLimit: failed pods restart without a limit, and"
            f" pytorch_job.restarts {restarts} lets the whole gang restart {restarts} times"
        ]
    if limit is None or not isinstance(restarts, int):
        return []
    place = f"{job.where(*LIMIT)}: {limit}"
    if restarts < 1:
        if job.get(*ELASTIC, "maxRestarts") is not None:
            return []
        never = "the first pod that fails ends the job, since its restartPolicy is Never"
        return [f"{place}: {never}, so pytorch_job.restarts is 0"] if limit else []
    pods = sum(pod.nodes for pod in job.pods if isinstance(pod.nodes, int))
    made = restarts * pods * RESTARTS_PER_GANG_RESTART + 1
    return [
        f"{place}: pytorch_job.restarts {restarts} counts restarts of the whole"
        f" gang, so the object has backoffLimit {made}, which counts those of each pod"
    ]


def _restarts(job: Workload) -> Any:
    """Restarts of the whole gang; None where the file says nothing of any. A pod that fails and never restarts ends
    the job (training-operator v1.8.1, pytorchjob_controller.go, UpdateJobStatus)."""
    of_torchrun, limit = job.get(*ELASTIC, "maxRestarts"), job.get(*LIMIT)
    if of_torchrun is not None:
        return of_torchrun
    replicas = mapping(job.get(*REPLICAS)).values()
    if all((look(each, "restartPolicy") or DEFAULT_RESTART) == NEVER for each in replicas):
        return None if limit is None else 0
    return RESTARTS if limit is None else limit


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
