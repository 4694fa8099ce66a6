"""What `trainyard runs` says of the job of a run: its image, its number and its command."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.stackfile import Edit, at, environment_plan
from tests.trainyard.derive.test_sweep import no_torchrun, tune
from tests.trainyard.operations.finished import cluster, train_job
from trainyard.operations.runs.described import command_of, image_of, number_of
from trainyard.operations.runs.node_time import Run
from trainyard.operations.runs.records import MISSING, runs_of
from trainyard.operations.runs.runs import NOTES, text, told
from trainyard.plans.jobs import RUN, JobPlan

SECRETS = at("jobs.tune.secrets", {"HF_TOKEN": {"secret": "hf", "key": "token"}})


def of_the_operator(settings: dict[str, Any]) -> None:
    """A PyTorchJob whose Master is no node, and whose nodes wait for it."""
    settings["training_operator"] = {"version": "1.8.1"}
    del settings["jobs"]["tune"]["runtime"]
    settings["jobs"]["tune"] |= {"nodes": 2, "pytorch_job": {"coordinator": True}}


def run_of(plan: JobPlan) -> Run:
    """A run of a planned job, as the cluster of a stack has it."""
    job = train_job()
    job["metadata"]["annotations"][RUN] = plan.run
    job |= {"kind": plan.kind, "spec": plan.spec}
    kind = {"PyTorchJob": "pytorchjobs"}.get(plan.kind, "trainjobs")
    ended = {"type": "Succeeded", "status": "True", "lastTransitionTime": "2026-11-21T13:00:00Z"}
    if kind == "pytorchjobs":
        job["status"] = {"conditions": [ended]}
    [run] = runs_of(cluster(**{"trainjobs": [], kind: [job]}), [], MISSING).finished
    return run


def planned(*edits: Edit) -> Run:
    """The run of the one job that the edits add."""
    jobs = environment_plan(*edits).jobs
    [name] = jobs.keys() - {"t5-large"}
    return run_of(jobs[name])


@pytest.mark.parametrize(
    "edits", [(), (SECRETS,), (of_the_operator,)], ids=["plain", "secrets", "operator"]
)
def test_of_torchrun_the_script_and_its_arguments_are_said(edits: tuple[Edit, ...]) -> None:
    assert command_of(planned(tune({"lr": [0.1]}), *edits)) == "torchrun /app/train.py --lr 0.1"


def test_of_a_script_the_last_line_is_said() -> None:
    script = "pip install x\ntorchrun \\\n  /app/train.py \\\n  --lr {lr}\n# the end\n"
    run = planned(tune({"lr": [0.1]}, script=script), no_torchrun())
    assert command_of(run) == "torchrun /app/train.py --lr 0.1"


def test_a_run_says_its_number_and_its_image() -> None:
    run = planned(tune({"lr": [0.1]}, run=3, image="ghcr.io/team/train:1"))
    assert (number_of(run), image_of(run)) == (3, "ghcr.io/team/train:1")
    lines = text([told(run, {}, going=False)], NOTES)
    assert "  run 3, TrainJob of a stack file, image ghcr.io/team/train:1" in lines
    assert "  starts: torchrun /app/train.py --lr 0.1" in lines


def test_a_job_of_no_stack_has_no_number_and_a_long_command_is_cut() -> None:
    job: dict[str, Any] = train_job()
    del job["metadata"]["annotations"][RUN]
    job["spec"]["trainer"]["command"] = ["python3", "train.py", "x" * 300]
    [run] = runs_of(cluster(trainjobs=[job]), [], MISSING).finished
    assert number_of(run) is None
    assert command_of(run).startswith("python3 train.py xxx") and len(command_of(run)) == 161
