"""The matrix of faults, under three kinds of gangs: a TrainJob on demand, one in a static pool with a
spare, and a PyTorchJob. The gangs train all the time, and one fault after the other hits each of them.

The real Karpenter replaces nodes, the real JobSet and training-operator start gangs anew. Faults:
fault_rows.py. Seconds are those of this machine; an instance boots as fast as the world's speed says."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest
import yaml

from catalog.job_kinds import JOB_KINDS, SUCCEEDED, true_conditions
from catalog.latencies import TYPICAL
from plans.repair import APP, NOTE
from rehearsal import world
from tests.support.patience import until
from tests.worlds.fault_rows import FAULTS, Fault
from tests.worlds.harness import Harness, Object, rehearsing, with_l4

pytestmark = [
    pytest.mark.world,
    pytest.mark.soak,
    pytest.mark.skipif(world.obstacle() is not None, reason=str(world.obstacle())),
]

STEPS = 100_000
"""More than any test takes; `test_all_runs_end_complete` lets the runs resume near their end."""
SPOT = {"capacity": "spot"}
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
        "env": {
            "TRAINYARD_STEPS": str(STEPS),
            "TRAINYARD_STEP_SECONDS": "0.5",
            "HEARTBEAT_SECONDS": "20",
        },
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
    "operator": ("l4", "PyTorchJob", {"pytorch_job": {"clean_pods": "none", "restarts": 100}}),
}
"""Job → its pool, its kind, and more of its entry."""


def _stack(**pool: str) -> Object:
    made = with_l4(
        max_nodes=6,
        training_operator={"version": "1.8.1"},
        storage={"home": {"efs": {}, "data": "delete"}},
        repair={"nodes_an_hour": 50},
        jobs={key: _job(of, key, **more) for key, (of, _, more) in JOBS.items()},
    )
    settings = made["trainyard:environment"]
    settings["pools"]["static"] = STATIC
    settings["pools"]["l4"] |= pool
    settings["trainer"]["own_runtimes"] = {"gang": {"image": "trainer:1", "max_restarts": 100}}
    return made


@pytest.fixture(scope="module")
def harness(request: pytest.FixtureRequest) -> Iterator[Harness]:
    spot = any("spot notice" in item.name for item in request.session.items)
    stack = _stack(**(SPOT if spot else {}))
    file = {"Pulumi.heal.yaml": yaml.safe_dump({"config": stack}), "step.py": "import torch\n"}
    with rehearsing("heal", file) as made:
        made.do("up", "--stack", "heal", "--wait", "1")  # the runs go on without it
        for key in JOBS:
            assert until(lambda key=key: _step(made, key) > 3, every=1), _seen(made)
        yield made


def _pods(harness: Harness, key: str) -> list[Object]:
    label = JOB_KINDS[JOBS[key][1]].pod_label
    found = harness.get(f"pods -n training -l {label}={key}")["items"]
    return sorted(found, key=lambda pod: pod["metadata"]["name"])


def _log(harness: Harness, key: str) -> str:
    label = JOB_KINDS[JOBS[key][1]].pod_label
    return harness.shell(f"kubectl logs -n training -l {label}={key} --tail=-1", check=False)


def _checkpoint(harness: Harness, key: str) -> Any:
    return next(harness.state.glob(f"file-systems/*/{key}/stand-in-checkpoint.json"), None)


def _step(harness: Harness, key: str) -> int:
    """Of the last checkpoint."""
    found = _checkpoint(harness, key)
    try:
        return json.loads(found.read_text())["step"] if found else -1
    except (ValueError, FileNotFoundError):
        return -1


def _anew(pods: list[Object], since: float, broken: set[str]) -> bool:
    """Whether all ranks run, started after that second of the clock, and none on a broken node."""
    if {pod["spec"].get("nodeName") for pod in pods} & broken:
        return False
    states = [
        status["state"].get("running", {}).get("startedAt", "")
        for pod in pods
        if "deletionTimestamp" not in pod["metadata"]
        for status in pod["status"].get("containerStatuses", [])
    ]
    return len(states) == 2 and all(
        at and datetime.fromisoformat(at).timestamp() >= int(since) for at in states
    )


def _outcome(harness: Harness, key: str) -> str:
    conditions = true_conditions(harness.get(f"{JOBS[key][1].lower()} {key} -n training"))
    return conditions[-1]["type"] if conditions else ""


def _nodes(harness: Harness, key: str) -> dict[str, str]:
    """Node → instance of each of its pods, by rank."""
    names = [pod["spec"]["nodeName"] for pod in _pods(harness, key)]
    return {
        name: harness.get(f"node {name}")["spec"]["providerID"].rpartition("/")[2] for name in names
    }


def _break(harness: Harness, fault: Fault, hit: dict[str, dict[str, str]]) -> None:
    """Plant the fault under all gangs at the same time."""
    victims = [
        each
        for nodes in hit.values()
        for each in ([*nodes.values()] if fault.everywhere else [*nodes.values()][-1:])
    ]
    for first in fault.before:
        assert harness.do("fault", *first) == 0
    started = [harness.start("fault", *fault.words(each)) for each in victims]
    if not fault.breaks:
        started = [harness.start("fault", *fault.once)] if fault.once else []
    assert [each.wait() for each in started] == [0] * len(started)


def _mend(harness: Harness, fault: Fault) -> None:
    for words in fault.mended:
        assert harness.do("fault", *words) == 0
    if fault.mends:
        on = {each for key in JOBS for each in _nodes(harness, key).values()}
        done = [harness.start("fault", *fault.words(each, fault.mends)) for each in sorted(on)]
        assert [each.wait() for each in done] == [0] * len(done)


def _status(harness: Harness) -> str:
    return harness.shell(f"{sys.executable} -m operations.status 0.2", check=False)


@pytest.mark.parametrize("name", FAULTS)
def test_a_gang_goes_on_or_the_reason_is_told(harness: Harness, name: str) -> None:
    fault, took = FAULTS[name], dict[str, float]()
    hit = {key: _nodes(harness, key) for key in JOBS}
    replaced = {[*nodes][-1] for nodes in hit.values()} if fault.reason or fault.leaves else set()
    steps = {key: _step(harness, key) for key in JOBS}
    began = time.time()
    _break(harness, fault, hit)
    planted, said = time.time(), ""

    def told() -> bool:
        nonlocal said
        said = _status(harness)
        return all(words in said for words in fault.says)

    def back() -> bool:
        for key in sorted({*JOBS} - {*took}):
            since = began + fault.restarts_after
            if not fault.restarts or _anew(_pods(harness, key), since, replaced):
                took[key] = time.time() - planted
        return len(took) == len(JOBS)

    if fault.says:
        assert until(told, lambda: said + _seen(harness), every=2), said
        print(f"{name}: make status said so after {time.time() - planted:.0f} s", flush=True)
    _mend(harness, fault)
    assert until(back, lambda: f"{name}: {took} {_seen(harness)}", every=1)
    for key in JOBS:
        more = max(steps[key], _step(harness, key)) + 8
        assert until(lambda key=key, more=more: _step(harness, key) >= more, every=0.5), key
        if fault.restarts:
            assert "resumed from step" in _log(harness, key), key
    print(f"{name}: {_told(fault, took)}", flush=True)
    if fault.reason:
        assert fault.reason in _events(harness)
        gone = {[*nodes.values()][-1] for nodes in hit.values()}
        assert until(lambda: not gone & set(harness.gpu_instances())), "all are replaced"
    elif not fault.leaves:
        assert {key: _nodes(harness, key) for key in JOBS} == hit, "no node is replaced"
        assert not harness.shell(f"kubectl get nodes -o yaml | grep {NOTE}", check=False)


def _told(fault: Fault, took: dict[str, float]) -> str:
    """Seconds from the fault to all ranks running: here, and with the boots and pulls of AWS."""
    if not fault.restarts:
        return "the runs went on"
    boots = TYPICAL["ec2.instance-boot"] + TYPICAL["job.image-pull"]
    cold = {"ondemand", "operator"} if fault.reason or fault.leaves else set[str]()
    return ", ".join(
        f"{key} {seconds:.0f} s here, {seconds + (boots if key in cold else 0):.0f} s on AWS"
        for key, seconds in sorted(took.items())
    )


def test_all_runs_end_complete(harness: Harness) -> None:
    """They resume near their end."""
    hit = {key: _nodes(harness, key) for key in JOBS}
    _break(harness, FAULTS["rank killed"], hit)
    end = time.monotonic() + 8
    while time.monotonic() < end:
        for key in JOBS:
            if found := _checkpoint(harness, key):
                fresh = found.with_suffix(".near")
                fresh.write_text(json.dumps({"step": STEPS - 20}))
                fresh.replace(found)
        time.sleep(0.2)
    for key in JOBS:
        assert until(lambda key=key: _outcome(harness, key) in SUCCEEDED, every=1), _seen(harness)


def _events(harness: Harness) -> str:
    """What the program has said of nodes."""
    events = harness.get("events --namespace default")["items"]
    return " ".join(e["message"] for e in events if e["reason"].startswith("Repair"))


def _seen(harness: Harness) -> str:
    return _status(harness) + harness.shell(
        "kubectl get nodes,nodeclaims; kubectl get pods -A -o wide;"
        f" kubectl logs -n {APP} deployment/{APP} --tail=60",
        check=False,
    )
