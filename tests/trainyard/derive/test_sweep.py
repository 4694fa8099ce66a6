"""What follows from `sweep`: the derived entries, their names, runs and places, and what other jobs see of them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.stackfile import (
    Edit,
    at,
    environment,
    environment_plan,
    errors,
    planned,
    team_plan,
)
from trainyard.derive.next_run import next_run
from trainyard.derive.sweep import LONGEST, run_name, text_of, unfolded
from trainyard.plans.jobs import SWEEP
from trainyard.problems import At
from trainyard.reports.plan import text
from trainyard.settings.job import JobConfig
from trainyard.settings.reading.derived import Derived, in_the_file

TUNE = "jobs.tune"


def tune(over: dict[str, list[Any]], **more: Any) -> Edit:
    """A job of one node like the dev file's, with a sweep. `more`: settings of it; those of `sweep` are added."""

    def edit(settings: dict[str, Any]) -> None:
        first = {key: it for key, it in settings["jobs"]["t5-large"].items() if key != "script"}
        directory = "tune/" + "-".join(f"{{{name}}}" for name in over)
        arguments = [word for name in over for word in (f"--{name}", f"{{{name}}}")]
        settings["jobs"]["tune"] = {
            **first,
            "nodes": 1,
            "torchrun": {"script": "/app/train.py", "arguments": arguments},
            "checkpoints": {"store": "scratch", "directory": directory},
            **{name: it for name, it in more.items() if name != "sweep"},
            "sweep": {"over": over, **more.get("sweep", {})},
        }

    return edit


LRS = tune({"lr": [0.0001, 0.0003, 0.001]})


def runs(*edits: Edit) -> dict[str, str]:
    return {name: job.run for name, job in environment_plan(*edits).jobs.items()}


def test_a_sweep_is_a_run_for_each_combination_in_the_place_of_its_entry() -> None:
    plans = environment_plan(tune({"lr": [0.1, 0.2], "size": ["small", "large"]}), last()).jobs
    names = ["tune-0-1-small", "tune-0-1-large", "tune-0-2-small", "tune-0-2-large"]
    assert [*plans] == ["t5-large", *names, "last"]
    command = plans["tune-0-2-small"].spec["trainer"]["command"]
    assert command[-4:] == ["--lr", "0.2", "--size", "small"]
    assert plans["tune-0-2-small"].checkpoints == "scratch/tune/0.2-small"


def test_the_names_of_runs_are_those_of_the_engine_which_sorts_the_names_of_values() -> None:
    """`trainyard stop` knew no run of a sweep by the name that `trainyard plan` gave it."""
    over = {"size": ["small", "large"], "lr": [0.1, 0.2]}
    by_file = [*runs(tune(over))]
    assert by_file == [*runs(tune(dict(sorted(over.items()))))]
    assert by_file[1:] == [
        "tune-0-1-small",
        "tune-0-1-large",
        "tune-0-2-small",
        "tune-0-2-large",
    ]


def last(**more: Any) -> Edit:
    def edit(settings: dict[str, Any]) -> None:
        place = {"store": "scratch", "directory": "last"}
        settings["jobs"]["last"] = {**settings["jobs"]["t5-large"], "checkpoints": place, **more}

    return edit


def test_values_stand_in_every_text_but_not_in_a_variable_of_a_shell() -> None:
    script = 'LR={lr}; echo "${lr} $LR {other} {lr}"; torchrun /app/train.py --lr {lr}'
    edits = (tune({"lr": [3]}, script=script, env={"RATE": "{lr}"}), no_torchrun())
    spec = environment_plan(*edits).jobs["tune-3"].spec["trainer"]
    assert 'LR=3; echo "${lr} $LR {other} 3"' in spec["command"][-1]
    assert {"name": "RATE", "value": "3"} in spec["env"]


def no_torchrun() -> Edit:
    return lambda settings: settings["jobs"]["tune"].pop("torchrun")


def test_another_value_changes_no_other_run_wherever_it_stands() -> None:
    before = runs(LRS)
    after = runs(tune({"lr": [5, 0.001, 0.0001, 0.0003]}))
    assert before.items() <= after.items() and {*after} - {*before} == {"tune-5"}


