"""Who is told what a month costs: what an environment makes for it."""

from __future__ import annotations

import json
from typing import Any

import pulumi
import pytest

from tests.support.graphs import environment
from tests.support.recording import Graph
from tests.support.stackfile import Edit, at, environment_plan, errors
from trainyard.reports import policy

TOLD = at("budget", {"dollars_a_month": 20000, "emails": ["a@example.com", "b@example.com"]})


@pytest.fixture(scope="module")
def told() -> Graph:
    return environment(TOLD)


def test_the_setting_adds_a_budget_and_changes_nothing(told: Graph) -> None:
    before, after = json.loads(environment().golden()), json.loads(told.golden())
    assert [each for each in before if each not in after] == []
    assert {each["name"] for each in after if each not in before} == {"budget"}


def test_it_counts_what_has_the_tag_of_the_stack(told: Graph) -> None:
    budget = told["Budget budget"].inputs
    tag = {"name": "TagKeyValue", "values": ["user:trainyard:stack$dev"]}
    assert budget["costFilters"] == [tag]
    assert (budget["limitAmount"], budget["limitUnit"]) == ("20000", "USD")
    assert (budget["timeUnit"], budget["budgetType"]) == ("MONTHLY", "COST")
    assert told["Vpc network"].inputs["tags"]["trainyard:stack"] == "dev"


def test_credits_of_aws_do_not_hide_what_is_used(told: Graph) -> None:
    """AWS takes them off before it compares, so nobody heard of a month before they were used up."""
    assert told["Budget budget"].inputs["costTypes"] == {"includeCredit": False}


@pytest.mark.parametrize(("dollars", "written"), [(12345678, "12345678"), (4999.5, "4999.5")])
def test_the_amount_has_all_its_digits(dollars: float, written: str) -> None:
    graph = environment(TOLD, at("budget.dollars_a_month", dollars))
    assert graph["Budget budget"].inputs["limitAmount"] == written


def test_a_preview_refuses_a_budget_that_an_idle_month_exceeds() -> None:
    with pytest.raises(pulumi.RunError) as refused:
        environment(TOLD, at("budget.dollars_a_month", 20))
    assert "environment.budget.dollars_a_month" in str(refused.value)
    assert "an idle month" in str(refused.value)


def test_everybody_is_told_before_and_when_it_is_spent_and_when_aws_expects_it(
    told: Graph,
) -> None:
    said = told["Budget budget"].inputs["notifications"]
    at_ = [(each["threshold"], each["notificationType"]) for each in said]
    assert at_ == [(80, "ACTUAL"), (100, "ACTUAL"), (100, "FORECASTED")]
    everybody = ["a@example.com", "b@example.com"]
    assert all(each["subscriberEmailAddresses"] == everybody for each in said)


@pytest.mark.parametrize(
    ("wanted", "path"),
    [
        ({"dollars_a_month": 0, "emails": ["a@example.com"]}, "budget.dollars_a_month"),
        ({"dollars_a_month": 5, "emails": []}, "budget.emails"),
        ({"dollars_a_month": 5, "emails": ["oncall"]}, "budget.emails[0]"),
    ],
)
def test_a_budget_that_nobody_hears_of_is_refused(wanted: dict[str, Any], path: str) -> None:
    assert any(each.startswith(f"environment.{path}: ") for each in errors(at("budget", wanted)))


def test_who_deploys_may_change_budgets_of_the_stack_only() -> None:
    def statements(*edits: Edit) -> list[dict[str, Any]]:
        made = policy.policies(environment_plan(*edits))
        return [each for document in made.values() for each in document["Statement"]]

    [write] = [each for each in statements(TOLD) if "budgets:ModifyBudget" in each["Action"]]
    assert write["Resource"] == "arn:aws:budgets::*:budget/dev-*"
    [read] = [each for each in statements(TOLD) if "budgets:ViewBudget" in each["Action"]]
    assert "Condition" not in read, "Budgets answers in us-east-1, whatever the region of the stack"
    assert not [each for each in statements() if "budgets:" in json.dumps(each)]
