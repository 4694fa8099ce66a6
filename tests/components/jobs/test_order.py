"""A run begins when the run before it is complete; where that fails, it does not."""

from __future__ import annotations

from typing import Any

import pytest

from components.jobs import order, wait_for_job
from components.jobs.order import NotBegun
from tests.support.stackfile import environment_plan
from trainyard.plans.jobs import JobPlan


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


def turns(at_most: int, *states: list[str] | None) -> tuple[list[str], list[str]]:
    """Runs that may go on of three, and those that were asked for. `states`: conditions of each; none where it
    is gone, and None where nobody answers."""
    asked: list[str] = []
    of = dict(zip("abc", states, strict=True))

    def jobs_named(kubectl: Any, kind: str, name: str) -> list[Any] | None:
        asked.append(name)
        conditions = of[name]
        if conditions is None:
            return None
        status = {"conditions": [{"type": each, "status": "True"} for each in conditions]}
        return [{"status": status}] if conditions else []

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wait_for_job, "jobs_named", jobs_named)
        return order._going(("kubectl",), "TrainJob", [*of], at_most), asked


@pytest.mark.parametrize("end", [["Complete"], ["Suspended", "Failed"], []])
def test_a_run_that_has_ended_in_any_way_or_is_gone_holds_no_other_up(end: list[str]) -> None:
    assert turns(2, end, ["Created"], end) == (["b"], ["a", "b", "c"])


def test_no_more_runs_are_asked_for_than_may_go_on_at_once() -> None:
    assert turns(1, ["Suspended"], ["Complete"], ["Complete"]) == (["a", "b", "c"], ["a"])


def test_a_run_of_which_nobody_says_anything_goes_on() -> None:
    assert turns(3, None, ["Complete"], ["Complete"]) == (["a"], ["a", "b", "c"])


def test_a_run_waits_until_fewer_go_on_than_may(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = [["a", "b"], ["a", "b"], ["b"]]
    seen: list[tuple[str, ...]] = []

    def going(kubectl: Any, kind: str, names: list[str], most: int) -> list[str]:
        seen.append((kind, *names))
        return looks[len(seen) - 1]

    monkeypatch.setattr(order, "_going", going)
    monkeypatch.setattr(wait_for_job, "POLL_SECONDS", 0)
    order._wait_for_turn("kubeconfig", plan(), ["a", "b", "c"], 2)
    assert seen == [("TrainJob", "a", "b", "c"), ("TrainJob", "a", "b"), ("TrainJob", "a", "b")]


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
