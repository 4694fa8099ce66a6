"""Three stacks in six regions: no headline is a floor alone."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from tests.graph.test_recorded_stacks import changes_of
from tests.support.recording import CHECKOUT, stack_values
from tests.support.stackfile import ENVIRONMENT
from trainyard.decide import plan_stack
from trainyard.plan import EnvironmentPlan
from trainyard.reports.box import box_of
from trainyard.reports.costs.amounts import Amount, Bounds
from trainyard.reports.costs.cost import estimate
from trainyard.reports.minutes.timeline import schedule
from trainyard.settings.reading.reader import read

ZONES = {
    "us-east-1": "use1-az1",
    "us-east-2": "use2-az1",
    "us-west-2": "usw2-az1",
    "eu-west-1": "euw1-az2",
    "ap-northeast-1": "apne1-az1",
    "ap-northeast-2": "apne2-az1",
}
SOLD_IN_IRELAND = {"g6e.48xlarge": "g5.48xlarge", "p5.48xlarge": "p4d.24xlarge"}
"""Type of the stack files → one that eu-west-1 has."""
STACKS = ("dev", "two-pools", "everything")


def moved(stack: str, region: str) -> EnvironmentPlan:
    """A stack in another region, each of whose jobs says its hours."""
    values = copy.deepcopy(stack_values("dev"))
    changes_of(stack)(values)
    text = json.dumps(values).replace("ap-northeast-2", region).replace("apne2-az1", ZONES[region])
    for ours, theirs in SOLD_IN_IRELAND.items() if region == "eu-west-1" else ():
        text = text.replace(ours, theirs)
    there: dict[str, Any] = json.loads(text)
    for job in there[ENVIRONMENT]["jobs"].values():
        job.setdefault("expected_hours", 12)
    reading = read(there, stack="dev", project="trainyard")
    plan = plan_stack(reading, CHECKOUT).plan
    assert isinstance(plan, EnvironmentPlan)
    return plan


def has_no_open_end(amount: Amount | None) -> bool:
    """It is whole, between two bounds, or has a range with guesses that is not below what is known."""
    if amount is None or amount.usd is None:
        return False
    if amount.most_usd is not None:
        return amount.guess is None
    guess = amount.guess
    return bool(guess) and amount.usd <= guess.usd <= guess.most_usd


@pytest.mark.parametrize("region", ZONES)
@pytest.mark.parametrize("stack", STACKS)
def test_no_amount_of_the_box_is_a_floor_alone(stack: str, region: str) -> None:
    plan = moved(stack, region)
    costs = estimate(plan)
    box = box_of(plan, costs, schedule(plan))
    for amount in (box.usd_a_month_idle, box.usd_a_run_all_in, box.usd_a_month_all_pools_full):
        assert has_no_open_end(amount), amount
    assert box.usd_once is None or box.usd_once.most_usd or box.usd_once.guess
    assert all(has_no_open_end(job.all_in) for job in costs.jobs)
    assert ("with guessed prices; without them" in str(box)) == bool(box.prices_missing)


def test_a_guess_is_in_no_sum_but_its_own() -> None:
    plan = moved("dev", "ap-northeast-2")
    costs = estimate(plan)
    [scratch] = [line for line in costs.storage if line.what.startswith("Lustre scratch")]
    others = [line for line in (*costs.fixed, *costs.storage) if line is not scratch]
    assert scratch.usd_per_hour is None and scratch.guess
    assert costs.idle.usd_per_hour == sum(line.usd_per_hour or 0 for line in others)
    assert costs.idle.guess == Bounds(
        usd=costs.idle.usd_per_hour + scratch.guess.usd,
        most_usd=costs.idle.usd_per_hour + scratch.guess.most_usd,
    )


def test_a_whole_sum_has_no_guess() -> None:
    costs = estimate(moved("dev", "us-east-1"))
    assert (costs.idle.guess, costs.idle.missing) == (None, ())
    assert "guess" not in str(
        [costs.jobs[0].all_in and costs.jobs[0].all_in.said, costs.idle.as_of]
    )
