"""A run that nobody disturbs raises no alert."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import yaml

from plans.metrics import INTERVAL_SECONDS
from rehearsal import world
from tests.worlds.harness import Harness, Object, rehearsing, with_l4
from tests.worlds.prometheus import values

pytestmark = [
    pytest.mark.world,
    pytest.mark.soak,
    pytest.mark.skipif(world.obstacle() is not None, reason=str(world.obstacle())),
]

UNDISTURBED_MINUTES = 15
JOB: Object = {
    "runtime": "torch-distributed",
    "nodes": 2,
    "pool": "l4",
    "image": "trainer:1",
    "shared_memory_gib": 8,
    "parameters_billion": 1,
    "checkpoints": {"store": "home", "directory": "calm", "interval_minutes": 5},
    "env": {"TRAINYARD_STEPS": str(UNDISTURBED_MINUTES * 60), "TRAINYARD_STEP_SECONDS": "1"},
    "torchrun": {"script": "/workspace/train/step.py"},
    "files": {"sources": ["step.py"], "path": "/workspace/train"},
}
"""A job that trains as long as nobody disturbs it."""
STACK = with_l4(
    max_nodes=3,  # more than the job takes: a pool that is full is an alert
    storage={"home": {"efs": {}, "data": "delete"}},
    history={"progress": True},
    repair={},
    metrics={},
    jobs={"calm": JOB},
)


@pytest.fixture(scope="module")
def calm() -> Iterator[Harness]:
    """After the run."""
    files = {"Pulumi.calm.yaml": yaml.safe_dump({"config": STACK}), "step.py": "import torch\n"}
    with rehearsing("calm", files) as made:
        unchanged = str(2 * UNDISTURBED_MINUTES * 60)  # seconds
        status = made.do("up", "--stack", "calm", "--wait", unchanged)
        assert status == 0, made.log.read_text()
        yield made


def test_a_run_that_nobody_disturbs_raises_no_alert(calm: Harness) -> None:
    """A gang trains, saves and ends, and nothing but Watchdog has fired meanwhile."""
    span = f"[{UNDISTURBED_MINUTES}m]"
    fired = f'count_over_time(ALERTS{{alertstate="firing"}}{span})'
    assert {*values(calm, fired, "alertname")} == {"Watchdog"}
    steps = values(calm, f"max_over_time(trainyard_run_step{span})", "run")
    unseen = 2 * INTERVAL_SECONDS  # the last steps: nobody asks again after the end
    assert steps["calm"] > UNDISTURBED_MINUTES * 60 - unseen, "it was not followed to its end"
    nodes = values(calm, f'max_over_time(up{{job="nodes"}}{span}) == 1', "node")
    assert len(nodes) == 2, "the nodes of the run were never asked"
