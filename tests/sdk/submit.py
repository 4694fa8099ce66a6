"""With Kubeflow's SDK: lists the runtimes, sends a job to one and reads it back. Usage: submit.py KUBECONFIG RUNTIME"""

from __future__ import annotations

import json
import sys

from kubeflow.common.types import KubernetesBackendConfig  # pyright: ignore[reportMissingImports]
from kubeflow.trainer import CustomTrainer, TrainerClient  # pyright: ignore[reportMissingImports]


def train() -> None:
    print("trained")


kubeconfig, wanted = sys.argv[1:]
client = TrainerClient(KubernetesBackendConfig(config_file=kubeconfig, namespace="default"))
runtimes = {runtime.name: runtime for runtime in client.list_runtimes()}
name = client.train(runtime=runtimes[wanted],
                    trainer=CustomTrainer(func=train, num_nodes=2, resources_per_node={"gpu": 8}))
job = client.get_job(name)
print(json.dumps({"runtimes": sorted(runtimes), "job": job.name, "runtime": job.runtime.name, "nodes": job.num_nodes}))
