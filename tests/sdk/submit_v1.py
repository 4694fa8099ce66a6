"""As submit.py, with the SDK of the training-operator: a PyTorchJob. KUBECONFIG NAMESPACE GPUS
SECONDS."""

from __future__ import annotations

import json
import sys

from kubeflow.training import TrainingClient  # pyright: ignore[reportMissingImports]


def train() -> None:
    import os

    print("trained", os.environ["RANK"], "of", os.environ["WORLD_SIZE"])


kubeconfig, namespace, gpus, seconds = sys.argv[1:]
client = TrainingClient(config_file=kubeconfig, namespace=namespace, job_kind="PyTorchJob")
client.create_job(
    name="by-sdk",
    train_func=train,
    base_image="registry/image:1",
    num_workers=2,
    resources_per_worker={"gpu": int(gpus)},
)
job = client.get_job("by-sdk")
if int(seconds):
    job = client.wait_for_job_conditions("by-sdk", wait_timeout=int(seconds), polling_interval=2)
print(
    json.dumps(
        {
            "replicas": {
                role: replica.replicas for role, replica in job.spec.pytorch_replica_specs.items()
            },
            "succeeded": client.is_job_succeeded(job=job),
        }
    )
)
