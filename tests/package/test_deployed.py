"""Jobs of components of teams beside what is deployed: found by the names that they have in the program, and those
of another component left alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pulumi
import pytest
from pulumi.errors import InputPropertiesError

from package.schema import TEAM, TRAINING_JOB
from stacks import caller
from tests.package.test_teams import BY_MAP, JOB
from tests.support.package import left, made
from trainyard.replacing.deployed import Deployed

RUNS = "trainjobs.trainer.kubeflow.org", "trainjob"
Say = Callable[..., list[str]]


def team(name: str, *jobs: str, changed: str = "") -> dict[str, Any]:
    """Arguments of a team in a namespace of its own. `changed`: a job that has another run."""
    made = {
        each: {**JOB, "checkpoints": {"store": "scratch", "directory": each}}
        | ({"nodes": 2} if each == changed else {})
        for each in jobs
    }
    return {**BY_MAP, "namespace": f"team-{name}", "jobs": made}


def one_job(**more: Any) -> dict[str, Any]:
    """Arguments of a component of one job."""
    return {key: each for key, each in BY_MAP.items() if key != "jobs"} | {"job": {**JOB, **more}}


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Say:
    """Errors or warnings of an update of one component. `ended`: the condition of every job of the cluster."""

    def say(name: str, arguments: dict[str, Any], was: Deployed, ended: str = "") -> list[str]:
        def shown(kubeconfig: str, kind: str, namespace: str | None) -> Sequence[Any]:
            return _jobs(was, namespace, ended) if kind in RUNS else ()

        warned: list[str] = []
        monkeypatch.setattr(caller, "shown", shown)
        monkeypatch.setattr(pulumi, "warn", lambda text, _: warned.append(text))
        kind = TRAINING_JOB if "job" in arguments else TEAM
        try:
            made(kind, arguments, tmp_path, name=name, preview=True, deployed=was)
        except InputPropertiesError as error:
            return error.message.splitlines()[1:]
        return [each for each in warned if "this update" in each]

    return say


def _jobs(was: Deployed, namespace: str | None, ended: str) -> list[Any]:
    """Jobs of a namespace, as the cluster has them."""
    conditions = [{"type": ended, "status": "True"}] if ended else []
    return [
        {
            "metadata": {**each["metadata"], "creationTimestamp": "2026-11-30T10:00:00Z"},
            "status": {"conditions": conditions},
        }
        for (kind, _), each in was.resources.items()
        if kind.endswith(":TrainJob") and each["metadata"]["namespace"] == namespace
    ]


@pytest.fixture
def both(tmp_path: Path) -> Deployed:
    """Two teams that are deployed. The name of one begins with that of the other."""
    return left(
        made(TEAM, team("vision", "vit-base", "big-vit"), tmp_path, name="vision")[0],
        made(TEAM, team("big", "large", "other"), tmp_path, name="vision-big")[0],
    )


def test_an_unchanged_job_that_goes_on_is_let_go_on(said: Say, both: Deployed) -> None:
    assert said("vision", team("vision", "vit-base", "big-vit"), both) == []
    assert said("vision-big", team("big", "large", "other"), both) == []


def test_a_changed_run_of_a_complete_job_is_asked_what_it_reads(said: Say, both: Deployed) -> None:
    now = team("vision", "vit-base", "big-vit", changed="vit-base")
    [error] = said("vision", now, both, "Complete")
    assert "error    jobs.vit-base.checkpoints.when_changed: must be set" in error


def test_a_changed_run_and_a_job_that_leaves_are_said_by_their_own_names(
    said: Say, both: Deployed
) -> None:
    ends, deletes = said("vision", team("vision", "vit-base", changed="vit-base"), both)
    assert "jobs.vit-base: this update ends its run and starts another one" in ends
    assert "jobs: this update deletes TrainJob big-vit" in deletes
    [deletes] = said("vision-big", team("big", "large"), both)
    assert "jobs: this update deletes TrainJob other" in deletes


def test_a_new_team_ends_nothing_of_another(said: Say, both: Deployed, tmp_path: Path) -> None:
    assert said("speech", team("speech", "vit-base"), both) == []
    first = left(made(TEAM, team("vision", "big-vit"), tmp_path, name="vision")[0])
    assert said("vision-big", team("big", "large"), first) == []


def test_a_component_of_one_job_has_the_guards_of_a_team(said: Say, tmp_path: Path) -> None:
    names = ("vit", "vit-vit", "vit-base")
    was = left(*(made(TRAINING_JOB, one_job(), tmp_path, name=each)[0] for each in names))
    for name in names:
        assert said(name, one_job(), was) == []
        [error] = said(name, one_job(nodes=2), was, "Complete")
        assert "error    job.checkpoints.when_changed: must be set" in error
