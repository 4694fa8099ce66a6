"""The table of steps: cheapest first, each with a stack file that the rules accept, and nothing of a person's
own in them."""

from __future__ import annotations

from typing import Any

import pytest

from trainyard.catalog.aws.instances import GPU_TYPES
from trainyard.catalog.aws.prices import price
from trainyard.decide import plan_stack
from trainyard.operations.prove.acts import ACTS
from trainyard.operations.prove.limit import Offer
from trainyard.operations.prove.steps import GPU, INSTANCE, JOB, NAMES, STEPS, settings_of
from trainyard.plan import EnvironmentPlan
from trainyard.reports.costs.cost import estimate
from trainyard.settings.reading.reader import read

KEY = "trainyard:environment"
CONFIG: dict[str, Any] = {
    "aws:region": "us-east-1",
    KEY: {
        "zone": "us-east-1a",
        "cluster": {
            "version": "1.35",
            "endpoint": "public-and-private",
            "public_access_cidrs": ["192.0.2.7/32"],
            "log_retention_days": 1,
        },
        "pools": {"old": {"instance_types": ["p5.48xlarge"], "max_nodes": 64}},
        "storage": {"old": {"lustre": {"capacity_gib": 1200, "deployment": "SCRATCH_2"}}},
        "trainer": {"version": "2.1.0", "runtimes": ["torch-distributed"]},
        "artifacts": {"charts": "charts"},
        "jobs": {JOB: {"pool": GPU}},
    },
}
BUILDING = [step for step in STEPS if step.builds]


def test_each_step_has_an_action_and_no_action_is_without_a_step() -> None:
    assert tuple(ACTS) == NAMES


def test_what_cleans_comes_last_and_questions_come_first() -> None:
    order = [(step.cleans, step.builds) for step in STEPS]
    assert order == [(False, False), *[(False, True)] * 3, *[(True, False)] * 2]


@pytest.mark.parametrize("step", BUILDING, ids=lambda step: step.name)
def test_the_stack_file_of_a_step_has_its_own_pools_and_stores_and_all_else_stays(
    step: Any,
) -> None:
    changed = settings_of(step, CONFIG, KEY)
    environment = changed[KEY]
    assert "old" not in environment["pools"] and "old" not in environment["storage"]
    assert all(store["data"] == "delete" for store in environment["storage"].values())
    assert environment["artifacts"] == {"charts": "charts"} and changed["aws:region"] == "us-east-1"
    assert ("jobs" in environment) is step.keeps_jobs
    assert CONFIG[KEY]["pools"].keys() == {"old"}, "the settings that it is given are not changed"


def _offer(step: Any) -> Offer:
    changed = settings_of(step, CONFIG, KEY)
    changed[KEY].pop("jobs", None)
    plan = plan_stack(read(changed, stack="prove", project="trainyard")).accepted()
    assert isinstance(plan, EnvironmentPlan)
    rate = estimate(plan).all_full.most_usd_per_hour
    assert rate is not None, "every price is known in us-east-1"
    return Offer(step=step, usd_per_hour=rate)


def test_each_step_costs_more_than_the_one_before_and_all_of_them_fit_into_15_dollars() -> None:
    """docs/prove.md says so."""
    offers = [_offer(step) for step in BUILDING]
    rates = [offer.usd_per_hour for offer in offers]
    assert rates == sorted(rates) and len(set(rates)) == len(rates)
    assert sum(offer.most_usd for offer in offers) < 15


def test_the_instance_of_the_gpu_pool_is_the_cheapest_one_with_a_gpu_and_efa() -> None:
    prices = {
        name: found.usd
        for name, kind in GPU_TYPES.items()
        if kind.efa and (found := price("ec2", name, "us-east-1"))
    }
    assert min(prices, key=lambda name: prices[name]) == INSTANCE
