"""The matrix of faults, under three kinds of gangs: a TrainJob on demand, one in a static pool with a
spare, and a PyTorchJob. The gangs train all the time, and one fault after the other hits each of them.

The real Karpenter replaces nodes, the real JobSet and training-operator start gangs anew. Faults:
fault_rows.py. Seconds are those of this machine; an instance boots as fast as the world's speed says."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Iterable, Iterator, Set
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import pytest
import yaml

from rehearsal.kubelet.container import LONGEST_BACK_OFF
from tests.support.patience import until
from tests.support.worlds import NEEDS_A_WORLD
from tests.worlds.fault_rows import FAULTS, RETIREMENT, SPOT, Fault
from tests.worlds.harness import Harness, Object, rehearsing, with_l4
from trainyard.catalog.aws.latencies import LATENCIES, TYPICAL
from trainyard.catalog.job_kinds import JOB_KINDS, SUCCEEDED, true_conditions
from trainyard.catalog.limits import GANG, NO_CAPACITY_SECONDS
from trainyard.catalog.repair import PATIENCE_SECONDS
from trainyard.objects.programs.repair import APP, NOTE

pytestmark = [pytest.mark.world, pytest.mark.soak, NEEDS_A_WORLD]

SPEED = 60
"""The world's: AWS's durations are divided by it, but for EC2's status checks."""
BACK_SECONDS = (
    PATIENCE_SECONDS
    + NO_CAPACITY_SECONDS
    + LONGEST_BACK_OFF
    + sum(LATENCIES[row].slow for row in GANG) / SPEED
)
"""For a gang that comes back: the longest silence of a node that is waited for, Karpenter's pause where EC2
had no capacity, the longest pause of kubelet before a rank of a PyTorchJob starts again, and a new node
with the image."""
STEPS = 100_000
"""More than any test takes; `test_all_runs_end_complete` lets the runs resume near their end."""
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
        repair={"nodes_an_hour": 50, "hung_minutes": 1},
        jobs={key: _job(of, key, **more) for key, (of, _, more) in JOBS.items()},
    )
    settings = made["trainyard:environment"]
    settings["pools"]["static"] = STATIC
    settings["pools"]["l4"] |= pool
    settings["trainer"]["own_runtimes"] = {"gang": {"image": "trainer:1", "max_restarts": 100}}
    return made


@contextmanager
def _training(**pool: str) -> Iterator[Harness]:
    """A world in which all gangs have saved checkpoints. `pool`: more of the pool that is not
    static."""
    config = yaml.safe_dump({"config": _stack(**pool)})
    with rehearsing("heal", {"Pulumi.heal.yaml": config, "step.py": "import torch\n"}) as made:
        made.do("up", "--stack", "heal", "--wait", "1")  # the runs go on without it
        for key in JOBS:
            assert until(lambda key=key: _step(made, key) > 3, every=1), _seen(made)
        yield made


@pytest.fixture(scope="module")
def harness() -> Iterator[Harness]:
    with _training() as made:
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


def _ranks(harness: Harness, jobs: Iterable[str] = JOBS) -> list[tuple[str, int]]:
    """Pods of gangs, and how often each has started anew."""
    return [
        (pod["metadata"]["uid"], pod["status"]["containerStatuses"][0]["restartCount"])
        for key in jobs
        for pod in _pods(harness, key)
    ]


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
    for first in fault.before:
        assert harness.do("fault", *first) == 0
    words = [fault.once] if fault.once else []
    for nodes in hit.values():
        chosen = [*nodes.values()] if fault.everywhere else [*nodes.values()][-1:]
        words += [] if fault.once else [fault.words(each) for each in chosen]
    started = [harness.start("fault", *each) for each in words]
    assert [each.wait() for each in started] == [0] * len(started)


