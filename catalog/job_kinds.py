"""The kinds of training jobs: what their controllers call a job, its pods and its end.

Sources: Trainer v2.1.0 and v2.3.0, JobSet v0.10.1, training-operator v1.8.1, read at their tags
(2026-11-21).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class JobKind:
    """A kind of Kubernetes object that is a training job."""

    api_version: str
    pod_label: str
    """Label of the job's pods whose value is the job's name."""
    rank_label: str
    """Label of the job's pods whose value is the number of the node."""
    succeeded: str
    """Type of the condition of a job that ended well. A job that failed has `Failed`."""


JOB_KINDS: dict[str, JobKind] = {
    "TrainJob": JobKind(
        api_version="trainer.kubeflow.org/v1alpha1",
        pod_label="jobset.sigs.k8s.io/jobset-name",
        rank_label="batch.kubernetes.io/job-completion-index",
        succeeded="Complete",
    ),
    "PyTorchJob": JobKind(
        api_version="kubeflow.org/v1",
        pod_label="training.kubeflow.org/job-name",
        rank_label="training.kubeflow.org/replica-index",
        succeeded="Succeeded",
    ),
}
SUCCEEDED = tuple(kind.succeeded for kind in JOB_KINDS.values())
ENDED = (*SUCCEEDED, "Failed")


def true_conditions(job: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The conditions of a job whose status is True, in the order of the object."""
    conditions = (job.get("status") or {}).get("conditions") or []
    return [condition for condition in conditions if condition["status"] == "True"]


def outcome(job: Mapping[str, Any]) -> str | None:
    """The condition with which a job ended: one of ENDED. None: the job has not ended."""
    types = (condition["type"] for condition in true_conditions(job))
    return next((name for name in types if name in ENDED), None)
