"""Runs and runtimes of every kind, for tests of what the Trainer is sent."""

from __future__ import annotations

import dataclasses
from typing import Any

from trainyard.catalog import versions
from trainyard.objects.jobs.own_runtimes import Fetched, OwnRuntime, own_runtime
from trainyard.objects.jobs.pod_template import GPU, HostFolder, Mount, SecretKey, Training
from trainyard.objects.jobs.upstream_runtimes import upstream_runtimes
from trainyard.plans.jobs import Spec

API = "trainer.kubeflow.org/v1alpha1"
RUNTIME = "torch-distributed-resilient"
JOB = Training(
    image="registry/image:1",
    command=("/bin/bash", "-c", "torchrun train.py"),
    nodes=2,
    processes_per_node="auto",
    resources={"vpc.amazonaws.com/efa": 4, GPU: 8},
    cpus=171,
    memory_gib=1272,
    node_selector={"topology.kubernetes.io/zone": "ap-northeast-2a"},
    env={"B": "2", "A": "1"},
    mounts=(
        Mount(store="home", claim="home", path="/home"),
        Mount(store="scratch", claim="scratch-1", path="/checkpoints", directory="job"),
    ),
    shared_memory_gib=64,
)
VARIANTS = {
    "whole nodes": JOB,
    "one node": dataclasses.replace(JOB, nodes=1, resources={GPU: 8}),
    "four ranks": dataclasses.replace(JOB, processes_per_node=4),
    "bare": dataclasses.replace(JOB, mounts=(), env={}),
    "everything": dataclasses.replace(
        JOB,
        secrets={"HF_TOKEN": SecretKey(secret="hf", key="token")},
        files=("job-files", "/workspace"),
        host_folders=(HostFolder(name="weights", host="/opt/weights", path="/weights"),),
        local_scratch="/scratch",
        pull_secrets=("registry",),
        labels={"team": "vision"},
    ),
}
NODE = dataclasses.replace(JOB, command=(), mounts=(), env={"OF_THE_TYPE": "1"})
"""A whole node, as a runtime with a pool has it."""
OWN = {
    "torch": OwnRuntime(kind="torch", image="registry/image:1", max_restarts=5),
    "mpi": OwnRuntime(kind="mpi", image="registry/mpi:1", max_restarts=5),
    "cpu": OwnRuntime(
        kind="cpu",
        image="registry/image:1",
        max_restarts=2,
        command=("torchrun", "/workspace/a.py"),
    ),
    "torchtune": OwnRuntime(
        kind="torchtune",
        image="registry/tune:1",
        max_restarts=0,
        fetched=Fetched(
            model="qwen2.5-1.5b",
            store="scratch",
            claim="scratch-1",
            directory="tuned",
            token=SecretKey(secret="hf", key="token"),
        ),
    ),
    "whole": OwnRuntime(
        kind="torch",
        image="registry/image:1",
        max_restarts=5,
        command=("torchrun", "a.py"),
        node=NODE,
    ),
    "urgent": OwnRuntime(kind="mpi", image="registry/mpi:1", max_restarts=0, priority="urgent"),
}


def train_job(name: str, spec: Spec) -> dict[str, Any]:
    return {"apiVersion": API, "kind": "TrainJob", "metadata": {"name": name}, "spec": spec}


def runtime(name: str, spec: Spec, framework: str = "torch") -> dict[str, Any]:
    labels = {"trainer.kubeflow.org/framework": framework}
    return {
        "apiVersion": API,
        "kind": "ClusterTrainingRuntime",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
    }


RUNTIMES: dict[tuple[str, str], Spec] = {
    (version, name): spec
    for version in versions.TRAINERS
    for name, (_, spec) in upstream_runtimes(version).items()
}
RUNTIMES |= {
    (version, f"own-{name}"): own_runtime(version, own)[1]
    for version in versions.TRAINERS
    for name, own in OWN.items()
}
