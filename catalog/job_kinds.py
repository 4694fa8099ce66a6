"""What the two controllers call a training run and its pods.

Sources: Trainer v2.1.0 and v2.3.0, JobSet v0.10.1, training-operator v1.8.1, read at their tags
(2026-11-21).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class RunKind:
    """A kind of object that is a run."""

    api_version: str
    pods: str
    """Label of its pods with the name of the run."""
    rank: str
    """Label of its pods with the number of their node."""
    succeeded: str
    """Condition of a run that has ended well; `Failed` is the other end of all."""


RUN_KINDS: dict[str, RunKind] = {
    "TrainJob": RunKind(
        api_version="trainer.kubeflow.org/v1alpha1",
        pods="jobset.sigs.k8s.io/jobset-name",
        rank="batch.kubernetes.io/job-completion-index",
        succeeded="Complete",
    ),
    "PyTorchJob": RunKind(
        api_version="kubeflow.org/v1",
        pods="training.kubeflow.org/job-name",
        rank="training.kubeflow.org/replica-index",
        succeeded="Succeeded",
    ),
}
SUCCEEDED = tuple(kind.succeeded for kind in RUN_KINDS.values())
ENDED = (*SUCCEEDED, "Failed")
