"""Jobs of two kinds one after another, under the real Trainer and the real training-operator: also where `up` is
killed on the way, and not beyond one that fails."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import yaml

from rehearsal import processes
from tests.support.patience import until
from tests.support.worlds import NEEDS_A_WORLD
from tests.worlds.harness import VICTIMS, Harness, Object, rehearsing, with_l4

pytestmark = [pytest.mark.world, pytest.mark.soak, NEEDS_A_WORLD]

MINUTES = 10
ENDS = {"prepare": "Complete", "train": "Succeeded", "evaluate": "Complete", "export": "Complete"}
BEFORE = {"train": ["prepare"], "evaluate": ["train"], "export": ["prepare", "evaluate"]}
"""Written down a second time, beside the stack file: what the world is compared with."""


def job(script: str, *after: str, **more: object) -> Object:
    return {
        "nodes": 1,
        "pool": "l4",
        "image": "registry.example.com/train:1",
        "script": script,
        "shared_memory_gib": 8,
        "after": [*after],
        **({"runtime": "torch-distributed"} if "pytorch_job" not in more else {}),
        **more,
    }


def stack(**jobs: Object) -> str:
    more: Object = {"training_operator": {"version": "1.8.1"}, "jobs": jobs}
    return yaml.safe_dump({"config": with_l4(**more)})


CHAIN = {
    # Not in their order.
    "export": job("echo exported", "prepare", "evaluate", wait="complete"),
    "evaluate": job("echo evaluated", "train"),
    "train": job("sleep 5; echo trained", "prepare", pytorch_job={}),
    "prepare": job("sleep 20; echo prepared"),
}


@pytest.fixture(scope="module")
def harness() -> Iterator[Harness]:
    with rehearsing("after", {"Pulumi.after.yaml": stack()}) as made:
        assert made.do("up", "--stack", "after") == 0, made.log.read_text()
        yield made


def write(harness: Harness, **jobs: Object) -> None:
    (harness.checkout / "Pulumi.after.yaml").write_text(stack(**jobs))


def runs(harness: Harness) -> dict[str, Object]:
    found = harness.get("trainjobs,pytorchjobs --namespace training")["items"]
    return {each["metadata"]["name"]: each for each in found}


def ended(run: Object) -> dict[str, str]:
    """Condition of a run that is true → since when."""
    conditions = run.get("status", {}).get("conditions", [])
    return {
        each["type"]: each["lastTransitionTime"] for each in conditions if each["status"] == "True"
    }


def test_an_up_that_is_killed_goes_on_with_the_order(harness: Harness) -> None:
    write(harness, **CHAIN)
    killed = harness.start("up", "--stack", "after")
    seen = processes.wait(lambda: "prepare" in runs(harness), MINUTES * 60, 0.5)
    assert seen, harness.log.read_text()
    until(lambda: harness.kill(*VICTIMS["engine"]))
    assert killed.wait() != 0 and {*runs(harness)} == {"prepare"}
    assert harness.do("up", "--stack", "after") == 0, harness.log.read_text()
    assert {*runs(harness)} == {*ENDS}


def test_each_run_was_made_when_those_before_it_were_complete(harness: Harness) -> None:
    """RFC 3339 in UTC: texts sort as times."""
    made = runs(harness)
    assert {name: each["kind"] for name, each in made.items() if name == "train"} == {
        "train": "PyTorchJob"
    }
    for name, before in BEFORE.items():
        began = made[name]["metadata"]["creationTimestamp"]
        for each in before:
            assert ended(made[each])[ENDS[each]] <= began, (each, name)
    assert ENDS["export"] in ended(made["export"])


def test_another_up_starts_nothing(harness: Harness) -> None:
    before = {name: each["metadata"]["uid"] for name, each in runs(harness).items()}
    assert harness.do("up", "--stack", "after") == 0, harness.log.read_text()
    assert {name: each["metadata"]["uid"] for name, each in runs(harness).items()} == before


def test_a_run_that_fails_ends_what_waits_and_says_so(harness: Harness) -> None:
    write(
        harness,
        breaks=job("echo planted-cause >&2; exit 7"),
        never=job("echo never", "breaks", pytorch_job={}),
        last=job("echo last", "never"),
    )
    assert harness.do("up", "--stack", "after") != 0
    said = harness.said("up")
    assert "never does not begin, because it comes after this: TrainJob training/breaks" in said
    assert "breaks" in runs(harness) and not {"never", "last"} & {*runs(harness)}