def test_a_sweep_leaves_the_runs_of_other_jobs_alone() -> None:
    assert runs().items() <= runs(LRS).items()


def test_neither_the_metric_nor_the_number_at_once_starts_a_run() -> None:
    more = {"at_most": 1, "metric": {"name": "loss", "goal": "minimize"}}
    assert runs(LRS) == runs(tune({"lr": [0.0001, 0.0003, 0.001]}, sweep=more))


def test_run_of_the_entry_is_that_of_all_its_runs() -> None:
    found = runs(LRS, at(f"{TUNE}.run", 2))
    assert all(run.endswith("-2") for name, run in found.items() if name.startswith("tune-"))


def test_a_job_after_a_sweep_comes_after_all_its_runs_and_a_sweep_comes_after_a_job() -> None:
    plans = environment_plan(tune({"lr": [1, 2]}, after=["t5-large"]), last(after=["tune"])).jobs
    assert plans["last"].after == ("tune-1", "tune-2")
    assert plans["tune-1"].after == plans["tune-2"].after == ("t5-large",)


def test_a_run_waits_for_those_before_it_once_there_are_as_many_as_may_go_on() -> None:
    plans = environment_plan(tune({"lr": [1, 2, 3, 4]}, sweep={"at_most": 2})).jobs
    earlier = {name: job.sweep.earlier for name, job in plans.items() if job.sweep}
    assert earlier == {
        "tune-1": (),
        "tune-2": (),
        "tune-3": ("tune-1", "tune-2"),
        "tune-4": ("tune-1", "tune-2", "tune-3"),
    }
    assert plans["tune-1"].sweep and plans["tune-1"].sweep.others == ("tune-2", "tune-3", "tune-4")
    free = environment_plan(tune({"lr": [1, 2, 3]})).jobs
    assert all(job.sweep and not job.sweep.earlier for n, job in free.items() if n != "t5-large")


def test_the_job_itself_says_which_sweep_it_is_of() -> None:
    metric = {"name": "eval_loss", "goal": "minimize"}
    plans = environment_plan(tune({"lr": [0.1]}, sweep={"metric": metric})).jobs
    assert json.loads(plans["tune-0-1"].annotations[SWEEP]) == {
        "entry": "tune",
        "values": {"lr": "0.1"},
        "metric": metric,
    }
    assert SWEEP not in plans["t5-large"].annotations


def test_only_as_many_gangs_need_room_together_as_go_on_at_once() -> None:
    """The pool has four nodes."""
    text = "it has at most"
    four = [1, 2, 3, 4]
    together = planned(tune({"lr": four}, nodes=2))
    assert [each for each in map(str, together.warnings) if text in each]
    one = planned(tune({"lr": four}, nodes=2, sweep={"at_most": 1}))
    assert not [each for each in map(str, one.warnings) if text in each]


def test_a_problem_of_all_runs_is_told_once_at_their_entry() -> None:
    found = [str(each) for each in planned(LRS, at(f"{TUNE}.pool", "nowhere")).errors]
    assert len(found) == 1 and found[0].startswith("environment.jobs.tune.pool: ")


def test_a_team_has_sweeps_too() -> None:
    [name] = team_plan().jobs

    def swept(settings: dict[str, Any]) -> None:
        job = settings["jobs"][name]
        job["env"] = {"SEED": "{seed}"}
        job["sweep"] = {"over": {"seed": [1, 2]}}
        if "checkpoints" in job:
            job["checkpoints"] = {**job["checkpoints"], "directory": "own/{seed}"}

    assert [*team_plan(swept).jobs] == [f"{name}-1", f"{name}-2"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (True, "true"),
        (1.0, "1"),
        (1, "1"),
        (0.0001, "0.0001"),
        (1e-5, "1e-05"),
        ("3e-4", "3e-4"),
        (-2, "-2"),
    ],
)
def test_a_value_is_the_same_text_from_the_file_and_from_the_engine(value: Any, text: str) -> None:
    """The engine hands values over as JSON."""
    assert text_of(value) == text == text_of(json.loads(json.dumps(value)))