def _mend(harness: Harness, fault: Fault) -> None:
    for words in fault.mended:
        assert harness.do("fault", *words) == 0
    if fault.mends:
        on = {each for key in JOBS for each in _nodes(harness, key).values()}
        mends = ("--what", fault.mends)
        done = [harness.start("fault", "break", "--instance", each, *mends) for each in sorted(on)]
        assert [each.wait() for each in done] == [0] * len(done)


def _status(harness: Harness) -> str:
    return harness.shell(
        f"{sys.executable} -m trainyard status --stack {harness.stack} --silence 0.2", check=False
    )


SILENT_SECONDS = 240
"""For which half of the kubelets say nothing."""


def test_a_node_that_died_beside_silent_ones_goes_and_no_other_gang_starts_anew(
    harness: Harness,
) -> None:
    hit = {key: _nodes(harness, key) for key in JOBS}
    [*_, (node, dead)] = hit["ondemand"].items()
    silent = [*hit["operator"].values(), [*hit["spare"].values()][-1]]
    others, began = {"operator", "spare"}, time.time()
    ranks = _ranks(harness, sorted(others))
    steps = {key: _step(harness, key) for key in others}
    breaks = [(one, "kubelet-silent", "--seconds", str(SILENT_SECONDS)) for one in silent]
    words = [("break", "--instance", one, "--what", *what) for one, *what in breaks]
    words += [("break", "--instance", dead, "--what", "node-lost")]
    started = [harness.start("fault", *each) for each in words]
    assert [each.wait() for each in started] == [0] * len(started)
    planted = time.time()
    assert until(lambda: _anew(_pods(harness, "ondemand"), began, {node}), every=1), _seen(harness)
    print(f"died beside silent ones: {time.time() - planted:.0f} s here", flush=True)
    said = _status(harness)
    assert said.count("is silent") == len(silent), said
    time.sleep(max(0.0, planted + SILENT_SECONDS + 45 - time.time()))
    assert ranks == _ranks(harness, sorted(others)), _seen(harness)
    for key in others:
        assert until(lambda key=key: _step(harness, key) > steps[key] + 8), _seen(harness)
    sick = f"kubectl get nodes -o yaml | grep {NOTE}"
    assert until(lambda: not harness.shell(sick, check=False), lambda: _seen(harness), every=1)
    assert dead not in harness.gpu_instances() and {*silent} <= {*harness.gpu_instances()}


@pytest.mark.parametrize("name", FAULTS)
def test_a_gang_goes_on_or_the_reason_is_told(harness: Harness, name: str) -> None:
    _goes_on(harness, name, FAULTS[name])


def test_a_gang_goes_on_after_a_notice_of_aws() -> None:
    """The static pool is the only one that is not spot."""
    with _training(capacity="spot") as harness:
        _goes_on(harness, "spot notice", SPOT, {"ondemand", "operator"})
        _goes_on(harness, "retirement", RETIREMENT, {"spare"})


def _goes_on(harness: Harness, name: str, fault: Fault, jobs: Set[str] = JOBS.keys()) -> None:
    hit = {key: _nodes(harness, key) for key in JOBS if key in jobs}
    steps = {key: _step(harness, key) for key in hit}
    broken = {[*nodes][-1] for nodes in hit.values()} if fault.node_goes else set[str]()
    ranks, began = _ranks(harness), time.time()
    _break(harness, fault, hit)
    planted, took = time.time(), dict[str, float]()

    def back() -> bool:
        for key in sorted({*hit} - {*took}):
            if not fault.restarts or _anew(_pods(harness, key), began, broken):
                took[key] = time.time() - planted
        return len(took) == len(hit)

    time.sleep(fault.lasts)
    _said(harness, name, fault)
    _mend(harness, fault)
    if fault.by_hand:
        _by_hand(harness, broken)
    assert until(back, lambda: f"{name}: {took} {_seen(harness)}", every=1, seconds=BACK_SECONDS)
    for key in hit:
        more = max(steps[key], _step(harness, key)) + 8
        assert until(lambda key=key, more=more: _step(harness, key) >= more, every=0.5), key
        if fault.restarts:  # a rank that starts anew once more has an empty log for a moment
            assert until(lambda key=key: "resumed from step" in _log(harness, key)), key
    assert not fault.untouched or ranks == _ranks(harness)
    print(f"{name}: {_told(fault, took)}", flush=True)
    _nodes_are(harness, fault, hit)


