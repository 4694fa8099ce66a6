"""Gangs of two nodes of which one comes late, one of each kind of job: what the worlds without and with
a queue share.

A node that has not come yet is one that is cordoned: the pods for it are Pending, as without capacity.
Limits of torch run SPEED times faster (TRAINYARD_RENDEZVOUS_SPEED)."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tests.support.patience import until
from tests.worlds.harness import Harness, Object
from trainyard.catalog.job_kinds import JOB_KINDS, SUCCEEDED, outcome

SPEED = 60
POOL = {"instance_types": ["g6.48xlarge"], "max_nodes": 4, "replicas": 4}
RUNTIMES = {"gang": {"image": "trainer:1", "max_restarts": 3}}
SHARE = {"cpu": "2", "memory": "8Gi", "nvidia.com/gpu": "1"}
"""What a pod of a file takes: many gangs share the nodes."""
MEET = "--rdzv_backend=c10d --rdzv_endpoint=${PET_MASTER_ADDR}:${PET_MASTER_PORT}"
ENV = {
    "TRAINYARD_RENDEZVOUS_SPEED": str(SPEED),
    "TRAINYARD_STEPS": "6",
    "TRAINYARD_STEP_SECONDS": "0.1",
}
TYPED = {"torchrun": {"script": "/workspace/train/step.py"}}
ENDS_SLOWLY = "trap 'sleep 6; exit 143' TERM; {} & wait $!"
"""A shell whose program gets some seconds for its end."""
SCRIPT = {
    "script": ENDS_SLOWLY.format(
        f"torchrun --nnodes=2 --nproc_per_node=1 {MEET} /workspace/train/step.py"
    )
}
GANG: Object = {"runtime": "gang"}
OPERATOR: Object = {"pytorch_job": {"clean_pods": "none"}}


def _entry(**more: Any) -> Object:
    return {
        "nodes": 2,
        "pool": "l4",
        "image": "trainer:1",
        "gpus_per_node": 1,
        "cpus_per_node": 2,
        "memory_gib": 8,
        "shared_memory_gib": 1,
        "allow_no_checkpoint": True,
        "processes_per_node": 1,
        "env": ENV,
        "files": {"sources": ["step.py"], "path": "/workspace/train"},
        **more,
    }


def _container(**more: Any) -> Object:
    program = "torchrun --nproc_per_node=1 --rdzv_backend=c10d"
    program += " --rdzv_endpoint=$(PET_MASTER_ADDR):$(PET_MASTER_PORT) /tmp/step.py"
    return {
        "image": "trainer:1",
        "command": ["sh", "-c", f"echo pass > /tmp/step.py; {ENDS_SLOWLY.format(program)}"],
        "env": [{"name": name, "value": value} for name, value in ENV.items()],
        **more,
    }


def _train_job(name: str) -> Object:
    trainer = _container(numNodes=2, resourcesPerNode={"requests": SHARE, "limits": SHARE})
    return {
        "apiVersion": JOB_KINDS["TrainJob"].api_version,
        "kind": "TrainJob",
        "metadata": {"name": name},
        "spec": {"runtimeRef": {"name": "gang"}, "trainer": trainer},
    }


def _pytorch_job(name: str) -> Object:
    resources = {"requests": SHARE, "limits": SHARE}
    container = _container(name="pytorch", resources=resources)
    container["command"][-1] = container["command"][-1].replace("PET_MASTER", "MASTER")
    replica = {
        "replicas": 1,
        "restartPolicy": "Never",
        "template": {"spec": {"containers": [container]}},
    }
    return {
        "apiVersion": JOB_KINDS["PyTorchJob"].api_version,
        "kind": "PyTorchJob",
        "metadata": {"name": name},
        "spec": {
            "runPolicy": {"cleanPodPolicy": "None"},
            "pytorchReplicaSpecs": {"Master": replica, "Worker": replica},
        },
    }


_ENTRIES = {
    "typed": _entry(**GANG, **TYPED),
    "script": _entry(**GANG, **SCRIPT),
    "operator": _entry(**OPERATOR, **TYPED),
}
_FILES = {"file": _train_job, "opfile": _pytorch_job}
_KINDS = {
    "typed": "TrainJob",
    "script": "TrainJob",
    "file": "TrainJob",
    "operator": "PyTorchJob",
    "opfile": "PyTorchJob",
}
GANGS = {f"{what}-{late}": kind for what, kind in _KINDS.items() for late in ("first", "second")}
"""What it is, and which of its nodes comes late → its kind."""


def jobs() -> Object:
    """The gangs, as a stack file has them."""
    return {
        name: _ENTRIES.get(name.partition("-")[0], {"manifest": f"{name}.yaml", "pool": "l4"})
        for name in GANGS
    }


def files() -> dict[str, str]:
    """The files that their entries name."""
    made = {name: _FILES.get(name.partition("-")[0]) for name in GANGS}
    texts = {f"{name}.yaml": json.dumps(file(name)) for name, file in made.items() if file}
    return {**texts, "step.py": "pass\n"}


def ready_nodes(harness: Harness) -> list[str]:
    """Names of the pool's nodes, where all are there with their GPUs."""
    nodes = harness.get("nodes -l trainyard.io/pool=l4")["items"]
    ready = [n for n in nodes if n["status"]["allocatable"].get("nvidia.com/gpu") == "8"]
    return sorted(n["metadata"]["name"] for n in ready) if len(ready) == 4 else []


