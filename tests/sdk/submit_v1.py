"""As submit.py, with the SDK of the training-operator: sends a PyTorchJob and reads it back. KUBECONFIG."""

from __future__ import annotations

import json
import sys

from kubeflow.training import TrainingClient  # pyright: ignore[reportMissingImports]


def train() -> None:
    print("trained")


client = TrainingClient(config_file=sys.argv[1], namespace="default")
client.create_job(name="by-sdk", job_kind="PyTorchJob", train_func=train, base_image="registry/image:1", num_workers=2,
                  resources_per_worker={"gpu": 8})
job = client.get_job("by-sdk", job_kind="PyTorchJob")
print(json.dumps({role: replica.replicas for role, replica in job.spec.pytorch_replica_specs.items()}))
