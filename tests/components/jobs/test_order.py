"""A run begins when the run before it is complete; where that fails, it does not."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from components.jobs import order, unanswered, wait_for_job
from components.jobs.order import NotBegun
from tests.support.stackfile import environment_plan
from trainyard.plans.jobs import RUN, SWEEP, JobPlan, SweepPlan


def plan() -> JobPlan:
    return environment_plan().jobs["t5-large"]


def test_it_waits_for_the_whole_run_and_as_long_as_that_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[Any] = []

    def wait(*where: str, until: str, minutes: float) -> str:
        asked.append((*where, until, minutes))
        return "Complete"

    monkeypatch.setattr(wait_for_job, "wait", wait)
    order._complete("evaluate", "kubeconfig", plan())
    assert asked == [("kubeconfig", "TrainJob", "training", "t5-large", "complete", float("inf"))]


def test_a_run_that_failed_ends_what_waits_and_says_which(monkeypatch: pytest.MonkeyPatch) -> None:
    def wait(*where: str, until: str, minutes: float) -> str:
        raise wait_for_job.RunFailed("TrainJob training/t5-large is Failed: out of memory")

    monkeypatch.setattr(wait_for_job, "wait", wait)
    words = (
        "evaluate does not begin, because it comes after this: TrainJob training/t5-large is Failed"
    )
    with pytest.raises(NotBegun, match=words):
        order._complete("evaluate", "kubeconfig", plan())


def test_a_run_that_is_gone_begins_nothing_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A wait for it alone is a warning: of a stack whose job somebody has stopped."""
    monkeypatch.setattr(wait_for_job, "wait", lambda *_, **__: wait_for_job.GONE)
    words = "it comes after this: TrainJob training/t5-large is not on the cluster: it was stopped"
    with pytest.raises(NotBegun, match=words):
        order._complete("evaluate", "kubeconfig", plan())


def may_begin(at_most: int, run: str = "d", **states: list[str] | None) -> bool:
    """Whether a run may begin beside a, b and c. `states`: conditions of those in the cluster."""
    found = [
        {
            "metadata": {"name": name, "annotations": {RUN: f"{name}-1"}},
            "status": {"conditions": [{"type": each, "status": "True"} for each in conditions]},
        }
        for name, conditions in states.items()
        if conditions is not None
    ]
    others = {name: f"{name}-1" for name in "abcd" if name != run}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wait_for_job, "listed", lambda kubectl, kind: found)
        return bool(order._may_begin(("kubectl",), replace(plan(), name=run), others, at_most))


@pytest.fixture(autouse=True)
def nothing_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(order, "_BEGUN", {})


@pytest.mark.parametrize("end", [["Complete"], ["Suspended", "Failed"], None])
def test_a_run_that_has_ended_in_any_way_or_is_gone_holds_no_other_up(
    end: list[str] | None,
) -> None:
    assert may_begin(2, a=end, b=["Created"], c=end)
    assert not may_begin(1, a=end, b=["Created"], c=end)


def test_a_run_behind_it_in_the_list_that_goes_on_holds_it_up() -> None:
    """As where somebody adds a value before the others."""
    assert not may_begin(2, "a", b=["Created"], c=["Created"])
    assert may_begin(2, "a", b=["Created"], c=["Complete"])


def test_a_run_that_this_update_replaces_holds_no_other_up(monkeypatch: pytest.MonkeyPatch) -> None:
    old = {"metadata": {"name": "b", "annotations": {RUN: "b-0"}}}
    monkeypatch.setattr(wait_for_job, "listed", lambda kubectl, kind: [old])
    assert order._may_begin(("kubectl",), plan(), {"b": "b-1"}, 1)


def test_a_run_whose_value_is_taken_away_counts_while_it_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The engine deletes it behind this wait: a sweep of two at once had three."""

    def job(name: str, entry: str, *conditions: str) -> dict[str, Any]:
        notes = {RUN: f"{name}-1", SWEEP: json.dumps({"entry": entry})}
        status = {"conditions": [{"type": each, "status": "True"} for each in conditions]}
        return {"metadata": {"name": name, "annotations": notes}, "status": status}

    sweep = SweepPlan(entry="tune", at_most=2, earlier=(), others=("b",))
    run = replace(plan(), sweep=sweep)

    def begins(*found: dict[str, Any]) -> bool:
        monkeypatch.setattr(wait_for_job, "listed", lambda kubectl, kind: found)
        return bool(order._may_begin(("kubectl",), run, {"b": "b-1"}, 2))

    assert not begins(job("b", "tune"), job("gone", "tune"))
    assert begins(job("b", "tune"), job("gone", "tune", "Failed"), job("of-another", "lab"))


def test_two_runs_that_look_at_the_same_time_do_not_both_begin() -> None:
    assert may_begin(2, "a", c=["Created"])
    assert not may_begin(2, "b", c=["Created"]), "a is not in the cluster yet"
    assert may_begin(2, "b", a=["Complete"], c=["Created"])


def test_a_run_waits_until_fewer_go_on_than_may(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where nobody answers, all go on."""
    runs = [{"metadata": {"name": name, "annotations": {RUN: "1"}}} for name in "ab"]
    looks: list[Any] = [runs, None, runs[:1]]
    monkeypatch.setattr(wait_for_job, "listed", lambda kubectl, kind: looks.pop(0))
    monkeypatch.setattr(wait_for_job, "POLL_SECONDS", 0)
    order._wait_for_turn("kubeconfig", plan(), {"a": "1", "b": "1"}, 2)
    assert looks == []


def test_a_cluster_that_answers_nobody_for_long_begins_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A chain and a sweep waited for ever once the credentials had expired."""
    monkeypatch.setattr(unanswered, "MINUTES", 0)
    monkeypatch.setattr(wait_for_job, "listed", lambda *_: None)
    monkeypatch.setattr(wait_for_job, "silence", lambda *_: "Unauthorized")
    words = "the cluster has not answered for 0 minutes: Unauthorized. Fix: if your credentials have expired, log in"
    with pytest.raises(NotBegun, match=f"t5-large does not begin: {words} again"):
        order._wait_for_turn("kubeconfig", plan(), {"a": "1"}, 1)
    with pytest.raises(NotBegun, match=f"after this: TrainJob training/t5-large, and {words}"):
        order._complete("evaluate", "kubeconfig", plan())


@pytest.mark.parametrize(
    ("earlier", "most", "said"),
    [
        (["a"], 1, "after a has ended"),
        (["a", "b"], 1, "after a, b have ended"),
        (["a", "b"], 2, "after one of a, b has ended"),
        (
            ["a", "b", "c"],
            2,
            "after all but 1 of the 3 runs before it in its sweep have ended: a, b, c",
        ),
    ],
)
def test_the_turn_of_a_run_is_said_by_the_runs_that_must_end(
    earlier: list[str], most: int, said: str
) -> None:
    assert order._turn_in_words(earlier, most) == said
