"""Changed jobs: an update says what the new run asks for and the run before did not."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.support.stackfile import Edit, at, environment_plan, planned, reading, team_plan
from trainyard.plan import EnvironmentPlan, TeamPlan
from trainyard.replacing.deployed import Deployed
from trainyard.replacing.new_runs import KINDS, differences, run_warnings
from trainyard.replacing.replacing import compared

JOB = {
    "nodes": 2,
    "pool": "g6e",
    "runtime": "torch-distributed-resilient",
    "image": "train:1",
    "storage": {"scratch": {"path": "/scratch"}},
    "checkpoints": {"store": "scratch", "directory": "t5"},
    "torchrun": {"script": "/app/train.py", "arguments": ["--lr=1e-4", "--steps=100"]},
    "env": {"SEED": "1", "NAME": "a"},
}


def _job(*edits: tuple[str, Any]) -> Edit:
    wanted = copy.deepcopy(JOB)
    for path, value in edits:
        at(path, value)(wanted)
    return at("jobs", {"t5": wanted})


def _deployed(plan: EnvironmentPlan | TeamPlan, **more: Any) -> Deployed:
    """The jobs of a plan, as the API server keeps them: with fields that nobody has given."""
    return Deployed(
        resources={
            (KINDS[job.kind], name): {
                "metadata": {"annotations": {"trainyard.io/run": job.run}},
                "spec": {"suspend": False, "managedBy": "trainer", **copy.deepcopy(dict(job.spec))},
                **more,
            }
            for name, job in plan.jobs.items()
        }
    )


def _said(was: Edit, now: Edit) -> list[str]:
    deployed = _deployed(environment_plan(was))
    return [str(each) for each in run_warnings(environment_plan(now), deployed)]


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (("torchrun.arguments", ["--lr=2e-4", "--steps=100"]), "`--lr=1e-4` → `--lr=2e-4`"),
        (("torchrun.arguments", ["--lr=1e-4"]), "`--steps=100` → nothing"),
        (
            ("torchrun.arguments", ["--lr=1e-4", "--steps=100", "--bf16"]),
            "nothing → `--bf16`",
        ),
        (("env.SEED", "2"), "`env.SEED` `1` → `2`"),
        (("image", "train:2"), "`image` `train:1` → `train:2`"),
    ],
)
def test_a_changed_job_is_said_by_what_changed(edit: tuple[str, Any], said: str) -> None:
    [warning] = _said(_job(), _job(edit))
    assert "environment.jobs.t5" in warning
    assert f"this update ends its run and starts another one: {said}" in warning
    assert warning.rstrip().endswith(said.rstrip())


def test_more_nodes_and_another_counter_are_said() -> None:
    assert "`numNodes` `2` → `3`" in _said(_job(), _job(("nodes", 3)))[0]
    [again] = _said(_job(), _job(("run", 2)))
    assert "is another one" in again and "→" not in again


def test_a_line_of_a_script_is_said_and_not_the_whole_script() -> None:
    script = "\n".join(["set -e", *(f"echo {n}" for n in range(30)), "python train.py --lr 1"])
    old, new = (
        {"command": ["bash", "-c", text]} for text in (script, script.replace("lr 1", "lr 2"))
    )
    assert differences(old, new) == "`python train.py --lr 1` → `python train.py --lr 2`"


def test_a_long_value_is_cut_and_many_differences_are_counted() -> None:
    old, new = ({str(n): f"{word}{'x' * 100}" for n in range(9)} for word in ("a", "b"))
    said = differences(old, new)
    assert said.count("→") == 6 and said.endswith("and 3 more") and "x" * 61 not in said


def test_a_job_that_becomes_another_kind_is_said_so() -> None:
    operator = at("training_operator", {"version": "1.8.1"})
    now = {key: value for key, value in JOB.items() if key != "runtime"} | {"pytorch_job": {}}
    deployed = _deployed(environment_plan(operator, _job()))
    [warning] = run_warnings(environment_plan(operator, at("jobs", {"t5": now})), deployed)
    assert str(warning).endswith("TrainJob → PyTorchJob")


def test_a_job_that_stays_or_that_is_new_is_not_said() -> None:
    assert _said(_job(), _job()) == []
    assert [*run_warnings(environment_plan(_job()), Deployed())] == []


def test_what_the_program_gave_goes_before_what_the_api_server_made_of_it() -> None:
    plan = environment_plan(_job())
    given = copy.deepcopy(dict(plan.jobs["t5"].spec))
    given["trainer"]["numNodes"] = 7
    deployed = _deployed(plan, __inputs={"spec": given})
    [warning] = run_warnings(environment_plan(_job(("image", "train:2"))), deployed)
    assert "`numNodes` `7` → `2`" in str(warning)


def test_a_job_of_a_team_is_said_with_its_path() -> None:
    plan = team_plan()
    deployed = _deployed(plan)
    for resource in deployed.resources.values():
        resource["metadata"]["annotations"]["trainyard.io/run"] = "another"
    said = [str(each) for each in run_warnings(plan, deployed)]
    assert said and all("team.jobs." in each for each in said)


@pytest.mark.parametrize("stack", ["dev", "team-vision"])
def test_a_preview_and_an_update_ask_the_engine_for_runs(stack: str) -> None:
    wanted = planned(stack=stack)
    plan = wanted.accepted()
    deployed = _deployed(plan)
    for resource in deployed.resources.values():
        resource["metadata"]["annotations"]["trainyard.io/run"] = "another"
    asked = compared(wanted, reading(stack=stack).lines, lambda types, other: deployed)
    said = [str(each) for each in asked.warnings if "starts another one" in str(each)]
    assert len(said) == len(plan.jobs) > 0
