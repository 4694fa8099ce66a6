"""Gangs of which one node comes late: the second one, or the first one, for each kind of job. All of them
are Complete, and none has spent a restart.

A node that has not come yet is one that is cordoned: the pods for it are Pending, as without capacity.
Limits of torch run 60 times faster (TRAINYARD_RENDEZVOUS_SPEED), so LATE seconds are more than the
half hour of the issue, and more than torch's own 60 s and 600 s. The init container of the
training-operator knows no speed: its number of tries is looked at."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from rehearsal import world
from tests.support.patience import until
from tests.worlds.harness import Harness, Object, rehearsing, with_l4
from trainyard.catalog.job_kinds import JOB_KINDS, SUCCEEDED, outcome
from trainyard.catalog.waiting import INIT_TRIES, NODES_SECONDS

pytestmark = [
    pytest.mark.world,
    pytest.mark.apart,
    pytest.mark.skipif(world.obstacle() is not None, reason=str(world.obstacle())),
]

SPEED, LATE = 60, 40
"""The half hour of the issue is 30 s long."""
POOL = {"instance_types": ["g6.48xlarge"], "max_nodes": 4, "replicas": 4}
SHARE = {"cpu": "2", "memory": "8Gi", "nvidia.com/gpu": "1"}
"""What a pod of a file takes: many gangs share the nodes."""
MEET = "--rdzv_backend=c10d --rdzv_endpoint=${PET_MASTER_ADDR}:${PET_MASTER_PORT}"
ENV = {
    "TRAINYARD_RENDEZVOUS_SPEED": str(SPEED),
    "TRAINYARD_STEPS": "6",
    "TRAINYARD_STEP_SECONDS": "0.1",
}
TYPED = {"torchrun": {"script": "/workspace/train/step.py"}}
SCRIPT = {"script": f"torchrun --nnodes=2 --nproc_per_node=1 {MEET} /workspace/train/step.py\n"}
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
        "command": ["sh", "-c", f"echo pass > /tmp/step.py; {program}"],
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


ENTRIES = {
    "typed": _entry(**GANG, **TYPED),
    "script": _entry(**GANG, **SCRIPT),
    "operator": _entry(**OPERATOR, **TYPED),
}
FILES = {"file": _train_job, "opfile": _pytorch_job}
KINDS = {
    "typed": "TrainJob",
    "script": "TrainJob",
    "file": "TrainJob",
    "operator": "PyTorchJob",
    "opfile": "PyTorchJob",
}
GANGS = [f"{kind}-{late}" for kind in KINDS for late in ("first", "second")]
"""What it is, and which of its nodes comes late."""


def _stack(*, jobs: bool) -> str:
    made = with_l4(training_operator={"version": "1.8.1"})
    settings = made["trainyard:environment"]
    settings["pools"] = {"l4": POOL}
    settings["trainer"]["own_runtimes"] = {"gang": {"image": "trainer:1", "max_restarts": 3}}
    settings["jobs"] = {
        name: ENTRIES.get(kind, {"manifest": f"{name}.yaml", "pool": "l4"})
        for name in (GANGS if jobs else ())
        for kind in [_kind(name)]
    }
    return yaml.safe_dump({"config": made})


def _kind(name: str) -> str:
    return name.partition("-")[0]


@pytest.fixture(scope="module")
def harness() -> Iterator[Harness]:
    """All gangs have met, or not: each had one of its nodes LATE seconds after the other."""
    files = {f"{name}.yaml": FILES[_kind(name)](name) for name in GANGS if _kind(name) in FILES}
    texts = {file: json.dumps(body) for file, body in files.items()}
    file = "Pulumi.late.yaml"
    with rehearsing("late", {**texts, "step.py": "pass\n", file: _stack(jobs=False)}) as made:
        assert made.do("up", "--stack", "late") == 0, made.log.read_text()
        nodes = until(lambda: _ready_nodes(made), made.log.read_text)
        made.shell(f"kubectl cordon {' '.join(nodes)}")
        (made.checkout / file).write_text(_stack(jobs=True))
        made.do("up", "--stack", "late", "--wait", "1")  # the gangs go on without it
        for name in GANGS:
            until(lambda name=name: len(_pods(made, name)) == 2, made.log.read_text)
        early = [pod for name in GANGS if (pod := _pods(made, name)[name.endswith("first")])]
        for number, pod in enumerate(early):
            _bind(made, pod, nodes[number % 2])
        until(lambda: all(_has_begun(made, pod) for pod in early), lambda: _seen(made), every=1)
        time.sleep(LATE)
        made.shell(f"kubectl uncordon {' '.join(nodes[2:])}")
        yield made


def _ready_nodes(harness: Harness) -> list[str]:
    """Names of the pool's nodes, where all are there with their GPUs."""
    nodes = harness.get("nodes -l trainyard.io/pool=l4")["items"]
    ready = [n for n in nodes if n["status"]["allocatable"].get("nvidia.com/gpu") == "8"]
    return sorted(n["metadata"]["name"] for n in ready) if len(ready) == 4 else []


