"""The Trainer's objects as plain data, by Trainer version. Pure: what reaches the API server can be
tested without it.

Field names and what the webhooks refuse: shared facts trainer.md §1; `node` is the name the Trainer
builds PET_MASTER_ADDR from, and is not a choice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from plans.parts import Spec
from plans.pod_template import (
    GPU,
    TOLERATIONS,
    SecretKey,
    Training,
    env,
    pod_metadata,
    resources,
    secret_variable,
    volume_mounts,
    volumes,
)

ANCESTOR = "trainer.kubeflow.org/trainjob-ancestor-step"
"""Without this label on the replicated job the Trainer ignores numNodes, image, command and env."""
MANAGER = "trainyard.io/program"
"""Whose entry of runtimePatches is ours; Kueue and the SDK have their own beside it."""
MPI_USER = 1000
"""mpiuser of upstream's MPI images: sshd and ranks run as it."""


def train_job_spec(
    version: str, runtime: str, training: Training, *, jobs: tuple[str, ...] = ("node",)
) -> Spec:
    """TrainJob.spec for a Trainer version; KeyError for a version without a builder. `jobs`:
    pod_jobs(runtime)."""
    return _TRAIN_JOB[version](runtime, training, jobs)


def pod_jobs(runtime: Spec) -> tuple[str, ...]:
    """The replicated jobs of a runtime that train, whose pods all need mounts, devices and
    tolerations: with MPI the launcher as well as the others."""
    return ("launcher", "node") if "mpi" in runtime["mlPolicy"] else ("node",)


def _train_job_2_1(runtime: str, training: Training, jobs: tuple[str, ...]) -> Spec:
    if training.time_limit_minutes:
        raise ValueError("Trainer 2.1 has no time limit: it would drop the field without a word")
    return {
        "runtimeRef": {"name": runtime},
        "trainer": _trainer(training),
        "podTemplateOverrides": [
            {
                "targetJobs": [{"name": job} for job in jobs],
                "metadata": pod_metadata(training),
                "spec": _pod(training),
            }
        ],
    }


def _train_job_2_3(runtime: str, training: Training, jobs: tuple[str, ...]) -> Spec:
    patches = [
        {
            "name": job,
            "template": {
                "spec": {"template": {"metadata": pod_metadata(training), "spec": _pod(training)}}
            },
        }
        for job in jobs
    ]
    limit = training.time_limit_minutes
    return {
        "runtimeRef": {"name": runtime},
        "trainer": _trainer(training),
        "runtimePatches": [
            {
                "manager": MANAGER,
                "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": patches}}},
            }
        ],
        **({"activeDeadlineSeconds": limit * 60} if limit else {}),
    }


def _trainer(training: Training) -> Spec:
    """`auto` is what the Trainer does unasked. As a word in the object it is refused with MPI, and
    since 2.2 by the schema: one such job, left from 2.1, keeps a controller of 2.3 from reading any
    job at all."""
    ranks = training.processes_per_node
    return {
        "image": training.image,
        **({"command": list(training.command)} if training.command else {}),
        "numNodes": training.nodes,
        **({} if ranks == "auto" else {"numProcPerNode": ranks}),
        "resourcesPerNode": resources(training),
        "env": env(training),
    }


def _pod(training: Training) -> Spec:
    pod: Spec = {
        "nodeSelector": dict(training.node_selector),
        "tolerations": TOLERATIONS,
        "volumes": volumes(training),
        "containers": [{"name": "node", "volumeMounts": volume_mounts(training)}],
    }
    if training.pull_secrets:
        pod["imagePullSecrets"] = [{"name": name} for name in training.pull_secrets]
    return pod


_TRAIN_JOB: dict[str, Callable[[str, Training, tuple[str, ...]], Spec]] = {
    "2.1.0": _train_job_2_1,
    "2.3.0": _train_job_2_3,
}


@dataclass(frozen=True, kw_only=True)
class Fetched:
    """What upstream's torchtune runtimes fetch into a claim before they train, and the claim of
    ours in its place."""

    model: str
    """As upstream's runtime for it ends: qwen2.5-1.5b."""
    store: str
    """What the pods call the volume: as jobs do, so that a job's own mounts of the store are of the
    same volume."""
    claim: str
    directory: str
    token: SecretKey | None = None
    """Of Hugging Face, for a gated model."""