@dataclass(frozen=True, kw_only=True)
class Gangs:
    """The gangs in a namespace of a world."""

    harness: Harness
    namespace: str

    def pods(self) -> dict[str, list[Object]]:
        """Gang → its pods, by rank of the node."""
        found = self.harness.get(f"pods -n {self.namespace}")["items"]
        named = sorted(found, key=lambda pod: pod["metadata"]["name"])
        return {
            name: [pod for pod in named if pod["metadata"]["labels"].get(label) == name]
            for name, kind in GANGS.items()
            for label in [JOB_KINDS[kind].pod_label]
        }

    def early(self) -> dict[str, Object]:
        """Gang → the pod whose node does not come late, where it is there."""
        return {
            name: pods[name.endswith("first")] for name, pods in self.pods().items() if pods[1:]
        }

    def bind(self, pods: Iterable[Object], nodes: list[str]) -> None:
        """Give pods a node that takes no others: the scheduler leaves nodes that are cordoned alone."""
        bindings = [
            {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"name": pod["metadata"]["name"], "namespace": self.namespace},
                "target": {"apiVersion": "v1", "kind": "Node", "name": nodes[number % len(nodes)]},
            }
            for number, pod in enumerate(pods)
        ]
        listed = {"apiVersion": "v1", "kind": "List", "items": bindings}
        if bindings:
            self.harness.shell(
                f"kubectl create --filename - <<'EOF'\n{json.dumps(listed)}\nEOF", check=False
            )

    def seen(self) -> str:
        return self.harness.shell(
            f"kubectl get pods -n {self.namespace} --output wide", check=False
        )

    def ends_without_a_restart(self, name: str) -> list[Object]:
        """The pods of a gang that is Complete."""
        kind, space = GANGS[name], f"-n {self.namespace}"
        job = f"{kind.lower()} {space} {name}"
        ended = until(lambda: outcome(self.harness.get(job)), self.seen, every=1)
        label = f"{JOB_KINDS[kind].pod_label}={name}"
        logs = self.harness.shell(f"kubectl logs {space} -l {label} --prefix", check=False)
        assert ended in SUCCEEDED, logs
        if kind == "TrainJob":
            status = self.harness.get(f"jobset {space} {name}")["status"]
            assert status.get("restarts", 0) == 0, logs
        pods = self.pods()[name]
        restarts = [
            each["restartCount"] for pod in pods for each in pod["status"]["containerStatuses"]
        ]
        assert restarts == [0, 0], logs
        return pods


def has_begun(pod: Object) -> bool:
    """Whether a container of the pod runs, one that waits for a Master among them."""
    status = pod["status"]
    states = [*status.get("containerStatuses", []), *status.get("initContainerStatuses", [])]
    return any("running" in each["state"] for each in states)


def started(pod: Object) -> float:
    """Second at which the pod had its node."""
    [at] = [
        each["lastTransitionTime"]
        for each in pod["status"]["conditions"]
        if each["type"] == "PodScheduled"
    ]
    return time.mktime(time.strptime(at, "%Y-%m-%dT%H:%M:%SZ"))
