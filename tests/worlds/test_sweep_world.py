"""A sweep of six runs, two at once, under the real Trainer: also where `up` is killed on the way, where a run
fails, and where a value is added."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime

import pytest
import yaml

from rehearsal import processes
from tests.support.patience import until
from tests.support.worlds import NEEDS_A_WORLD
from tests.worlds.harness import VICTIMS, Harness, Object, rehearsing, with_l4

pytestmark = [pytest.mark.world, pytest.mark.soak, NEEDS_A_WORLD]

MINUTES = 12
AT_ONCE = 2
ORDER = ["tune-4", "tune-2", "tune-6", "tune-3", "tune-1", "tune-5"]
"""Written down a second time, beside the stack file: what the world is compared with."""
FAILS = "tune-6"
SCRIPT = """\
echo "step 1 eval_loss: {x}5.5"
sleep 10
test {x} != 6
echo "step 2 eval_loss: {x}.25"
"""


def stack(values: list[int]) -> str:
    tune: Object = {
        "runtime": "torch-distributed",
        "nodes": 1,
        "pool": "l4",
        "image": "registry.example.com/train:1",
        "script": SCRIPT,
        "shared_memory_gib": 8,
        "sweep": {
            "over": {"x": values},
            "at_most": AT_ONCE,
            "metric": {"name": "eval_loss", "goal": "minimize"},
        },
    }
    return yaml.safe_dump({"config": with_l4(jobs={"tune": tune})})


@pytest.fixture(scope="module")
def harness() -> Iterator[Harness]:
    empty = yaml.safe_dump({"config": with_l4()})
    with rehearsing("sweep", {"Pulumi.sweep.yaml": empty}) as made:
        assert made.do("up", "--stack", "sweep") == 0, made.log.read_text()
        yield made


def runs(harness: Harness) -> dict[str, Object]:
    found = harness.get("trainjobs --namespace training")["items"]
    return {each["metadata"]["name"]: each for each in found}


def began(run: Object) -> datetime:
    return datetime.fromisoformat(run["metadata"]["creationTimestamp"])


def ended(run: Object) -> datetime | None:
    """When a run was complete or had failed; None while it goes on."""
    times = [
        datetime.fromisoformat(each["lastTransitionTime"])
        for each in run.get("status", {}).get("conditions", [])
        if each["type"] in ("Complete", "Failed") and each["status"] == "True"
    ]
    return min(times, default=None)


def all_ended(harness: Harness, count: int) -> bool:
    found = runs(harness)
    return len(found) == count and all(ended(run) for run in found.values())


def test_an_up_that_is_killed_goes_on_with_the_sweep(harness: Harness) -> None:
    (harness.checkout / "Pulumi.sweep.yaml").write_text(stack([4, 2, 6, 3, 1, 5]))
    killed = harness.start("up", "--stack", "sweep")
    seen = processes.wait(lambda: ORDER[2] in runs(harness), MINUTES * 60, 0.5)
    assert seen, harness.log.read_text()
    until(lambda: harness.kill(*VICTIMS["engine"]))
    assert killed.wait() != 0 and {*runs(harness)} < {*ORDER}
    assert harness.do("up", "--stack", "sweep") == 1, (
        "the word says at its end that a job has failed"
    )
    assert f"job training/{FAILS} is Failed" in harness.said("up"), harness.log.read_text()
    assert processes.wait(lambda: all_ended(harness, 6), MINUTES * 60, 1)


def test_two_went_on_at_once_and_no_more_in_the_order_of_the_file(harness: Harness) -> None:
    """Counted from the times of the objects alone: at the moment at which a run was made, how many others had
    begun and not ended."""
    made = runs(harness)
    assert {*made} == {*ORDER}
    order = sorted(made, key=lambda name: began(made[name]))
    assert {*order[:2]} == {*ORDER[:2]} and order[2:] == ORDER[2:]
    end = ended(made[order[0]])
    assert end and began(made[order[1]]) < end
    beside = []
    for name in order[AT_ONCE:]:
        now = began(made[name])
        ends = {other: ended(made[other]) for other in order[: order.index(name)]}
        beside.append(sum(end is None or end > now for end in ends.values()))
    assert len(beside) == 4 and all(number < AT_ONCE for number in beside)


def test_a_run_that_failed_held_nobody_up(harness: Harness) -> None:
    types = {
        name: [each["type"] for each in run["status"]["conditions"] if each["status"] == "True"]
        for name, run in runs(harness).items()
    }
    assert [name for name in ORDER if "Failed" in types[name]] == [FAILS]
    assert all("Complete" in types[name] for name in ORDER if name != FAILS)


def test_runs_lists_the_sweep_with_the_best_first(harness: Harness) -> None:
    assert harness.tool("runs", "sweep", "--json") == 0, harness.log.read_text()
    text = next(line for line in harness.said("runs").splitlines() if line.startswith("{"))
    said = {run["job"]: run["metric"] for run in json.loads(text)["runs"]}
    assert said == {
        "tune-1": 1.25,
        "tune-2": 2.25,
        "tune-3": 3.25,
        "tune-4": 4.25,
        "tune-5": 5.25,
    } | {FAILS: said[FAILS]}
    assert harness.tool("runs", "sweep") == 0
    table = harness.said("runs").partition("sweep training/tune, minimize eval_loss")[2]
    first = table.splitlines()[2].split()
    assert first == ["tune-1", "1", "1.25", "Complete", "best"]


def test_another_value_starts_one_run_and_ends_none(harness: Harness) -> None:
    before = {name: each["metadata"]["uid"] for name, each in runs(harness).items()}
    (harness.checkout / "Pulumi.sweep.yaml").write_text(stack([7, 4, 2, 6, 3, 1, 5]))
    assert harness.do("up", "--stack", "sweep") == 1, harness.log.read_text()
    now = {name: each["metadata"]["uid"] for name, each in runs(harness).items()}
    assert {*now} - {*before} == {"tune-7"} and before.items() <= now.items()