@given(
    st.lists(st.text(min_size=1), min_size=1, max_size=4),
    st.from_regex(r"\A[a-z]([-a-z0-9]{0,30}[a-z0-9])?\Z"),
)
def test_a_name_is_that_of_an_entry_whatever_the_values_are(values: list[str], entry: str) -> None:
    name = run_name(entry, dict(enumerate(values)))  # type: ignore[arg-type]
    assert len(name) <= LONGEST and name[-1].isalnum() and name.replace("-", "").isalnum()
    assert name == name.lower() and name[0].isalpha()


def test_a_negative_value_has_another_name_than_a_positive_one() -> None:
    assert run_name("tune", {"x": "-1"}) == "tune-minus1" != run_name("tune", {"x": "1"})


# Fixes are in the words of the entry that somebody has written.


def test_another_directory_for_a_run_keeps_the_names_of_the_sweep() -> None:
    plan = environment_plan(LRS).jobs["tune-0-001"]
    assert (plan.checkpoints, plan.other_directory) == ("scratch/tune/0.001", "tune/{lr}-2")
    numbered = tune({"lr": [0.1]}, checkpoints={"store": "scratch", "directory": "tune/{lr}/{run}"})
    job = unfolded(environment(numbered)).jobs["tune-0-1"]
    assert isinstance(job, JobConfig)
    after = next_run(job)
    assert after and (after.goes_on.directory, after.goes_on.at) == (
        "tune/{lr}/1",
        "scratch/tune/0.1/1",
    )


@pytest.mark.parametrize(
    ("at_most", "words"), [(2, "at most 2 at once"), (None, "all at once")], ids=str
)
def test_plan_draws_a_sweep_as_one_line_with_what_runs_at_once(
    at_most: int | None, words: str
) -> None:
    sweep = tune({"lr": [1, 2, 3]}, after=["t5-large"], sweep={"at_most": at_most})
    plan = environment_plan(sweep, last(after=["tune"]))
    [order] = [each for each in text(plan).split("\n\n") if "└─" in each]
    assert order.splitlines() == [
        "order",
        "  t5-large",
        f"  └─ tune: 3 runs, {words}",
        "     └─ last",
    ]


def test_a_job_that_a_sweep_cannot_come_after_is_said_once_and_another_entry_is_proposed() -> None:
    said = errors(tune({"lr": [1, 2]}, after=["t5-larg"]), last(after=["tun"]))
    found = [line for line in said if ".after:" in line]
    assert [line.partition("; got ")[2] for line in found] == [
        "t5-larg. Fix: write t5-large",
        "tun. Fix: write tune",
    ]


@pytest.mark.parametrize("lrs", [[0.1, 0.2], [1, 2, 3]])
def test_a_fix_of_all_runs_is_one_fix_of_the_entry(lrs: list[float]) -> None:
    place = {"store": "scratch", "directory": "tune/{lr}/../x-{lr}"}
    [said] = errors(tune({"lr": lrs}, checkpoints=place))
    assert "got tune/{lr}/../x-{lr}" in said and said.endswith("Fix: write tune/x-{lr}")


def test_problems_of_runs_that_differ_in_more_than_their_values_stay_apart() -> None:
    runs = {
        f"environment.jobs.tune-{n}": Derived(
            path="environment.jobs.tune",
            texts={f"tune/{n}": "tune/{n}", f"--n={n}": "--n={n}"},
            values={str(n): "{n}", f"tune-{n}": "tune"},
        )
        for n in (4, 5)
    }

    def said(fixes: dict[int, str]) -> set[str]:
        found = [
            At(f"environment.jobs.tune-{n}.nodes").must("be few", got="3", fix=fix)
            for n, fix in fixes.items()
        ]
        return {str(each) for each in in_the_file(found, runs)}

    begin = "environment.jobs.tune.nodes: must be few; got 3. Fix: "
    assert said({4: "write 4", 5: "write 4"}) == {f"{begin}write 4"}
    assert said({4: "write 4", 5: "write 6"}) == {f"{begin}write 4", f"{begin}write 6"}
    assert said({4: "write tune/4-2, or 4"}) == {f"{begin}write tune/{{n}}-2, or 4"}
    assert said({4: "write tune/4.5 or tune/40"}) == {f"{begin}write tune/4.5 or tune/40"}
    assert said({4: "stop tune-4", 5: "stop tune-5"}) == {f"{begin}stop tune"}
