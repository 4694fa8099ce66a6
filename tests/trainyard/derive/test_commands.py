"""Commands of jobs that torchrun starts."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.cases.jobs import JOB, SCRIPT, pytorch_job
from tests.support.stackfile import Edit, at, environment_plan, without
from trainyard.derive import commands, jobs
from trainyard.plans.jobs import JobPlan
from trainyard.settings.job import JobConfig

ELASTIC = at(f"{JOB}.elastic", {"min_nodes": 1, "max_nodes": 4})


def torchrun(**more: Any) -> list[Edit]:
    return [without(SCRIPT), at(f"{JOB}.torchrun", {"script": "a.py", **more})]


def job(*edits: Edit) -> JobPlan:
    return environment_plan(*edits).jobs["t5-large"]


def max_restarts(*edits: Edit) -> str:
    roles = job(*edits).spec["pytorchReplicaSpecs"]
    [container] = roles["Worker"]["template"]["spec"]["containers"]
    [word] = [word for word in container["command"] if word.startswith(commands.MAX_RESTARTS)]
    return word.partition("=")[2]


def test_torchrun_of_an_elastic_job_has_the_restarts_of_the_job() -> None:
    """Without one it fails when a node leaves, and closes the rendezvous for all others."""
    assert max_restarts(*pytorch_job(restarts=10), *torchrun(), ELASTIC) == "10"
    assert max_restarts(*pytorch_job(restarts=2), *torchrun(max_restarts=5), ELASTIC) == "5"
    assert max_restarts(*pytorch_job(restarts=10), *torchrun()) == "0", "the pods start again"


def test_the_restarts_of_an_elastic_job_came_later_and_start_no_run_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    edits = [*pytorch_job(restarts=10), *torchrun(), ELASTIC]
    now = job(*edits)

    def before(_: JobConfig, training: Any) -> Any:
        return training

    monkeypatch.setattr(jobs, "lasting", before)
    assert now.spec != job(*edits).spec and now.run == job(*edits).run