@dataclass(frozen=True, kw_only=True)
class OwnRuntime:
    """A runtime of ours."""

    kind: Literal["torch", "mpi", "cpu", "torchtune"]
    """torch and mpi: any failed pod restarts the gang. cpu: a pod that fails is started again, the
    others wait. torchtune: upstream's recipe for `fetched`."""
    image: str
    """Of torch and cpu a default, which a job replaces. With mpi a job replaces the launcher's
    only, so it must name the same; sshd, and mpiuser with its ~/.sshd_config, are in it as in
    upstream's deepspeed-runtime."""
    max_restarts: int
    """Of the gang; of cpu, of a node's pod."""
    command: tuple[str, ...] = ()
    """Of jobs that bring none: those that people write by hand."""
    priority: str | None = None
    """PriorityClass of the pods; a TrainJob cannot name one."""
    fetched: Fetched | None = None
    """Of torchtune."""


def own_runtime(version: str, own: OwnRuntime) -> tuple[str, Spec]:
    """(framework, spec) of a runtime of ours for a Trainer version."""
    framework, spec = _OWN[own.kind](version, own)
    if own.priority:
        for job in spec["template"]["spec"]["replicatedJobs"]:
            job["template"]["spec"]["template"]["spec"]["priorityClassName"] = own.priority
    return framework, spec


def _own_torch(version: str, own: OwnRuntime) -> tuple[str, Spec]:
    """Any failed pod fails its Job at once, and JobSet recreates all of them."""
    node = _container("node", own.image, **_command(own))
    return "torch", _torch(
        version,
        [_job("node", "trainer", [node], job={"backoffLimit": 0}, pod=_NEVER)],
        failurePolicy={"maxRestarts": own.max_restarts},
    )


def _own_mpi(version: str, own: OwnRuntime) -> tuple[str, Spec]:
    """mpirun waits for every sshd (T9). GPUs go to launcher and nodes, as the launcher is one of
    the nodes (T7)."""
    spec = _mpi(own.image, waits=True, launcher=_command(own))
    for job in spec["template"]["spec"]["replicatedJobs"]:
        job["template"]["spec"] = {"backoffLimit": 0, **job["template"]["spec"]}
        job["template"]["spec"]["template"]["spec"] |= _NEVER
    spec["template"]["spec"]["failurePolicy"] = {"maxRestarts": own.max_restarts}
    return "deepspeed", spec


def _own_cpu(version: str, own: OwnRuntime) -> tuple[str, Spec]:
    node = _container(
        "node", own.image, **_command(own), env=[{"name": "PYTHONUNBUFFERED", "value": "1"}]
    )
    job: Spec = {"backoffLimit": own.max_restarts, "ttlSecondsAfterFinished": 1800}
    return "torch", _torch(version, [_job("node", "trainer", [node], job=job, pod=_NEVER)])


def _own_torchtune(version: str, own: OwnRuntime) -> tuple[str, Spec]:
    """On a claim of a store, where upstream's 2.1 needs one that nobody makes and 2.3 a default
    StorageClass. On one node: the recipe meets at localhost, as upstream's."""
    at = own.fetched
    assert at is not None  # own_runtimes has both or neither
    claim: Spec = {"name": at.store, "persistentVolumeClaim": {"claimName": at.claim}}
    spec = _torchtune(version, at.model, own.image, claim, directory=at.directory)
    *fetching, node = spec["template"]["spec"]["replicatedJobs"]
    token = [secret_variable("ACCESS_TOKEN", at.token)] if at.token else []
    for job in fetching:
        [container] = job["template"]["spec"]["template"]["spec"]["containers"]
        container["env"] += token
    node["template"]["spec"]["backoffLimit"] = 0
    node["template"]["spec"]["template"]["spec"] |= _NEVER
    spec["template"]["spec"]["failurePolicy"] = {"maxRestarts": own.max_restarts}
    return "torchtune", spec


def _command(own: OwnRuntime) -> Spec:
    return {"command": list(own.command)} if own.command else {}


