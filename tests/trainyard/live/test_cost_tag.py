"""`trainyard check --live` of an environment whose budget counts by a tag."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import pytest
from botocore.stub import Stubber

from tests.support.stackfile import at, environment_plan
from trainyard.live.cost_tag import cost_tag_checks
from trainyard.live.questions.account import Account
from trainyard.live.questions.caller import NotAnswered
from trainyard.plans.access import AccessPlan
from trainyard.reports import policy

BUDGET = at("budget", {"dollars_a_month": 20000, "emails": ["a@example.com"]})
COMMAND = (
    "`aws ce update-cost-allocation-tags-status --cost-allocation-tags-status"
    " TagKey=trainyard:stack,Status=Active`"
)


def said(**answer: Any) -> list[str]:
    told = Mock(spec=Account)
    told.cost_tag.configure_mock(**answer)
    checks = cost_tag_checks(told, environment_plan(BUDGET))
    return [str(finding) for check in checks.values() for finding in check()]


def test_an_active_tag_and_an_environment_without_a_budget_have_no_warning() -> None:
    assert said(return_value="Active") == []
    assert cost_tag_checks(Mock(spec=Account), environment_plan()) == {}


@pytest.mark.parametrize(
    ("status", "end"), [("Inactive", COMMAND), ("", "hours after the first `pulumi up`")]
)
def test_a_tag_that_is_not_active_is_a_warning_with_the_command(status: str, end: str) -> None:
    [warning] = said(return_value=status)
    assert warning.startswith("environment.budget: the cost allocation tag trainyard:stack is not")
    assert "the budget counts nothing" in warning
    assert COMMAND in warning and warning.endswith(end)


def test_an_account_that_does_not_pay_is_said_to_be_unable_to_ask() -> None:
    denied = NotAnswered("ce:ListCostAllocationTags: AccessDeniedException")
    [warning] = said(side_effect=denied)
    assert f"cannot be asked: {denied}. Only the account that pays may ask" in warning
    assert COMMAND in warning


def test_the_status_is_that_of_the_tag_of_users(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    ours = Account(AccessPlan(region="ap-northeast-2"))
    asked = {"TagKeys": ["trainyard:stack"], "Type": "UserDefined"}
    tag = {"TagKey": "trainyard:stack", "Type": "UserDefined", "Status": "Inactive"}
    with Stubber(ours._clients["ce"]) as stub:
        for tags in ([tag], []):
            answer = {"CostAllocationTags": tags}
            stub.add_response("list_cost_allocation_tags", answer, asked)
        assert [ours.cost_tag("trainyard:stack") for _ in range(2)] == ["Inactive", ""]


def test_who_previews_a_stack_with_a_budget_may_ask_in_every_region() -> None:
    def statements(*edits: Any) -> list[dict[str, Any]]:
        made = policy.policies(environment_plan(*edits), preview=True)
        return [each for document in made.values() for each in document["Statement"]]

    call = "ce:ListCostAllocationTags"
    [read] = [each for each in statements(BUDGET) if call in each["Action"]]
    assert "Condition" not in read, "Cost Explorer answers in us-east-1 only"
    assert not [each for each in statements() if call in each["Action"]]
