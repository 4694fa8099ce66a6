"""An elastic PyTorchJob of the program trains for real, loses nodes, and goes on with those that it has: the
training-operator at a real API server makes its pods, torchrun and torch run in them."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rehearsal.kube import Object
from tests.support.cases.jobs import JOB, SCRIPT, pytorch_job
from tests.support.operator_server import Operator, operator_server
from tests.support.stackfile import at, environment_plan, without
from tests.workloads_train.elastic_pods import PROGRAM, ElasticPods
from trainyard.catalog.job_kinds import JOB_KINDS

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="real training needs torch: make train-real"
)

STEPS, EVERY = 240, 20
"""Steps of a run, and from one checkpoint to the next."""
PATIENCE = 400
ROUNDING = 1e-4
"""How much losses of equal steps may differ, relatively: two ranks add the same numbers in another order than
four."""


def job(name: str) -> Object:
    """The object that a stack sends: four spot nodes, of which two can leave."""
    plan = environment_plan(
        *pytorch_job(restarts=10),
        without(SCRIPT),
        at("pools.spot", {"instance_types": ["m7i.4xlarge"], "max_nodes": 4, "capacity": "spot"}),
        at(f"{JOB}.pool", "spot"),
        at(f"{JOB}.nodes", 4),
        at(f"{JOB}.processes_per_node", 1),
        at(f"{JOB}.elastic", {"min_nodes": 2, "max_nodes": 4}),
        at(
            f"{JOB}.torchrun",
            {
                "script": PROGRAM,
                "arguments": [f"--steps={STEPS}", f"--steps-per-checkpoint={EVERY}"],
            },
        ),
        at(f"{JOB}.checkpoints", {"store": "scratch", "directory": "elastic", "keep": 3}),
    ).jobs["t5-large"]
    return {
        "apiVersion": JOB_KINDS[plan.kind].api_version,
        "kind": plan.kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": plan.spec,
    }


@pytest.fixture(scope="module")
def operator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    with operator_server(tmp_path_factory.mktemp("operator")) as made:
        yield made


@contextmanager
def running(operator: Operator, folder: Path, name: str, **env: str) -> Iterator[ElasticPods]:
    pods = ElasticPods(operator=operator, job=job(name), folder=folder / name, nodes=4, env=env)
    try:
        yield pods.start()
    finally:
        pods.end()


def goes_on(pods: ElasticPods, until: Callable[[], bool]) -> None:
    """Until something holds, or the job has ended."""
    end = time.monotonic() + PATIENCE
    while not until():
        assert time.monotonic() < end and pods.look(), (pods.conditions, pods.ended, pods.log)
        time.sleep(0.1)


def ends(pods: ElasticPods) -> dict[int, float]:
    """Step → loss of a job that goes to its end, and is called Succeeded."""
    end = time.monotonic() + PATIENCE
    while pods.look():
        assert time.monotonic() < end, pods.log
        time.sleep(0.1)
    assert "Succeeded" in pods.conditions, (pods.conditions, pods.log)
    return {step: loss for step, (loss, _) in pods.losses.items()}


@pytest.fixture(scope="module")
def undisturbed(
    operator: Operator, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[int, float]]:
    with running(operator, tmp_path_factory.mktemp("undisturbed"), "undisturbed") as pods:
        found = ends(pods)
        assert [*found] == [*range(STEPS)] and found[STEPS - 1] < found[0] / 2
        yield found


def ranks_of_the_last_step(pods: ElasticPods) -> int:
    losses = pods.losses
    return losses[max(losses)][1] if losses else 0


def test_two_of_four_nodes_leave_and_come_back_and_every_step_has_the_same_loss(
    operator: Operator, undisturbed: dict[int, float], tmp_path: Path
) -> None:
    """A spot notice makes the job smaller: no container of the nodes that stay ends."""
    with running(operator, tmp_path, "spot", STEP_SECONDS="0.4") as pods:
        goes_on(pods, lambda: len(pods.losses) > EVERY + 5)
        pods.leaves("spot-worker-2", "spot-worker-3")
        left_at = max(pods.losses)
        goes_on(pods, lambda: ranks_of_the_last_step(pods) == 2)
        assert "Running" in pods.conditions and pods.running == 2
        pods.nodes = 4
        goes_on(pods, lambda: ranks_of_the_last_step(pods) == 4)
        found = ends(pods)
    ranks = [count for _, (_, count) in sorted(pods.losses.items())]
    assert ranks[0] == ranks[-1] == 4 and 2 in ranks and pods.ended == []
    assert f"resumed from step-{left_at:08}" in pods.log, "it saved because it was asked to stop"
    assert found == {
        step: pytest.approx(loss, rel=ROUNDING, abs=1e-7) for step, loss in undisturbed.items()
    }


def test_without_the_node_that_hosts_the_rendezvous_the_others_start_again_and_wait_for_it(
    operator: Operator, undisturbed: dict[int, float], tmp_path: Path
) -> None:
    """What the warning says: each container that stays ends, and nobody trains until worker-0 is back."""
    with running(operator, tmp_path, "first", STEP_SECONDS="0.4") as pods:
        goes_on(pods, lambda: len(pods.losses) > EVERY + 5)
        pods.leaves("first-worker-0")
        goes_on(pods, lambda: len(pods.ended) == 3)
        before = max(pods.losses)
        assert {name for name, _ in pods.ended} == {f"first-worker-{n}" for n in (1, 2, 3)}
        assert pods.running == 3 and "Failed" not in pods.conditions
        pods.nodes = 4
        found = ends(pods)
    assert before < STEPS - 1 and found == {
        step: pytest.approx(loss, rel=ROUNDING, abs=1e-7) for step, loss in undisturbed.items()
    }