def _pods(harness: Harness, name: str) -> list[Object]:
    """By rank of the node."""
    kind = JOB_KINDS[KINDS[_kind(name)]]
    found = harness.get(f"pods -n training -l {kind.pod_label}={name}")["items"]
    return sorted(found, key=lambda pod: pod["metadata"]["name"])


def _bind(harness: Harness, pod: Object, node: str) -> None:
    """Give a pod a node that takes no other: the scheduler leaves nodes that are cordoned alone."""
    name = pod["metadata"]["name"]
    binding = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name, "namespace": "training"},
        "target": {"apiVersion": "v1", "kind": "Node", "name": node},
    }
    path = f"/api/v1/namespaces/training/pods/{name}/binding"
    harness.shell(f"kubectl create --raw {path} --filename - <<'EOF'\n{json.dumps(binding)}\nEOF")


def _has_begun(harness: Harness, pod: Object) -> bool:
    """Whether a container of the pod runs, one that waits for a Master among them."""
    status = harness.get(f"pod -n training {pod['metadata']['name']}")["status"]
    states = [*status.get("containerStatuses", []), *status.get("initContainerStatuses", [])]
    return any("running" in each["state"] for each in states)


def _seen(harness: Harness) -> str:
    return harness.shell("kubectl get pods -n training --output wide", check=False)


def _job(harness: Harness, name: str) -> Object:
    return harness.get(f"{KINDS[_kind(name)].lower()} -n training {name}")


@pytest.mark.parametrize("name", GANGS)
def test_a_gang_waits_for_its_late_node_and_spends_no_restart(harness: Harness, name: str) -> None:
    ended = until(lambda: outcome(_job(harness, name)), lambda: _seen(harness), every=1)
    logs = harness.shell(
        f"kubectl logs -n training -l {JOB_KINDS[KINDS[_kind(name)]].pod_label}={name} --prefix",
        check=False,
    )
    assert ended in SUCCEEDED, logs
    if KINDS[_kind(name)] == "TrainJob":
        assert harness.get(f"jobset -n training {name}")["status"].get("restarts", 0) == 0, logs
    pods = _pods(harness, name)
    restarts = [each["restartCount"] for pod in pods for each in pod["status"]["containerStatuses"]]
    assert restarts == [0, 0], logs
    started = [_started(pod) for pod in pods]
    assert abs(started[0] - started[1]) >= LATE * 0.9 > 600 / SPEED, "it was late"


def _started(pod: Object) -> float:
    """Second at which the pod had its node."""
    [at] = [
        each["lastTransitionTime"]
        for each in pod["status"]["conditions"]
        if each["type"] == "PodScheduled"
    ]
    return time.mktime(time.strptime(at, "%Y-%m-%dT%H:%M:%SZ"))


@pytest.mark.parametrize("name", [name for name in GANGS if KINDS[_kind(name)] == "PyTorchJob"])
def test_a_worker_looks_up_its_master_for_as_long(harness: Harness, name: str) -> None:
    worker = _pods(harness, name)[1]
    [init] = worker["spec"]["initContainers"]
    assert f"seq {INIT_TRIES})" in init["command"][-1]
    assert f"sleep {NODES_SECONDS // INIT_TRIES};" in init["command"][-1]