def _said(harness: Harness, name: str, fault: Fault) -> None:
    """`trainyard status` says what it must, and soon."""
    if fault.says:
        began, last = time.monotonic(), ""

        def told() -> bool:
            nonlocal last
            last = _status(harness)
            return all(words in last for words in fault.says)

        assert until(told, lambda: last + _seen(harness), every=2)
        print(
            f"{name}: trainyard status said so after {time.monotonic() - began:.0f} s", flush=True
        )


def _by_hand(harness: Harness, nodes: set[str]) -> None:
    """What `trainyard status` proposes, as soon as it names each of the nodes: not all gangs have started
    anew at the same moment."""

    def proposed() -> list[str]:
        lines = re.findall(
            r"kubectl cordon \S+; kubectl delete nodeclaim \S+ --wait=false"
            r"(?:; kubectl -n training delete pod \S+)*"
            r"|kubectl -n training delete pod \S+",
            _status(harness),
        )
        return lines if len(lines) == len(nodes) else []

    for line in until(proposed, lambda: _seen(harness), every=2):
        harness.shell(f"{line} --wait=false" if " pod " in line else line)


def _nodes_are(harness: Harness, fault: Fault, gangs: dict[str, dict[str, str]]) -> None:
    """Replaced by the program, by somebody else, or not at all."""
    hit = {each for nodes in gangs.values() for each in nodes.values()}
    if fault.node_goes:
        assert fault.reason in _events(harness)
        # One of each gang, and all that are sick.
        assert until(lambda: len(hit - {*harness.gpu_instances()}) == len(gangs)), (
            "all are replaced"
        )
    else:
        assert hit <= {*harness.gpu_instances()}, "no node is replaced"
        noted = harness.shell(f"kubectl get nodes -o yaml | grep {NOTE}", check=False)
        assert all(words in noted for words in fault.says if words.startswith("Nvidia"))
        assert not noted or fault.says, noted


def _told(fault: Fault, took: dict[str, float]) -> str:
    """Seconds from the fault to all ranks running: here, and with a boot of AWS. Images are pulled
    while a node boots."""
    if not fault.restarts:
        return "the runs went on"
    pulled = TYPICAL["ec2.instance-ready"] + TYPICAL["job.image-pull"]
    boot = max(TYPICAL["ec2.instance-boot"], pulled) - TYPICAL["ec2.instance-boot"] / SPEED
    cold = {"ondemand", "operator"} if fault.node_goes else set[str]()
    return ", ".join(
        f"{key} {seconds:.0f} s here, {seconds + (boot if key in cold else 0):.0f} s on AWS"
        for key, seconds in sorted(took.items())
    )


def test_all_runs_end_complete(harness: Harness) -> None:
    """They resume near their end. Then nothing holds sick nodes any more."""
    hit = {key: _nodes(harness, key) for key in JOBS}
    _break(harness, FAULTS["rank killed"], hit)

    def near() -> bool:
        for found in filter(None, (_checkpoint(harness, key) for key in JOBS)):
            fresh = found.with_suffix(".near")
            fresh.write_text(json.dumps({"step": STEPS - 20}))
            fresh.replace(found)
        return all(f"resumed from step {STEPS - 20}" in _log(harness, key) for key in JOBS)

    assert until(near, every=0.2)
    for key in JOBS:
        assert until(lambda key=key: _outcome(harness, key) in SUCCEEDED, every=1), _seen(harness)
    sick = f"kubectl get nodes -o yaml | grep {NOTE}"
    assert until(lambda: not harness.shell(sick, check=False), every=1)


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
