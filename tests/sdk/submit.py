"""With Kubeflow's SDK: lists the runtimes, sends a job to one and reads it back, at once or when it
has ended.

Usage: submit.py KUBECONFIG NAMESPACE RUNTIME GPUS SECONDS, 0 seconds not to wait.
"""

from __future__ import annotations

import json
import sys

from kubeflow.common.types import KubernetesBackendConfig  # pyright: ignore[reportMissingImports]
from kubeflow.trainer import CustomTrainer, TrainerClient  # pyright: ignore[reportMissingImports]


def train() -> None:
    print("trained")


kubeconfig, namespace, wanted, gpus, seconds = sys.argv[1:]
client = TrainerClient(KubernetesBackendConfig(config_file=kubeconfig, namespace=namespace))
runtimes = {runtime.name: runtime for runtime in client.list_runtimes()}
name = client.train(
    runtime=runtimes[wanted],
    trainer=CustomTrainer(func=train, num_nodes=2, resources_per_node={"gpu": int(gpus)}),
)
job = (
    client.wait_for_job_status(name, timeout=int(seconds)) if int(seconds) else client.get_job(name)
)
print(
    json.dumps(
        {
            "runtimes": sorted(runtimes),
            "job": job.name,
            "runtime": job.runtime.name,
            "nodes": job.num_nodes,
            "status": job.status,
        }
    )
)
