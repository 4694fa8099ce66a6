"""A run begins when nothing is left of the run before it, with a stand-in for kubectl."""

from __future__ import annotations

import asyncio
import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from components.jobs import run_before
from components.jobs.run_before import StillThere, gone, until_gone

NOTHING: list[str] = []


@pytest.fixture
def shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Decide what kubectl shows, look by look, the last for ever; None stands for no answer."""
    monkeypatch.setattr(run_before, "POLL_SECONDS", 0.01)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")

    def decide(
        *looks: list[str] | None,
        job_sets: tuple[str, ...] = (),
        of_an_operator: tuple[str, ...] = (),
    ) -> None:
        for number, names in enumerate(looks):
            (tmp_path / f"{number}.json").write_text("" if names is None else _list("Pod", names))
        (tmp_path / "jobsets.json").write_text(_list("JobSet", [*job_sets]))
        (tmp_path / "operators.json").write_text(_list("Pod", [*of_an_operator]))
        program = tmp_path / "kubectl"
        program.write_text(f"""#!/bin/bash
echo "$*" >> {tmp_path}/calls
case "$*" in
  *" get resourcequotas "*) echo '{{"items": []}}'; exit;;
  *" get jobsets"*) cat {tmp_path}/jobsets.json; exit;;
  *training.kubeflow.org/job-name=*) cat {tmp_path}/operators.json; exit;;
esac
n=$(cat {tmp_path}/n 2>/dev/null || echo 0); echo $((n + 1)) > {tmp_path}/n
[ -e {tmp_path}/$n.json ] || n={len(looks) - 1}
cat {tmp_path}/$n.json; [ -s {tmp_path}/$n.json ]
""")
        program.chmod(0o755)

    return decide


def _list(kind: str, names: list[str]) -> str:
    return json.dumps({"items": [{"kind": kind, "metadata": {"name": name}} for name in names]})


def looks(folder: Path) -> int:
    return int((folder / "n").read_text())


def begins(kind: str = "TrainJob") -> list[str]:
    """What is said until the run begins."""
    said: list[str] = []
    until_gone("kubeconfig", kind, "training", "mine", say=said.append)
    return said


@pytest.mark.parametrize(
    ("seen", "said", "count"),
    [
        ([NOTHING], [], 2),
        ([["a", "b"], ["a", "b"], ["b"], NOTHING], ["Pod a, Pod b", "Pod b"], 5),
        # What the Trainer makes again, when its TrainJob is gone.
        ([NOTHING, ["ghost"], NOTHING], ["Pod ghost"], 4),
        # An API server that is away for a moment has not said that there is nothing.
        ([NOTHING, None, NOTHING], [], 4),
        # A role that cannot look, or a cluster that is new.
        ([None], [], 5),
    ],
)
def test_it_waits_for_two_looks_in_a_row_that_find_nothing(
    shows: Any, tmp_path: Path, seen: list[Any], said: list[str], count: int
) -> None:
    shows(*seen)
    assert begins() == [f"waits for the end of the run before it: {names}" for names in said]
    assert looks(tmp_path) == count


def test_a_job_set_without_pods_is_something_of_the_run_before(
    shows: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_before, "MINUTES", 0.001)
    shows(NOTHING, job_sets=("mine",))
    with pytest.raises(StillThere, match=r"TrainJob training/mine cannot begin: .*JobSet mine"):
        begins()
    assert begins("PyTorchJob") == [], "it has none"


def test_pods_of_a_run_of_the_other_kind_are_waited_for(
    shows: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The entry of a job can change its kind."""
    monkeypatch.setattr(run_before, "MINUTES", 0.001)
    shows(NOTHING, of_an_operator=("mine-master-0",))
    with pytest.raises(StillThere, match=r"TrainJob training/mine cannot .*Pod mine-master-0"):
        begins()


def test_it_asks_for_this_job_only(shows: Any, tmp_path: Path) -> None:
    shows(NOTHING)
    begins()
    calls = (tmp_path / "calls").read_text().splitlines()
    assert all("--namespace=training" in call for call in calls)
    of_a_look = [
        "jobsets.jobset.x-k8s.io --field-selector=metadata.name=mine --output=json",
        "jobs.batch,pods --selector=jobset.sigs.k8s.io/jobset-name=mine --output=json",
        "jobs.batch,pods --selector=training.kubeflow.org/job-name=mine --output=json",
    ]
    *asked, quotas = [call.partition(" get ")[2] for call in calls]
    assert asked == [*of_a_look, *of_a_look], "each makes the next one: none slips through"
    assert quotas == "resourcequotas --output=json"


def test_without_kubectl_the_run_begins(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert begins() == []


def test_a_run_begins_while_all_threads_of_the_loop_wait_for_other_runs(shows: Any) -> None:
    shows(NOTHING)
    over = Event()

    async def begin() -> None:
        loop = asyncio.get_running_loop()
        loop.set_default_executor(ThreadPoolExecutor(1))
        other = loop.run_in_executor(None, over.wait)
        try:
            it = gone("kubeconfig", "TrainJob", "training", "mine", say=print)
            await asyncio.wait_for(it, 60)
        finally:
            over.set()
        assert await other

    asyncio.run(begin())
