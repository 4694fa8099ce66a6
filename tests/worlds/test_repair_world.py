"""Nodes break under running gangs: on demand, in a static pool with a spare, and under a PyTorchJob.
The real Karpenter replaces them, the real JobSet and training-operator start the gangs anew.

Seconds are those of this machine; an instance boots as fast as the world's speed says."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
import yaml

from catalog.job_kinds import JOB_KINDS, true_conditions
from plans.repair import APP, NOTE
from rehearsal import world
from tests.support.patience import until
from tests.worlds.harness import Harness, Object, rehearsing, with_l4

pytestmark = [
    pytest.mark.world,
    pytest.mark.soak,
    pytest.mark.skipif(world.obstacle() is not None, reason=str(world.obstacle())),
]

STEPS = 80
STATIC = {
    "instance_types": ["g6.12xlarge"],
    "max_nodes": 3,
    "replicas": 2,
    "warm_spares": 1,
}


def _job(pool: str, name: str, **more: Any) -> Object:
    return {
        "nodes": 2,
        "pool": pool,
        "image": "trainer:1",
        "shared_memory_gib": 8,
        "checkpoints": {"store": "home", "directory": name},
        "env": {"TRAINYARD_STEPS": str(STEPS), "TRAINYARD_STEP_SECONDS": "0.5"},
        "script": (
            "torchrun --nproc_per_node=2 --nnodes=2 --rdzv_backend=c10d --rdzv_id=one"
            " --rdzv_endpoint=${PET_MASTER_ADDR}:${PET_MASTER_PORT:-29500} /workspace/train/step.py\n"
        ),
        "files": {"sources": ["step.py"], "path": "/workspace/train"},
        **more,
    }


GANG = {"runtime": "gang"}
JOBS = {
    "ondemand": ("l4", "TrainJob", GANG),
    "spare": ("static", "TrainJob", GANG),
    "operator": ("l4", "PyTorchJob", {"pytorch_job": {"clean_pods": "none", "restarts": 5}}),
}
"""Job → its pool, its kind, and more of its entry."""
STACK = with_l4(
    max_nodes=6,
    training_operator={"version": "1.8.1"},
    storage={"home": {"efs": {}, "data": "delete"}},
    repair={"nodes_an_hour": 50},
)
STACK["trainyard:environment"]["pools"]["static"] = STATIC
STACK["trainyard:environment"]["trainer"]["own_runtimes"] = {
    "gang": {"image": "trainer:1", "max_restarts": 5}
}


@dataclass(frozen=True, kw_only=True)
class Fault:
    """Something that breaks on a machine, and what must come of it."""

    words: tuple[str, ...]
    reason: str
    """In the note of the node; empty: the node stays."""
    restarts: bool = True
    """Whether the gang must start anew."""


FAULTS = {
    "xid 79": Fault(words=("--what", "xid", "--xid", "79"), reason="NvidiaXID79Error"),
    "node lost": Fault(words=("--what", "node-lost"), reason="KubeletSilent"),
    "kubelet dead": Fault(words=("--what", "kubelet-dead"), reason="KubeletSilent"),
    "xid 74": Fault(words=("--what", "xid", "--xid", "74"), reason="NvidiaXID74Error"),
    "rank killed": Fault(words=("--what", "rank-killed"), reason=""),
    "xid 48": Fault(words=("--what", "xid", "--xid", "48"), reason="NvidiaXID48Error"),
    "xid 63": Fault(
        words=("--what", "xid", "--xid", "63"), reason="NvidiaXID63Error", restarts=False
    ),
}


@pytest.fixture(scope="module")
def harness() -> Iterator[Harness]:
    file = {"Pulumi.heal.yaml": yaml.safe_dump({"config": STACK}), "step.py": "import torch\n"}
    with rehearsing("heal", file) as made:
        assert made.do("up", "--stack", "heal") == 0, made.log.read_text()
        yield made


def _start(harness: Harness, fault: str) -> dict[str, str]:
    """All three runs for one fault: their names by JOBS."""
    names = {key: f"{key}-{fault.replace(' ', '-')}" for key in JOBS}
    jobs = {name: _job(JOBS[key][0], name, **JOBS[key][2]) for key, name in names.items()}
    file = harness.checkout / "Pulumi.heal.yaml"
    config = yaml.safe_load(file.read_text())
    config["config"]["trainyard:environment"]["jobs"] = jobs
    file.write_text(yaml.safe_dump(config))
    harness.do("up", "--stack", "heal", "--wait", "1")  # the runs go on without it
    return names


def _pods(harness: Harness, key: str, name: str) -> list[Object]:
    label = JOB_KINDS[JOBS[key][1]].pod_label
    return harness.get(f"pods -n training -l {label}={name}")["items"]


def _log(harness: Harness, key: str, name: str) -> str:
    label = JOB_KINDS[JOBS[key][1]].pod_label
    return harness.shell(f"kubectl logs -n training -l {label}={name} --tail=-1", check=False)


def _step(harness: Harness, name: str) -> int:
    """Of the last checkpoint."""
    found = [*harness.state.glob(f"file-systems/*/{name}/stand-in-checkpoint.json")]
    return json.loads(found[0].read_text())["step"] if found else -1


def _running(pods: list[Object]) -> bool:
    return len(pods) == 2 and all(
        pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]
        for pod in pods
    )


def _state(harness: Harness, key: str, name: str) -> str:
    job = harness.get(f"{JOBS[key][1].lower()} {name} -n training")
    conditions = true_conditions(job)
    return conditions[-1]["type"] if conditions else ""


def _instance(harness: Harness, node: str) -> str:
    return harness.get(f"node {node}")["spec"]["providerID"].rpartition("/")[2]


@pytest.mark.parametrize("name", FAULTS)
def test_runs_end_complete_without_a_hand(harness: Harness, name: str) -> None:
    fault, seconds = FAULTS[name], {}
    runs = _start(harness, name)
    for key, run in runs.items():
        assert until(lambda run=run: _step(harness, run) > 3, every=1), _log(harness, key, run)
    broken: dict[str, tuple[str, str, set[str]]] = {}
    breaks = []
    for key, run in runs.items():
        pods = _pods(harness, key, run)
        node = pods[-1]["spec"]["nodeName"]
        instance = _instance(harness, node)
        broken[key] = node, instance, {pod["metadata"]["uid"] for pod in pods}
        breaks.append(harness.start("fault", "break", "--instance", instance, *fault.words))
    assert [each.wait() for each in breaks] == [0] * len(JOBS)
    began, waits = time.monotonic(), set(runs)
    said = ""

    def back() -> bool:
        nonlocal said
        if fault.reason and fault.reason not in said:
            said = harness.shell(f"{sys.executable} -m operations.status", check=False)
        for key in sorted(waits):
            pods = _pods(harness, key, runs[key])
            new = _running(pods) and not {p["metadata"]["uid"] for p in pods} & broken[key][2]
            if new or not fault.restarts:
                seconds[key] = time.monotonic() - began
                waits.discard(key)
        return not waits and bool(not fault.reason or fault.reason in said or _events(harness))

    assert until(back, every=1), (waits, harness.shell(_SEEN, check=False))
    for key, run in runs.items():
        assert until(lambda k=key, r=run: _state(harness, k, r) in ("Complete", "Succeeded")), (
            key,
            harness.shell(_SEEN, check=False),
        )
        if fault.restarts:
            assert "resumed from step" in _log(harness, key, run), key
    print(
        f"{name}: { ({key: round(took) for key, took in sorted(seconds.items())}) } s", flush=True
    )
    if fault.reason:
        assert fault.reason in _events(harness)
        print(f"{name}: make status named it: {fault.reason in said}", flush=True)
        gone = {instance for _, instance, _ in broken.values()}
        assert until(lambda: not gone & set(harness.gpu_instances())), "all are replaced"
    else:
        assert not harness.shell(f"kubectl get nodes -o yaml | grep {NOTE}", check=False)


def _events(harness: Harness) -> str:
    """What the program has said of nodes."""
    events = harness.get("events --namespace default")["items"]
    return " ".join(e["message"] for e in events if e["reason"].startswith("Repair"))


_SEEN = (
    "kubectl get nodes,nodeclaims; kubectl get pods -A -o wide;"
    f" kubectl logs -n {APP} deployment/{APP} --tail=60"
)
