"""AWS Budgets: what is written is kept, and what AWS refuses is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.rehearsal.aws.test_permissions import Somebody
from tests.rehearsal.aws_world import Account, refused, served

WHO = {"AccountId": "123456789012"}
BUDGET = {
    "BudgetName": "dev-month",
    "BudgetType": "COST",
    "TimeUnit": "MONTHLY",
    "BudgetLimit": {"Amount": "100", "Unit": "USD"},
    "CostFilters": {"TagKeyValue": ["user:trainyard:stack$dev"]},
}
AT_80 = {
    "NotificationType": "ACTUAL",
    "ComparisonOperator": "GREATER_THAN",
    "Threshold": 80,
    "ThresholdType": "PERCENTAGE",
}
NAMED = {**WHO, "BudgetName": "dev-month"}


def things(make: Callable[..., Any], around: Mapping[str, Any]) -> Iterator[Any]:
    """An object of the type of the aws plugin (tests/rehearsal/providers/test_aws.py)."""
    yield make(
        "Budget",
        name="dev-month",
        budgetType="COST",
        timeUnit="MONTHLY",
        limitAmount="100",
        limitUnit="USD",
        costFilters=[{"name": "TagKeyValue", "values": ["user:trainyard:stack$dev"]}],
        notifications=[
            {
                "comparisonOperator": "GREATER_THAN",
                "threshold": 80,
                "thresholdType": "PERCENTAGE",
                "notificationType": "ACTUAL",
                "subscriberEmailAddresses": ["a@example.com"],
            }
        ],
    )


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    with served(tmp_path, monkeypatch) as found:
        yield found


@pytest.fixture
def budgets(account: Account) -> Any:
    client = account.client("budgets")
    client.create_budget(**WHO, Budget=BUDGET)
    return client


def readers(*addresses: str) -> list[dict[str, str]]:
    return [{"SubscriptionType": "EMAIL", "Address": address} for address in addresses]


def test_a_budget_changes_in_place_and_is_gone_when_it_is_deleted(
    account: Account, budgets: Any
) -> None:
    more = {**BUDGET, "BudgetLimit": {"Amount": "200", "Unit": "USD"}}
    budgets.update_budget(**WHO, NewBudget=more)
    assert budgets.describe_budget(**NAMED)["Budget"]["BudgetLimit"]["Amount"] == "200"
    assert "budget" in account.types()
    budgets.delete_budget(**NAMED)
    assert "budget" not in account.types()
    with refused("NotFoundException"):
        budgets.describe_budget(**NAMED)


def test_two_budgets_have_no_name_in_common(budgets: Any) -> None:
    with refused("DuplicateRecordException"):
        budgets.create_budget(**WHO, Budget=BUDGET)


def test_a_notification_has_at_most_ten_addresses(budgets: Any) -> None:
    given = {**NAMED, "Notification": AT_80}
    with refused("CreationLimitExceededException"):
        budgets.create_notification(**given, Subscribers=readers(*(f"{n}@a.de" for n in range(11))))
    budgets.create_notification(**given, Subscribers=readers("a@example.com"))
    told = budgets.describe_subscribers_for_notification(**given)["Subscribers"]
    assert told == readers("a@example.com")


def test_a_role_changes_the_budgets_that_its_policy_names(account: Account, budgets: Any) -> None:
    somebody = Somebody(account, "deployer")
    somebody.may(
        {
            "Effect": "Allow",
            "Action": "budgets:ModifyBudget",
            "Resource": "arn:aws:budgets::*:budget/dev-*",
        }
    )
    theirs = somebody.client("budgets")
    theirs.update_budget(**WHO, NewBudget=BUDGET)
    with refused("AccessDeniedException"):
        theirs.describe_budget(**NAMED)
    with refused("AccessDeniedException"):
        theirs.create_budget(**WHO, Budget={**BUDGET, "BudgetName": "other"})
