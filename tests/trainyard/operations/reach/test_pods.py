"""Which job a pod is of."""

from __future__ import annotations

from trainyard.operations.reach.pods import gangs


def test_a_pod_of_the_training_operator_is_in_one_gang_whatever_kinds_have_its_labels() -> None:
    pod = {
        "metadata": {
            "namespace": "training",
            "name": "old-worker-0",
            "labels": {"training.kubeflow.org/job-name": "old"},
        }
    }
    assert gangs([pod]) == {("PyTorchJob", "training", "old"): [pod]}
