"""Gangs of which one node comes late: the second one, or the first one, for each kind of job. All of them
are Complete, and none has spent a restart.

LATE seconds are more than the half hour of the issue, and more than torch's own 60 s and 600 s, because
limits run faster (late_gangs.py). The init container of the training-operator knows no speed: its number
of tries is looked at. With a queue: test_late_queue_world.py."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
import yaml

from tests.support.patience import until
from tests.support.worlds import NEEDS_A_WORLD
from tests.worlds import late_gangs
from tests.worlds.harness import rehearsing, with_l4
from tests.worlds.late_gangs import GANGS, SPEED, Gangs
from trainyard.catalog.limits import INIT_TRIES, NODES_SECONDS

pytestmark = [pytest.mark.world, pytest.mark.apart, NEEDS_A_WORLD]

LATE = 40
"""The half hour of the issue is 30 s long."""


def _stack(*, jobs: bool) -> str:
    made = with_l4(training_operator={"version": "1.8.1"})
    settings = made["trainyard:environment"]
    settings["pools"] = {"l4": late_gangs.POOL}
    settings["trainer"]["own_runtimes"] = late_gangs.RUNTIMES
    settings["jobs"] = late_gangs.jobs() if jobs else {}
    return yaml.safe_dump({"config": made})


@pytest.fixture(scope="module")
def gangs() -> Iterator[Gangs]:
    """All gangs have met, or not: each had one of its nodes LATE seconds after the other."""
    file = "Pulumi.late.yaml"
    with rehearsing("late", {**late_gangs.files(), file: _stack(jobs=False)}) as made:
        assert made.do("up", "--stack", "late") == 0, made.log.read_text()
        nodes = until(lambda: late_gangs.ready_nodes(made), made.log.read_text)
        made.shell(f"kubectl cordon {' '.join(nodes)}")
        (made.checkout / file).write_text(_stack(jobs=True))
        made.do("up", "--stack", "late", "--wait", "1")  # the gangs go on without it
        gangs = Gangs(harness=made, namespace="training")
        until(lambda: len(gangs.early()) == len(GANGS), made.log.read_text)
        gangs.bind(gangs.early().values(), nodes[:2])
        until(
            lambda: all(late_gangs.has_begun(pod) for pod in gangs.early().values()),
            gangs.seen,
            every=1,
        )
        time.sleep(LATE)
        made.shell(f"kubectl uncordon {' '.join(nodes[2:])}")
        yield gangs


@pytest.mark.parametrize("name", GANGS)
def test_a_gang_waits_for_its_late_node_and_spends_no_restart(gangs: Gangs, name: str) -> None:
    first, second = map(late_gangs.started, gangs.ends_without_a_restart(name))
    assert abs(first - second) >= LATE * 0.9 > 600 / SPEED, "it was late"


@pytest.mark.parametrize("name", [name for name in GANGS if GANGS[name] == "PyTorchJob"])
def test_a_worker_looks_up_its_master_for_as_long(gangs: Gangs, name: str) -> None:
    worker = gangs.pods()[name][1]
    [init] = worker["spec"]["initContainers"]
    assert f"seq {INIT_TRIES})" in init["command"][-1]
    assert f"sleep {NODES_SECONDS // INIT_TRIES};" in init["command"][-1]
