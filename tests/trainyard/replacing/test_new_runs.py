"""Changed jobs: an update says what the new run asks for and the run before did not."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.support.stackfile import Edit, at, environment_plan, planned, reading, team_plan
from trainyard.catalog.job_kinds import ENGINE_TYPES
from trainyard.plan import EnvironmentPlan, Planned, TeamPlan
from trainyard.replacing.changes import differences
from trainyard.replacing.compared import compared
from trainyard.replacing.deployed import PROVIDER, Deployed
from trainyard.replacing.new_runs import (
    CRON_JOB,
    resumes,
    run_warnings,
    starting,
)

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


TAINT = (("key", "nvidia.com/gpu"), ("operator", "Equal"), ("value", "present"))


def _job(*edits: tuple[str, Any]) -> Edit:
    wanted = copy.deepcopy(JOB)
    for path, value in edits:
        at(path, value)(wanted)
    return at("jobs", {"t5": wanted})


def _deployed(plan: EnvironmentPlan | TeamPlan, **more: Any) -> Deployed:
    """The jobs of a plan, as the API server keeps them: with fields that nobody has given."""
    return Deployed(
        resources={
            (ENGINE_TYPES[job.kind], name): {
                "metadata": {"annotations": {"trainyard.io/run": job.run}},
                "spec": {"suspend": False, "managedBy": "trainer", **copy.deepcopy(dict(job.spec))},
                **more,
            }
            for name, job in plan.jobs.items()
        }
    )


def _said(was: Edit, now: Edit) -> list[str]:
    deployed = _deployed(environment_plan(was))
    return [str(each) for each in run_warnings(environment_plan(now), deployed, {})]


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


def test_an_update_starts_new_and_changed_runs_and_no_others() -> None:
    plan = environment_plan(_job())
    assert starting(plan, Deployed(resources={})) == ("t5",)
    assert starting(plan, _deployed(plan)) == ()
    assert starting(plan, _deployed(environment_plan(_job(("run", 2))))) == ("t5",)
    times = {"cron": "0 3 * * *", "time_zone": "Asia/Seoul"}
    nightly = environment_plan(_job(("schedule", times), ("checkpoints.when_changed", "resume")))
    assert starting(nightly, Deployed(resources={})) == ("t5",), "its schedule begins"
    assert starting(nightly, Deployed(resources={(CRON_JOB, "t5"): {}})) == ()


def test_more_nodes_and_another_counter_are_said() -> None:
    assert "`numNodes` `2` → `3`" in _said(_job(), _job(("nodes", 3)))[0]
    [again] = _said(_job(), _job(("run", 2)))
    assert again.endswith("starts another one: run: 1 → 2")


def _chain(*of_the_first: tuple[str, Any]) -> Edit:
    """A job, and one like it that comes after it."""
    first = _job(*of_the_first)

    def edit(settings: dict[str, Any]) -> None:
        first(settings)
        place = {"store": "scratch", "directory": "tune"}
        settings["jobs"]["tune"] = {**copy.deepcopy(JOB), "checkpoints": place, "after": ["t5"]}

    return edit


def test_a_job_that_only_comes_after_a_changed_one_says_so() -> None:
    of_t5, of_tune = _said(_chain(), _chain(("nodes", 3)))
    assert "`numNodes` `2` → `3`" in of_t5
    assert of_tune.endswith("starts another one: it comes after t5, which changed")


def test_a_line_of_a_script_is_said_and_not_the_whole_script() -> None:
    script = "\n".join(["set -e", *(f"echo {n}" for n in range(30)), "python train.py --lr 1"])
    old, new = (
        {"command": ["bash", "-c", text]} for text in (script, script.replace("lr 1", "lr 2"))
    )
    assert differences(old, new) == "`python train.py --lr 1` → `python train.py --lr 2`"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("--epochs 5", "--epochs 60 --sleep 0.3", "`--epochs 5` → `--epochs 60 --sleep 0.3`"),
        ("--a 1 --b 1", "--a 1 --c 1 --b 1", "nothing → `--c 1`"),
        ("--bias -1 --lr 1", "--bias -2 --lr 1", "`--bias -1` → `--bias -2`"),
        ("--bf16 --lr 1", "--fp16 --lr 1", "`--bf16` → `--fp16`"),
        ("train.py 5", "train.py 6", "`5` → `6`"),
    ],
)
def test_an_option_stays_with_its_value(old: str, new: str, said: str) -> None:
    of_old, of_new = ({"args": text.split()} for text in (old, new))
    assert differences(of_old, of_new) == said


def test_a_script_behind_an_option_is_said_by_its_lines() -> None:
    old, new = ({"args": ["sh", "-c", f"set -e\ntrain {n}"]} for n in (1, 2))
    assert differences(old, new) == "`train 1` → `train 2`"


def test_an_object_of_a_list_is_the_same_in_any_order_of_its_fields() -> None:
    old, new = ({"tolerations": [dict(each)]} for each in (TAINT, reversed(TAINT)))
    assert differences(old, new) == ""


def test_the_engines_numbers_are_those_of_the_program() -> None:
    """The engine tells each number as a float: 30 seconds of a toleration as 30.0."""
    old, new = ({"overrides": [{"seconds": n}], "numNodes": n} for n in (30.0, 30))
    assert differences(old, new) == ""
    assert differences({"numNodes": 2.0}, {"numNodes": 3}) == "`numNodes` `2` → `3`"


def test_a_patch_that_kueue_adds_to_a_job_is_no_difference() -> None:
    """A new image was said, and half a line of the patches beside it."""

    def of(image: str, *others: str) -> dict[str, Any]:
        patches = [{"manager": each, "time": "now", "spec": {"a": each}} for each in others]
        ours = {"manager": "trainyard.io/program", "spec": {"a": {"b": 1}}}
        return {"trainer": {"image": image}, "runtimePatches": [*patches, ours]}

    assert differences(of("train:1", "kueue.x-k8s.io/manager"), of("train:2")) == (
        "`image` `train:1` → `train:2`"
    )
    assert differences(of("train:1"), of("train:1")) == ""


def test_a_long_value_is_cut_and_many_differences_are_counted() -> None:
    old, new = ({str(n): f"{word}{'x' * 100}" for n in range(9)} for word in ("a", "b"))
    said = differences(old, new)
    assert said.count("→") == 6 and said.endswith("and 3 more") and "x" * 61 not in said


def test_a_long_command_is_cut_so_that_the_changed_argument_is_seen() -> None:
    old, new = ({"command": f"train.py {'--same ' * 20}--rate {rate}"} for rate in (1, 2))
    said = differences(old, new)
    assert "--rate 1` → `…" in said and said.endswith("--rate 2`")


def test_a_job_that_becomes_another_kind_is_said_so() -> None:
    operator = at("training_operator", {"version": "1.8.1"})
    now = {key: value for key, value in JOB.items() if key != "runtime"} | {"pytorch_job": {}}
    deployed = _deployed(environment_plan(operator, _job()))
    [warning] = run_warnings(environment_plan(operator, at("jobs", {"t5": now})), deployed, {})
    assert str(warning).endswith("TrainJob → PyTorchJob")


def test_a_job_that_stays_or_that_is_new_is_not_said() -> None:
    assert _said(_job(), _job()) == []
    assert [*run_warnings(environment_plan(_job()), Deployed(), {})] == []


def test_what_the_program_gave_goes_before_what_the_api_server_made_of_it() -> None:
    plan = environment_plan(_job())
    given = copy.deepcopy(dict(plan.jobs["t5"].spec))
    given["trainer"]["numNodes"] = 7
    deployed = _deployed(plan, __inputs={"spec": given})
    [warning] = run_warnings(environment_plan(_job(("image", "train:2"))), deployed, {})
    assert "`numNodes` `7` → `2`" in str(warning)


def test_a_job_of_a_team_is_said_with_its_path() -> None:
    plan = team_plan()
    deployed = _deployed(plan)
    for resource in deployed.resources.values():
        resource["metadata"]["annotations"]["trainyard.io/run"] = "another"
    said = [str(each) for each in run_warnings(plan, deployed, {})]
    assert said and all("team.jobs." in each for each in said)


@pytest.mark.parametrize("stack", ["dev", "team-vision"])
def test_a_preview_and_an_update_ask_the_engine_for_runs(stack: str) -> None:
    wanted = planned(stack=stack)
    plan = wanted.accepted()
    deployed = _deployed(plan)
    for resource in deployed.resources.values():
        resource["metadata"]["annotations"]["trainyard.io/run"] = "another"
    lines = reading(stack=stack).lines
    asked = compared(wanted, lines, lambda types, other: deployed, lambda *_: ())
    said = [str(each) for each in asked.warnings if "starts another one" in str(each)]
    assert len(said) == len(plan.jobs) > 0


# The question where the run of a changed job begins.

ANSWER = "checkpoints.when_changed"


CLUSTER = {"kubeconfig": "ours", "clusterIdentifier": "arn"}
OF_EKS = {"kubeconfig": "that of pulumi-eks"}


def _asked(was: Edit, now: Edit, **more: Any) -> str | None:
    """The refusal of a change; the rest as of `_compared`."""
    return next(map(str, _compared(was, now, **more).errors), None)


def _compared(
    was: Edit,
    now: Edit,
    *,
    complete: str = "t5",
    clusters: tuple[Any, ...] = (OF_EKS, CLUSTER),
    **ends: str,
) -> Planned:
    """The plan of a change beside what runs. `complete`: the job that the cluster says is; `clusters`: the
    providers; `ends`: kind of job → its condition there."""
    ends = ends or {"trainjob": "Complete"}
    of_jobs = _deployed(environment_plan(was)).resources
    providers = {(PROVIDER, f"{number}"): it for number, it in enumerate(clusters)}
    deployed = Deployed(resources={**of_jobs, **providers})

    def show(kubeconfig: str, kind: str, namespace: str | None) -> list[Any]:
        assert (kubeconfig, namespace) == ("ours", "training")
        return [_ended(complete, ends[kind]), _ended("running")] if kind in ends else []

    return compared(planned(now), reading(now).lines, lambda types, other: deployed, show)


def _ended(name: str, *conditions: str) -> dict[str, Any]:
    shown = [{"type": each, "status": "True"} for each in conditions]
    return {"metadata": {"name": name}, "status": {"conditions": shown}}


@pytest.mark.parametrize(
    "edit",
    [("torchrun.arguments", ["--lr=2e-4", "--steps=100"]), ("nodes", 3), ("image", "train:2")],
)
@pytest.mark.parametrize("storage", [JOB["storage"], {}], ids=["a path of a store", "a mount"])
def test_a_changed_job_that_reads_on_has_a_question(edit: tuple[str, Any], storage: Any) -> None:
    question = _asked(_job(("storage", storage)), _job(("storage", storage), edit))
    assert question and question.startswith(f"environment.jobs.t5.{ANSWER}")
    assert "must be set, because the run before is complete" in question
    assert "checkpoint in scratch/t5 can end at once" in question
    assert "write resume if" in question and "or write afresh" in question


def test_the_question_about_a_job_that_only_comes_after_a_changed_one_says_why_it_runs_again() -> (
    None
):
    resume = (ANSWER, "resume")
    question = str(_asked(_chain(resume), _chain(resume, ("nodes", 3)), complete="tune"))
    assert (
        question.startswith(f"environment.jobs.tune.{ANSWER}") and "a changed run" not in question
    )
    assert "without a step (the job runs again: it comes after t5, which changed)" in question


@pytest.mark.parametrize(
    "edits",
    [
        [],
        [("run", 2)],  # its owner has counted up, and check says that it may end at once
        [("nodes", 3), ("checkpoints.directory", "t5-2")],
        [("nodes", 3), (ANSWER, "resume")],
        [("nodes", 3), (ANSWER, "afresh")],
        [("nodes", 3), ("checkpoints.directory", "t5/{run}"), ("run", 2)],
    ],
)
def test_a_job_that_stays_begins_elsewhere_or_says_it_has_no_question(edits: Any) -> None:
    assert _asked(_job(), _job(*edits)) is None


@pytest.mark.parametrize(
    "more",
    [{"complete": "another"}, {"trainjob": "Failed"}, {"clusters": ()}, {"clusters": (OF_EKS,)}],
)
def test_a_run_that_is_not_complete_or_of_which_nobody_knows_is_replaced(more: Any) -> None:
    assert _asked(_job(), _job(("nodes", 3)), **more) is None


def _of_operator(*edits: tuple[str, Any]) -> Edit:
    """The job as a PyTorchJob, in an environment with the operator."""
    as_train_job, operator = _job(*edits), at("training_operator", {"version": "1.8.1"})

    def edit(settings: dict[str, Any]) -> None:
        as_train_job(settings)
        operator(settings)
        job = settings["jobs"]["t5"]
        settings["jobs"]["t5"] = {**job, "pytorch_job": {}}
        del settings["jobs"]["t5"]["runtime"]

    return edit


def test_a_complete_run_of_either_kind_is_asked_about() -> None:
    now = _of_operator(("nodes", 3))
    assert _asked(_of_operator(), now, pytorchjob="Succeeded")
    assert _asked(_of_operator(), now, trainjob="Complete") is None, "another job of this name"


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("Failed", "deletes its run, which has failed, and starts another one: "),
        ("Complete", "deletes its run, which is complete, and starts another one: "),
        ("Running", "ends its run and starts another one: "),
    ],
)
def test_a_run_that_has_ended_is_not_said_to_be_ended(condition: str, said: str) -> None:
    now = _job(("nodes", 3), (ANSWER, "resume"))
    warnings = [str(each) for each in _compared(_job(), now, trainjob=condition).warnings]
    assert [each for each in warnings if f"this update {said}" in each], warnings


def test_a_number_that_stays_is_the_directory_of_before() -> None:
    place = ("checkpoints.directory", "t5/{run}")
    assert "in scratch/t5/1 can" in str(_asked(_job(place), _job(place, ("nodes", 3))))


@pytest.mark.parametrize("storage", [JOB["storage"], {}], ids=["a path of a store", "a mount"])
@pytest.mark.parametrize("way", [[], [(ANSWER, "resume")]], ids=["unsaid", "resume"])
def test_a_run_after_one_with_a_directory_of_its_own_goes_on_there_or_is_refused(
    storage: Any, way: Any
) -> None:
    before, longer = ("storage", storage), ("torchrun.arguments", ["--lr=1e-4", "--steps=900"])
    afresh = _job(before, (ANSWER, "afresh"))
    own = environment_plan(afresh).jobs["t5"].checkpoints or ""
    error = str(_asked(afresh, _job(before, longer, *way)))
    assert error.startswith("environment.jobs.t5.checkpoints.directory")
    assert f"write {own.removeprefix('scratch/')} to go on from there" in error
    there = ("checkpoints.directory", own.removeprefix("scratch/"))
    assert _asked(afresh, _job(before, longer, (ANSWER, "resume"), there)) is None
    assert _asked(afresh, _job(before, longer, (ANSWER, "afresh"))) is None
    assert _asked(afresh, _job(before, longer, (ANSWER, "resume"), ("run", 2))) is None


def test_the_line_of_a_start_says_the_way_that_was_chosen() -> None:
    def line(*edits: tuple[str, Any]) -> str:
        return resumes(environment_plan(_job(*edits)).jobs["t5"])

    assert "It resumes from the checkpoint in scratch/t5, if" in line()
    assert "or checkpoints.when_changed: afresh" in line()
    assert line((ANSWER, "resume")).startswith(". It resumes from the checkpoint in scratch/t5, if")
    assert "It keeps its checkpoints in scratch/t5/" in (fresh := line((ANSWER, "afresh")))
    assert "begins afresh unless a run of the same description left one there" in fresh