_NEVER: Spec = {"restartPolicy": "Never"}
_OWN: dict[str, Callable[[str, OwnRuntime], tuple[str, Spec]]] = {
    "torch": _own_torch,
    "mpi": _own_mpi,
    "cpu": _own_cpu,
    "torchtune": _own_torchtune,
}


def upstream_runtimes(version: str) -> dict[str, tuple[str, Spec]]:
    """name → (framework, spec) of the runtimes a Trainer release ships; KeyError for an unknown
    release."""
    return _UPSTREAM[version]


def _torchtune_shipped(version: str, model: str) -> Spec:
    """2.1 expects the claim in the job's namespace; 2.3 has JobSet make one a job."""
    image = f"ghcr.io/kubeflow/trainer/torchtune-trainer:v{version}"
    if version == "2.1.0":
        claim: Spec = {
            "name": "initializer",
            "persistentVolumeClaim": {"claimName": f"torchtune-{model}"},
        }
        return _torchtune(version, model, image, claim)
    spec = _torchtune(version, model, image, None)
    return {
        **spec,
        "template": {
            "spec": {
                "volumeClaimPolicies": [{"templates": [_INITIALIZER_CLAIM]}],
                **spec["template"]["spec"],
            }
        },
    }


def _torchtune(
    version: str, model: str, image: str, volume: Spec | None, directory: str | None = None
) -> Spec:
    """Fine-tuning recipe: data set and model are fetched into one volume, then torchtune runs, on
    two GPUs unless a job says otherwise."""
    uri, config = TUNED[model]
    pod: Spec = {"volumes": [volume]} if volume else {}
    mount = [
        {
            "name": volume["name"] if volume else "initializer",
            "mountPath": WORKSPACE,
            **({"subPath": directory} if directory else {}),
        }
    ]

    def initializer(step: str, uri: str) -> Spec:
        container = _container(
            step,
            f"ghcr.io/kubeflow/trainer/{step}:v{version}",
            volumeMounts=mount,
            env=[{"name": "STORAGE_URI", "value": uri}],
        )
        return _job(step, step, [container], pod=pod)

    steps = ("dataset-initializer", "model-initializer")
    command = [
        "tune",
        "run",
        "--rdzv_endpoint=localhost:29500",
        "full_finetune_distributed",
        "--config",
        config,
        "dataset=torchtune.datasets.instruct_dataset",
        "dataset.source=parquet",
        "dataset.data_dir=/workspace/dataset/data",
        "output_dir=/workspace/output",
        f"tokenizer.path=/workspace/model/{_TOKENIZERS[config.partition('/')[0]][0]}",
        *_TOKENIZERS[config.partition("/")[0]][1],
        "checkpointer.checkpoint_dir=/workspace/model",
    ]
    node = _container(
        "node", image, command=command, volumeMounts=mount, resources={"limits": {GPU: "2"}}
    )
    return _torch(
        version,
        [
            initializer(steps[0], "hf://tatsu-lab/alpaca"),
            initializer(steps[1], f"hf://{uri}"),
            {
                **_job("node", "trainer", [node], pod=pod),
                "dependsOn": [{"name": step, "status": "Complete"} for step in steps],
            },
        ],
    )


WORKSPACE = "/workspace"
"""Where upstream's initializers write, and its recipes read and write."""
TUNED = {
    "llama3.2-1b": ("meta-llama/Llama-3.2-1B-Instruct", "llama3_2/1B_full"),
    "llama3.2-3b": ("meta-llama/Llama-3.2-3B-Instruct", "llama3_2/3B_full"),
    "qwen2.5-1.5b": ("Qwen/Qwen2.5-1.5B-Instruct", "qwen2_5/1.5B_full"),
}
"""Model that upstream has a torchtune runtime for → where it is on Hugging Face, and its recipe's
configuration."""
_INITIALIZER_CLAIM: Spec = {
    "metadata": {"name": "initializer"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "20Gi"}}},
}
_TOKENIZERS: dict[str, tuple[str, list[str]]] = {
    "llama3_2": ("original/tokenizer.model", []),
    "qwen2_5": ("vocab.json", ["tokenizer.merges_file=/workspace/model/merges.txt"]),
}


