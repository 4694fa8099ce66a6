"""A run begins when what it needs is loaded, with a stand-in for kubectl."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pulumi
import pytest

from components.jobs import loads, unanswered
from components.jobs.loads import LoadFailed, Waits, until_loaded
from trainyard.objects.jobs.load import LoadPod, load_spec
from trainyard.plans.jobs import ConfigMapPlan, LoadPlan

POD = LoadPod(
    image="python",
    settings={"what": "models/owner/model at 0", "to": "/stores/scratch/q"},
    claims={"scratch": "scratch-0a1b2c3d"},
    node_selector={"trainyard.io/pool": "cpu"},
)
PLAN = LoadPlan(
    name="load-q-0a1b2c3d",
    namespace="training",
    what="models/owner/model at 0",
    place="scratch/q",
    pool="cpu",
    stores=("scratch",),
    program=ConfigMapPlan(name="program", data={}),
    spec=load_spec(POD),
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

    def decide(
        *looks: Look,
        then: tuple[Look, ...] = (),
        log: str = "3 of 9 files",
        pods: tuple[Look, ...] = (),
        loads: tuple[Look, ...] = (),
    ) -> None:
        (tmp_path / "n").unlink(missing_ok=True)
        for name, each in {"looks": looks, "then": then}.items():
            shutil.rmtree(tmp_path / name, ignore_errors=True)
            (tmp_path / name).mkdir()
            for number, look in enumerate(each):
                found = [] if look == "none" else [look]
                text = "" if look == "away" else json.dumps({"items": found})
                (tmp_path / name / str(number)).write_text(text)
        (tmp_path / "log").write_text(log)
        (tmp_path / "pods").write_text(json.dumps({"items": pods}))
        (tmp_path / "loads").write_text(json.dumps({"items": loads}))
        program = tmp_path / "kubectl"
        program.write_text(f"""#!/bin/bash
cd {tmp_path}; echo "$*" >> calls
case "$*" in
  *" logs "*) cat log; exit;;
  *" get pods "*) cat pods; exit;;
  *" --selector=trainyard.io/load "*) cat loads; exit;;
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


def pod(made: str, **state: Any) -> dict[str, Any]:
    metadata, status = {"creationTimestamp": made}, {"containerStatuses": [{"state": state}]}
    return {"metadata": metadata, "status": status}


def test_one_whose_last_pod_the_kernel_killed_says_so(shows: Shows) -> None:
    killed = pod("2026-11-30T10:00:00Z", terminated={"reason": "OOMKilled", "exitCode": 137})
    log = "s3://our-sets/ begins: 0 of 5000000 files are there"
    shows(LOADING, FAILED, log=log, pods=(killed, pod("2026-11-30T09:00:00Z", terminated={})))
    with pytest.raises(
        LoadFailed, match=r"killed for its memory \(OOMKilled\).*Fix: put the files"
    ):
        waited()
    shows(LOADING, FAILED, log=log, pods=(killed, pod("2026-11-30T11:00:00Z", running={})))
    with pytest.raises(LoadFailed, match="0 of 5000000 files are there"):
        waited()


def test_one_that_failed_before_this_update_is_made_anew(shows: Shows, tmp_path: Path) -> None:
    shows(FAILED, then=(LOADING, COMPLETE))
    assert waited()[0] == "is made anew: its Job had failed"
    assert changes(tmp_path) == ["delete", "create"]
    made = json.loads((tmp_path / "made").read_text())
    assert made["spec"] == json.loads(json.dumps(PLAN.spec)) and made["kind"] == "Job"
    assert (made["metadata"]["name"], made["metadata"]["namespace"]) == (PLAN.name, "training")


def test_one_that_fails_again_is_not_tried_for_ever(shows: Shows, tmp_path: Path) -> None:
    shows(FAILED, then=(LOADING, FAILED))
    with pytest.raises(LoadFailed):
        waited()
    assert changes(tmp_path) == ["delete", "create"]


def test_one_that_somebody_deleted_is_made_anew(shows: Shows, tmp_path: Path) -> None:
    shows("none", then=(COMPLETE,))
    assert waited() == ["is made anew: its Job was deleted"]
    looks = (tmp_path / "calls").read_text().count("--field-selector=")
    assert looks == loads.UNSEEN + 1


def load(name: str, pod: LoadPod = POD, **status: Any) -> dict[str, Any]:
    """The Job of a load on the cluster."""
    return {"metadata": {"name": name}, "spec": load_spec(pod), **status}


def test_a_load_of_another_source_into_the_directory_is_ended_first(
    shows: Shows, tmp_path: Path
) -> None:
    wrong = replace(POD, settings={"what": "models/owner/model at 9", "to": "/stores/scratch/q"})
    other = replace(POD, settings={"what": "s3://sets/", "to": "/stores/scratch/sets"})
    live = (load(PLAN.name), load("wrong", wrong), load("other", other))
    shows(LOADING, COMPLETE, loads=(*live, load("earlier", wrong, **FAILED)))
    ends = "ends the load of models/owner/model at 9 into the same directory: Job wrong"
    assert waited()[0] == ends
    calls = (tmp_path / "calls").read_text().splitlines()
    assert [call.split()[5] for call in calls if " delete " in call] == ["wrong"]
    assert calls.index(next(filter(lambda call: " delete " in call, calls))) == 1


def test_a_load_that_runs_is_made_anew_in_another_pool_that_the_stack_file_names_since(
    shows: Shows, tmp_path: Path
) -> None:
    """A label that somebody's webhook adds is no other pool."""
    same = replace(POD, node_selector={**POD.node_selector, "example.com/zone": "a"})
    shows(LOADING, COMPLETE, loads=(load(PLAN.name, same),))
    assert waited() == ["loads models/owner/model at 0: 3 of 9 files"] and changes(tmp_path) == []
    full = replace(POD, node_selector={"trainyard.io/pool": "full"})
    shows(LOADING, loads=(load(PLAN.name, full, **COMPLETE),), then=(COMPLETE,))
    with pytest.raises(LoadFailed, match="not over"):
        waited(replace(PLAN, wait_hours=0.0001))
    assert changes(tmp_path) == []
    shows(LOADING, loads=(load(PLAN.name, full),), then=(COMPLETE,))
    assert waited() == ["is made anew, in pool cpu"]
    assert changes(tmp_path) == ["delete", "create"]


def test_the_wait_ends_and_the_load_goes_on(shows: Shows, tmp_path: Path) -> None:
    shows(LOADING)
    with pytest.raises(
        LoadFailed, match=r"not over after 5e-05 hours \(wait_hours\), and loads on"
    ):
        waited(replace(PLAN, wait_hours=0.00005))
    assert changes(tmp_path) == []


def test_a_cluster_that_does_not_answer_is_said(
    shows: Shows, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unanswered, "SECONDS", 0.0)
    shows(LOADING, "away", "away", COMPLETE)
    [_, said] = waited()
    assert said.startswith("waits for its Job: the cluster has not answered for 0 seconds: ")


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
