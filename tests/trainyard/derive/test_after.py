"""What follows from `after`: the order of the plans, the identity of a run, the diagram, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.stackfile import Edit, at, environment_plan, team_plan
from trainyard.problems import Refused
from trainyard.reports.plan import text

JOB = "jobs.t5-large"
FILE = "tests/workloads/valid/trainjob-clone-pinned.yaml"
"""A job file, whose jobs have no `data` and may have `after`."""


def beside(**after: list[str] | None) -> Edit:
    """Other jobs like the dev file's, each after some."""

    def edit(settings: dict[str, Any]) -> None:
        jobs = settings["jobs"]
        for name, before in after.items():
            place = {"store": "scratch", "directory": name}
            order = {"after": before} if before is not None else {}
            jobs[name] = {**jobs["t5-large"], "checkpoints": place, **order}

    return edit


CHAIN = (
    beside(export=["evaluate", "prepare"], evaluate=["t5-large"], prepare=None),
    at(f"{JOB}.after", ["prepare"]),
)


def runs(*edits: Edit) -> dict[str, str]:
    return {name: job.run for name, job in environment_plan(*edits).jobs.items()}


def test_a_job_stands_behind_those_that_it_comes_after() -> None:
    plans = environment_plan(*CHAIN).jobs
    assert [*plans] == ["prepare", "t5-large", "evaluate", "export"]
    assert plans["export"].after == ("evaluate", "prepare") and plans["prepare"].after == ()


def test_a_job_without_after_keeps_its_run_and_its_place() -> None:
    alone = runs(beside(b=None, a=None))
    assert [*alone] == ["t5-large", "b", "a"]
    assert runs(beside(b=None, a=["b"]))["b"] == alone["b"]


def test_a_run_is_another_one_where_one_before_it_is() -> None:
    before = runs(*CHAIN)
    again = runs(*CHAIN, at(f"{JOB}.run", 2))
    changed = {name for name in before if before[name] != again[name]}
    assert changed == {"t5-large", "evaluate", "export"}
    assert again["evaluate"].endswith("-1") and again["t5-large"].endswith("-2")


def test_the_order_of_the_list_is_no_other_run() -> None:
    one = runs(*CHAIN, at("jobs.export.after", ["prepare", "evaluate"]))
    assert one["export"] == runs(*CHAIN)["export"]


def test_a_file_comes_after_an_entry_and_an_entry_after_a_file() -> None:
    file = {"manifest": FILE, "pool": "g6e", "claims": {"data": "scratch"}, "after": ["t5-large"]}
    plans = environment_plan(at("jobs.file", file), beside(last=["file"])).jobs
    assert [*plans] == ["t5-large", "file", "last"] and plans["file"].after == ("t5-large",)
    alone = {name: value for name, value in file.items() if name != "after"}
    assert plans["file"].run != environment_plan(at("jobs.file", alone)).jobs["file"].run


def test_plan_draws_each_job_once() -> None:
    [order] = [each for each in text(environment_plan(*CHAIN)).split("\n\n") if "└─" in each]
    assert order.splitlines() == [
        "order",
        "  prepare",
        "  └─ t5-large",
        "     └─ evaluate",
        "        └─ export (also after prepare)",
    ]
    assert "order\n" not in text(environment_plan(beside(other=None)))


@pytest.mark.parametrize(
    ("edits", "words"),
    [
        ([at(f"{JOB}.after", ["t5-large"])], "not lead back to the job itself; got t5-large after"),
        ([at(f"{JOB}.after", ["nobody"])], "must name jobs of this stack; got nobody"),
        (
            [beside(a=["t5-large"], b=["a"]), at(f"{JOB}.after", ["b"])],
            "must not lead back to the job itself",
        ),
    ],
    ids=["itself", "nobody", "circle"],
)
def test_an_order_that_cannot_be_is_refused(edits: list[Edit], words: str) -> None:
    with pytest.raises(Refused) as refused:
        environment_plan(*edits)
    assert [line for line in map(str, refused.value.errors) if words in line and ".after:" in line]


def test_the_jobs_of_a_team_have_an_order_too() -> None:
    [name] = team_plan().jobs

    def second(settings: dict[str, Any]) -> None:
        first = settings["jobs"][name]
        settings["jobs"]["second"] = {**first, "after": [name]}
        if "checkpoints" in first:
            place = {**first["checkpoints"], "directory": "second"}
            settings["jobs"]["second"]["checkpoints"] = place

    assert team_plan(second).jobs["second"].after == (name,)