def _mpi(image: str, *, waits: bool, launcher: Spec | None = None) -> Spec:
    """A launcher that is one of the nodes, and sshd in the others; `waits` until they answer."""
    user = {"runAsUser": MPI_USER}
    sshd = _container(
        "node",
        image,
        securityContext=user,
        command=["/usr/sbin/sshd"],
        args=["-De", "-f", "/home/mpiuser/.sshd_config"],
        readinessProbe={"tcpSocket": {"port": 2222}, "initialDelaySeconds": 5},
    )
    pod: Spec = {"securityContext": {"fsGroup": MPI_USER}} if waits else {}
    first = _job(
        "launcher",
        "trainer",
        [_container("node", image, securityContext=user, **(launcher or {}))],
        pod=pod,
    )
    other = _job("node", None, [sshd], pod=pod)
    return {
        # Never more than one here: numNodes of an MPI runtime counts launchers (T5).
        "mlPolicy": {
            "numNodes": 1,
            "mpi": {
                "numProcPerNode": 1,
                "mpiImplementation": "OpenMPI",
                "sshAuthMountPath": "/home/mpiuser/.ssh",
                "runLauncherAsNode": True,
            },
        },
        "template": {
            "spec": {
                "network": {"publishNotReadyAddresses": True},
                "successPolicy": {"operator": "All", "targetReplicatedJobs": ["launcher"]},
                "replicatedJobs": (
                    [
                        other,
                        {**first, "dependsOn": [{"name": "node", "status": "Ready"}]},
                    ]
                    if waits
                    else [first, other]
                ),
            }
        },
    }


def _torch(version: str, jobs: list[Spec], **jobset: Any) -> Spec:
    return _plain("torch", jobs, {"numProcPerNode": "auto"} if version == "2.1.0" else {}, **jobset)


def _plain(source: str, jobs: list[Spec], policy: Spec | None = None, **jobset: Any) -> Spec:
    return {
        "mlPolicy": {"numNodes": 1, source: policy or {}},
        "template": {"spec": {**jobset, "replicatedJobs": jobs}},
    }


def _node(image: str) -> list[Spec]:
    return [_job("node", "trainer", [_container("node", image)])]


def _job(
    name: str,
    step: str | None,
    containers: list[Spec],
    *,
    job: Spec | None = None,
    pod: Spec | None = None,
) -> Spec:
    template: Spec = {
        "spec": {**(job or {}), "template": {"spec": {**(pod or {}), "containers": containers}}}
    }
    return {
        "name": name,
        "template": {"metadata": {"labels": {ANCESTOR: step}}, **template} if step else template,
    }


def _container(name: str, image: str, **rest: Any) -> Spec:
    return {"name": name, "image": image, **rest}


def _shipped_by_all(version: str, torch_image: str) -> dict[str, tuple[str, Spec]]:
    """What every release ships; of MPI, 2.1's launcher does not wait for the nodes."""
    images, waits = "ghcr.io/kubeflow/trainer", version != "2.1.0"
    return {
        "torch-distributed": ("torch", _torch(version, _node(torch_image))),
        "deepspeed-distributed": (
            "deepspeed",
            _mpi(f"{images}/deepspeed-runtime:v{version}", waits=waits),
        ),
        "mlx-distributed": ("mlx", _mpi(f"{images}/mlx-runtime:v{version}", waits=waits)),
        **{
            f"torchtune-{model}": ("torchtune", _torchtune_shipped(version, model))
            for model in TUNED
        },
    }


_UPSTREAM: dict[str, dict[str, tuple[str, Spec]]] = {
    "2.1.0": _shipped_by_all("2.1.0", "pytorch/pytorch:2.7.1-cuda12.8-cudnn9-runtime"),
    "2.3.0": {
        **_shipped_by_all("2.3.0", "pytorch/pytorch:2.13.0-cuda13.0-cudnn9-runtime"),
        "jax-distributed": ("jax", _plain("jax", _node("nvcr.io/nvidia/jax:25.10-py3"))),
        "xgboost-distributed": (
            "xgboost",
            _plain("xgboost", _node("ghcr.io/kubeflow/trainer/xgboost-runtime:v2.3.0")),
        ),
    },
}
