"""One training job as four people write it: an entry of a stack file with a runtime, the same as a PyTorchJob,
a file with a TrainJob and its runtime, and a file with a PyTorchJob."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from tests.support.stackfile import at, planned
from trainyard.problems import Problem

NAME = "one-job"
WAYS = ("entry", "PyTorchJob entry", "TrainJob file", "PyTorchJob file")
DIGEST = "sha256:" + "0" * 64
EFA, GPU = "vpc.amazonaws.com/efa", "nvidia.com/gpu"
ENDPOINT = "--rdzv_backend=c10d --rdzv_endpoint=${PET_MASTER_ADDR}:${PET_MASTER_PORT}"


@dataclass(frozen=True, kw_only=True)
class Described:
    """A job, whatever the way in which it is written."""

    script: str = f"torchrun {ENDPOINT} /app/train.py"
    image: str = f"registry.example.com/train@{DIGEST}"
    nodes: int = 2
    gpus: int = 8
    ranks: int | None = None
    memory_gib: int = 600
    cpus: int | None = None
    shared_memory_gib: int = 64
    env: dict[str, str] = field(default_factory=dict)
    mounts: dict[str, str] = field(default_factory=lambda: {"scratch": "/scratch"})
    """Store → path."""
    restarts: int = 0
    labels: dict[str, str] = field(default_factory=dict)
    elastic: bool = False
    """A PyTorchJob grows to `most_nodes`."""
    most_nodes: int = 0

    def but(self, **other: Any) -> Described:
        """The job with other values."""
        return replace(self, **other)

    @property
    def _devices(self) -> dict[str, Any]:
        amounts = {GPU: self.gpus, "memory": f"{self.memory_gib}Gi"}
        amounts |= {EFA: 4} if self.gpus == 8 else {}
        return amounts | ({"cpu": self.cpus} if self.cpus else {})

    def _entry(self, **kind: Any) -> dict[str, Any]:
        own = {
            "nodes": self.nodes,
            "pool": "g6e",
            "image": self.image,
            "script": self.script,
            "memory_gib": self.memory_gib,
            "shared_memory_gib": self.shared_memory_gib,
            "allow_no_checkpoint": True,
        }
        own |= {"gpus_per_node": self.gpus} if self.gpus != 8 else {}
        own |= {"processes_per_node": self.ranks} if self.ranks else {}
        own |= {"cpus_per_node": self.cpus} if self.cpus else {}
        own |= {"env": self.env} if self.env else {}
        own |= {"labels": self.labels} if self.labels else {}
        mounts = {store: {"path": path} for store, path in self.mounts.items()}
        return own | ({"storage": mounts} if mounts else {}) | kind

    def _pod(self, container: str) -> dict[str, Any]:
        memory = {"medium": "Memory", "sizeLimit": f"{self.shared_memory_gib}Gi"}
        body = {
            "name": container,
            "image": self.image,
            "command": ["bash", "-euo", "pipefail", "-c", self.script],
            "env": [{"name": name, "value": value} for name, value in self.env.items()],
            "resources": {"limits": self._devices},
            "volumeMounts": [
                {"name": "shm", "mountPath": "/dev/shm"},
                *({"name": store, "mountPath": path} for store, path in self.mounts.items()),
            ],
        }
        return {
            "tolerations": [{"key": GPU, "operator": "Exists"}],
            "volumes": [
                {"name": "shm", "emptyDir": memory},
                *(
                    {"name": store, "persistentVolumeClaim": {"claimName": store}}
                    for store in self.mounts
                ),
            ],
            "containers": [body],
        }

    def _train_job(self) -> list[dict[str, Any]]:
        label = {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}
        node = {
            "name": "node",
            "template": {
                "metadata": {"labels": label},
                "spec": {"template": {"spec": self._pod("node")}},
            },
        }
        jobs: dict[str, Any] = {"replicatedJobs": [node]}
        if self.restarts:
            jobs["failurePolicy"] = {"maxRestarts": self.restarts}
        policy = {"numNodes": 1, "torch": {"numProcPerNode": "auto"}}
        runtime = {
            "apiVersion": "trainer.kubeflow.org/v1alpha1",
            "kind": "TrainingRuntime",
            "metadata": {"name": "own"},
            "spec": {"mlPolicy": policy, "template": {"spec": jobs}},
        }
        trainer = {"numNodes": self.nodes} | ({"numProcPerNode": self.ranks} if self.ranks else {})
        job = {
            "apiVersion": "trainer.kubeflow.org/v1alpha1",
            "kind": "TrainJob",
            "metadata": {"name": NAME, "labels": self.labels},
            "spec": {"runtimeRef": {"kind": "TrainingRuntime", "name": "own"}, "trainer": trainer},
        }
        return [runtime, job]

    def _pytorch_job(self) -> list[dict[str, Any]]:
        policy = "OnFailure" if self.restarts else "Never"
        one = {"restartPolicy": policy, "template": {"spec": self._pod("pytorch")}}
        replicas = {"Master": {"replicas": 1, **one}}
        if self.nodes > 1:
            replicas["Worker"] = {"replicas": self.nodes - 1, **one}
        spec: dict[str, Any] = {"pytorchReplicaSpecs": replicas}
        if self.ranks:
            spec["nprocPerNode"] = str(self.ranks)
        if self.elastic:
            replicas["Worker"]["replicas"] = self.nodes
            del replicas["Master"]
            sizes = {"minReplicas": 1, "maxReplicas": self.most_nodes}
            spec["elasticPolicy"] = {"rdzvBackend": "c10d", **sizes}
        if self.restarts:
            spec["runPolicy"] = {"backoffLimit": self.restarts * self.nodes * 2 + 1}
        labels = {"name": NAME, "labels": self.labels}
        job = {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "metadata": labels}
        return [job | {"spec": spec}]

    def said(self, folder: Path) -> dict[str, list[Problem]]:
        """Way to write it → errors and warnings about the job."""
        claims = {store: store for store in self.mounts}
        manifest = {"manifest": "job.yaml", "pool": "g6e", "claims": claims}
        own = {"image": "registry.example.com/x:1", "max_restarts": self.restarts}
        operator = at("training_operator", {"version": "1.8.1"})
        runtime = at("trainer.own_runtimes.own", own)
        sizes = {"elastic": {"min_nodes": 1, "max_nodes": self.most_nodes}} if self.elastic else {}
        ways: tuple[tuple[dict[str, Any], list[dict[str, Any]]], ...] = (
            (self._entry(runtime="own"), []),
            (self._entry(pytorch_job={"restarts": self.restarts}, **sizes), []),
            (manifest, self._train_job()),
            (manifest, self._pytorch_job()),
        )
        found = {}
        for way, (entry, documents) in zip(WAYS, ways, strict=True):
            (folder / "job.yaml").write_text(yaml.safe_dump_all(documents, sort_keys=False))
            large = at("pools.g6e", {"instance_types": ["g6e.48xlarge"], "max_nodes": 4})
            judged = planned(large, operator, runtime, at("jobs", {NAME: entry}), folder=folder)
            found[way] = [
                each
                for each in (*judged.errors, *judged.warnings)
                if each.file == "job.yaml"
                or f"jobs.{NAME}" in each.path
                or each.path.endswith(".jobs")
            ]
        return found
