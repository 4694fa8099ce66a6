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
