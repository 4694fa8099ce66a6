"""A run begins when what it needs is loaded, with a stand-in for kubectl."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pulumi
import pytest

from components.jobs import loads
from components.jobs.loads import LoadFailed, Waits, until_loaded
from trainyard.plans.jobs import ConfigMapPlan, LoadPlan

PLAN = LoadPlan(
    name="load-q-0a1b2c3d",
    namespace="training",
    what="models/owner/model at 0",
    place="scratch/q",
    pool="cpu",
    stores=("scratch",),
    program=ConfigMapPlan(name="program", data={}),
    spec={"backoffLimit": 8},
    reads_aws=False,
    gigabytes=None,
    seconds=None,
    from_internet=True,
    wait_hours=0.01,
)
LOADING: dict[str, Any] = {"status": {"active": 1}}
SUSPENDED = {"status": {"conditions": [{"type": "Suspended", "status": "True"}]}}


def ended(how: str) -> dict[str, Any]:
    before = {"type": f"{how}Criteria", "status": "False"}
    return {"status": {"conditions": [before, {"type": how, "status": "True"}]}}


COMPLETE, FAILED = ended("Complete"), ended("Failed")
Look = dict[str, Any] | str
"""What a look shows: a Job, `none`, or `away` for an API server that does not answer."""
Shows = Callable[..., None]


@pytest.fixture
def shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shows:
    """Decide what kubectl shows, look by look, the last for ever; `then`: after the Job is made anew."""
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")

    def decide(*looks: Look, then: tuple[Look, ...] = (), log: str = "3 of 9 files") -> None:
        for name, each in {"looks": looks, "then": then}.items():
            (tmp_path / name).mkdir(exist_ok=True)
            for number, look in enumerate(each):
                found = [] if look == "none" else [look]
                text = "" if look == "away" else json.dumps({"items": found})
                (tmp_path / name / str(number)).write_text(text)
        (tmp_path / "log").write_text(log)
        program = tmp_path / "kubectl"
        program.write_text(f"""#!/bin/bash
cd {tmp_path}; echo "$*" >> calls
case "$*" in
  *" logs "*) cat log; exit;;
  *" delete "*) exit;;
  *" create "*) cat > made; rm -rf looks n; mv then looks; exit;;
esac
n=$(cat n 2>/dev/null || echo 0); echo $((n + 1)) > n
[ -e looks/$n ] || n=$(($(ls looks | wc -l) - 1))
cat looks/$n; [ -s looks/$n ]
""")
        program.chmod(0o755)

    return decide


def waited(plan: LoadPlan = PLAN) -> list[str]:
    """What is said until the load is complete."""
    said: list[str] = []
    asyncio.run(until_loaded("kubeconfig", plan, say=said.append, poll=0.01))
    return said


def changes(folder: Path) -> list[str]:
    calls = (folder / "calls").read_text().splitlines()
    return [verb for call in calls for verb in ("delete", "create") if f" {verb} " in call]


def test_it_waits_until_the_job_is_complete_and_says_how_far_it_is(
    shows: Shows, tmp_path: Path
) -> None:
    shows(LOADING, SUSPENDED, "away", LOADING, COMPLETE)
    assert waited() == ["loads models/owner/model at 0: 3 of 9 files"]
    assert (tmp_path / "n").read_text() == "5\n" and changes(tmp_path) == []


def test_a_job_that_is_complete_is_asked_about_once(shows: Shows, tmp_path: Path) -> None:
    shows(COMPLETE)
    assert waited() == [] and (tmp_path / "n").read_text() == "1\n"


def test_one_that_fails_says_why_in_the_words_of_its_pod(shows: Shows, tmp_path: Path) -> None:
    shows(LOADING, FAILED, log="first\nrefused: the store has 3 GB free\n")
    with pytest.raises(LoadFailed) as failed:
        waited()
    text = str(failed.value)
    assert "models/owner/model at 0 is not in scratch/q: refused: the store has 3 GB free" in text
    assert "No GPU was asked for" in text and changes(tmp_path) == []


def test_one_that_failed_before_this_update_is_made_anew(shows: Shows, tmp_path: Path) -> None:
    shows(FAILED, then=(LOADING, COMPLETE))
    assert waited()[0] == "is made anew: its Job had failed"
    assert changes(tmp_path) == ["delete", "create"]
    made = json.loads((tmp_path / "made").read_text())
    assert made["spec"] == PLAN.spec and made["kind"] == "Job"
    assert (made["metadata"]["name"], made["metadata"]["namespace"]) == (PLAN.name, "training")


def test_one_that_fails_again_is_not_tried_for_ever(shows: Shows, tmp_path: Path) -> None:
    shows(FAILED, then=(LOADING, FAILED))
    with pytest.raises(LoadFailed):
        waited()
    assert changes(tmp_path) == ["delete", "create"]


def test_one_that_somebody_deleted_is_made_anew(shows: Shows, tmp_path: Path) -> None:
    shows("none", then=(COMPLETE,))
    assert waited() == ["is made anew: its Job was deleted"]
    assert (tmp_path / "calls").read_text().count(" get ") == loads.UNSEEN + 1


def test_the_wait_ends_and_the_load_goes_on(shows: Shows, tmp_path: Path) -> None:
    shows(LOADING)
    with pytest.raises(
        LoadFailed, match=r"not over after 5e-05 hours \(wait_hours\), and loads on"
    ):
        waited(replace(PLAN, wait_hours=0.00005))
    assert changes(tmp_path) == []


def test_without_kubectl_nothing_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LoadFailed, match="install kubectl"):
        waited()


def test_two_runs_of_one_load_wait_for_it_once_and_hear_the_same(
    shows: Shows, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second would take a Job that failed in this update for one of an earlier."""
    monkeypatch.setattr(loads, "POLL_SECONDS", 0.01)
    monkeypatch.setattr(until_loaded, "__kwdefaults__", {"poll": 0.01})
    monkeypatch.setattr(pulumi, "info", lambda text: None)
    shows(LOADING, FAILED)

    async def both() -> list[Any]:
        waits = Waits(pulumi.Output.from_input("kubeconfig"))
        tasks = [waits._task("kubeconfig", PLAN) for _ in range(2)]
        first = await asyncio.gather(*tasks, return_exceptions=True)
        return [
            *first,
            *await asyncio.gather(waits._task("kubeconfig", PLAN), return_exceptions=True),
        ]

    ends = asyncio.run(both())
    assert len(ends) == 3 and all(isinstance(end, LoadFailed) for end in ends)
    assert changes(tmp_path) == []
