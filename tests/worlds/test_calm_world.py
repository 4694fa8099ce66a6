"""A run that nobody disturbs raises no alert."""

from __future__ import annotations

import time
from collections.abc import Iterator
from urllib.parse import quote

import pygal
import pytest
import yaml

from tests.support.recording import CHECKOUT
from tests.support.worlds import NEEDS_A_WORLD
from tests.worlds.harness import Harness, Object, rehearsing, with_l4
from tests.worlds.prometheus import asked, values
from trainyard.objects.metrics.metrics import INTERVAL_SECONDS
from trainyard.objects.metrics.queries import QUERIES, query

pytestmark = [pytest.mark.world, pytest.mark.soak, NEEDS_A_WORLD]

UNDISTURBED_MINUTES = 15
PICTURES = CHECKOUT / "docs" / "pictures"
DRAWN = {
    "run-step": ("run step",),
    "run-step-seconds": ("run step seconds",),
    "run-unsaved": ("run unsaved", "run interval"),
    "run-goodput": ("run goodput", "run planned goodput"),
}
"""Name of a picture → names of its queries."""
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


def test_a_run_that_nobody_disturbs_raises_no_alert(
    calm: Harness, request: pytest.FixtureRequest
) -> None:
    """A gang trains, saves and ends, and nothing but Watchdog has fired meanwhile. `--golden` draws the run
    for docs/metrics.md."""
    span = f"[{UNDISTURBED_MINUTES}m]"
    fired = f'count_over_time(ALERTS{{alertstate="firing"}}{span})'
    assert {*values(calm, fired, "alertname")} == {"Watchdog"}
    steps = values(calm, f"max_over_time(trainyard_run_step{span})", "run")
    unseen = 2 * INTERVAL_SECONDS  # the last steps: nobody asks again after the end
    assert steps["calm"] > UNDISTURBED_MINUTES * 60 - unseen, "it was not followed to its end"
    nodes = values(calm, f'max_over_time(up{{job="nodes"}}{span}) == 1', "node")
    assert len(nodes) == 2, "the nodes of the run were never asked"
    pictures = {name: _picture(calm, *names) for name, names in DRAWN.items()}
    if request.config.getoption("--golden"):
        for name, picture in pictures.items():
            (PICTURES / f"{name}.svg").write_bytes(picture)


def _picture(calm: Harness, *names: str) -> bytes:
    """Queries of the calm run, as the page of a run shows them."""
    chart = pygal.XY(
        js=(),
        width=480,
        height=280,
        show_dots=False,
        include_x_axis=True,
        truncate_legend=-1,
        legend_at_bottom=True,
        legend_at_bottom_columns=1,
        x_title="minutes",
    )
    now = int(time.time())
    span = f"start={now - 60 * (UNDISTURBED_MINUTES + 5)}&end={now}&step=15"
    for name in names:
        asked_for = quote(query(name, 'run="calm"'))
        [found] = asked(calm, f"query_range?query={asked_for}&{span}")["result"]
        began = found["values"][0][0]
        points = [((at - began) / 60, float(value)) for at, value in found["values"]]
        chart.add(QUERIES[name].title, points)
    return chart.render()
