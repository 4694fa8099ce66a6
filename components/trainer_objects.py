"""The Trainer's objects as plain data, by Trainer version. Pure: what reaches the API server can be tested without it.

Field names and what the webhooks refuse: shared facts trainer.md §1; `node` is the name the Trainer builds
PET_MASTER_ADDR from, and is not a choice.
"""

from __future__ import annotations

from typing import Any

from components.plans import Spec
from components.training import (
    GPU,
    TOLERATIONS,
    Training,
    env,
    pod_metadata,
    resources,
    volume_mounts,
    volumes,
)

ANCESTOR = "trainer.kubeflow.org/trainjob-ancestor-step"
"""Without this label on the replicated job the Trainer ignores numNodes, image, command and env."""


def train_job_spec(version: str, runtime: str, training: Training) -> Spec:
    """TrainJob.spec for a Trainer version; KeyError for a version without a builder."""
    return _TRAIN_JOB[version](runtime, training)


def _train_job_2_1(runtime: str, training: Training) -> Spec:
    pod: Spec = {
        "nodeSelector": dict(training.node_selector),
        "tolerations": TOLERATIONS,
        "volumes": volumes(training),
        "containers": [{"name": "node", "volumeMounts": volume_mounts(training)}],
    }
    if training.pull_secrets:
        pod["imagePullSecrets"] = [{"name": name} for name in training.pull_secrets]
    return {
        "runtimeRef": {"name": runtime},
        "trainer": {
            "image": training.image,
            "command": list(training.command),
            "numNodes": training.nodes,
            "numProcPerNode": training.processes_per_node,
            "resourcesPerNode": resources(training),
            "env": env(training),
        },
        "podTemplateOverrides": [{
            "targetJobs": [{"name": "node"}],
            "metadata": pod_metadata(training),
            "spec": pod,
        }],
    }


_TRAIN_JOB = {"2.1.0": _train_job_2_1}


def resilient_torch(image: str, max_restarts: int) -> Spec:
    """torch with a gang restart: any failed pod fails its Job at once, and JobSet recreates all of them."""
    return _torch([_job("node", "trainer", [_container("node", image)],
                        job={"backoffLimit": 0}, pod={"restartPolicy": "Never"})],
                  failurePolicy={"maxRestarts": max_restarts})


def upstream_runtimes(version: str) -> dict[str, tuple[str, Spec]]:
    """name → (framework, spec) of the runtimes a Trainer release ships; KeyError for an unknown release."""
    return _UPSTREAM[version]


def _torchtune(name: str, model: str, config: str) -> Spec:
    """Fine-tuning recipe: data set and model are fetched into one claim, then torchtune runs on two GPUs."""
    claim: Spec = {"name": "initializer", "persistentVolumeClaim": {"claimName": name}}
    mount = [{"name": "initializer", "mountPath": "/workspace"}]

    def initializer(step: str, uri: str) -> Spec:
        container = _container(step, f"ghcr.io/kubeflow/trainer/{step}:v2.1.0", volumeMounts=mount,
                               env=[{"name": "STORAGE_URI", "value": uri}])
        return _job(step, step, [container], pod={"volumes": [claim]})

    steps = ("dataset-initializer", "model-initializer")
    command = ["tune", "run", "--rdzv_endpoint=localhost:29500", "full_finetune_distributed", "--config", config,
               "dataset=torchtune.datasets.instruct_dataset", "dataset.source=parquet",
               "dataset.data_dir=/workspace/dataset/data", "output_dir=/workspace/output",
               f"tokenizer.path=/workspace/model/{_TOKENIZERS[config.partition('/')[0]][0]}",
               *_TOKENIZERS[config.partition("/")[0]][1], "checkpointer.checkpoint_dir=/workspace/model"]
    node = _container("node", "ghcr.io/kubeflow/trainer/torchtune-trainer:v2.1.0", command=command, volumeMounts=mount,
                      resources={"limits": {GPU: "2"}})
    return _torch([
        initializer(steps[0], "hf://tatsu-lab/alpaca"),
        initializer(steps[1], f"hf://{model}"),
        {**_job("node", "trainer", [node], pod={"volumes": [claim]}),
         "dependsOn": [{"name": step, "status": "Complete"} for step in steps]},
    ])


_TOKENIZERS: dict[str, tuple[str, list[str]]] = {
    "llama3_2": ("original/tokenizer.model", []),
    "qwen2_5": ("vocab.json", ["tokenizer.merges_file=/workspace/model/merges.txt"]),
}


def _mpi(image: str) -> Spec:
    user = {"runAsUser": 1000}
    sshd = _container("node", image, securityContext=user, command=["/usr/sbin/sshd"],
                      args=["-De", "-f", "/home/mpiuser/.sshd_config"],
                      readinessProbe={"tcpSocket": {"port": 2222}, "initialDelaySeconds": 5})
    return {
        "mlPolicy": {"numNodes": 1, "mpi": {"numProcPerNode": 1, "mpiImplementation": "OpenMPI",
                                            "sshAuthMountPath": "/home/mpiuser/.ssh", "runLauncherAsNode": True}},
        "template": {"spec": {
            "network": {"publishNotReadyAddresses": True},
            "successPolicy": {"operator": "All", "targetReplicatedJobs": ["launcher"]},
            "replicatedJobs": [_job("launcher", "trainer", [_container("node", image, securityContext=user)]),
                               _job("node", None, [sshd])],
        }},
    }


def _torch(jobs: list[Spec], **jobset: Any) -> Spec:
    return {"mlPolicy": {"numNodes": 1, "torch": {"numProcPerNode": "auto"}},
            "template": {"spec": {**jobset, "replicatedJobs": jobs}}}


def _job(name: str, step: str | None, containers: list[Spec], *, job: Spec | None = None,
         pod: Spec | None = None) -> Spec:
    template: Spec = {"spec": {**(job or {}), "template": {"spec": {**(pod or {}), "containers": containers}}}}
    return {"name": name, "template": {"metadata": {"labels": {ANCESTOR: step}}, **template} if step else template}


def _container(name: str, image: str, **rest: Any) -> Spec:
    return {"name": name, "image": image, **rest}


_UPSTREAM: dict[str, dict[str, tuple[str, Spec]]] = {
    "2.1.0": {
        "torch-distributed": ("torch", _torch(
            [_job("node", "trainer", [_container("node", "pytorch/pytorch:2.7.1-cuda12.8-cudnn9-runtime")])])),
        "deepspeed-distributed": ("deepspeed", _mpi("ghcr.io/kubeflow/trainer/deepspeed-runtime:v2.1.0")),
        "mlx-distributed": ("mlx", _mpi("ghcr.io/kubeflow/trainer/mlx-runtime:v2.1.0")),
        "torchtune-llama3.2-1b": ("torchtune", _torchtune(
            "torchtune-llama3.2-1b", "meta-llama/Llama-3.2-1B-Instruct", "llama3_2/1B_full")),
        "torchtune-llama3.2-3b": ("torchtune", _torchtune(
            "torchtune-llama3.2-3b", "meta-llama/Llama-3.2-3B-Instruct", "llama3_2/3B_full")),
        "torchtune-qwen2.5-1.5b": ("torchtune", _torchtune(
            "torchtune-qwen2.5-1.5b", "Qwen/Qwen2.5-1.5B-Instruct", "qwen2_5/1.5B_full")),
    },
}
