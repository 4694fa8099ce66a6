"""A call of AWS that the account does not know is answered with the call's name, in the protocol of its
service."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.rehearsal.aws_world import Account, served

Ask = Callable[[Account], Any]
CALLS: dict[str, Ask] = {
    "dynamodb:ListTables": lambda account: account.client("dynamodb").list_tables(),
    "elasticloadbalancing:DescribeLoadBalancers": (
        lambda account: account.client("elbv2").describe_load_balancers()
    ),
    "lambda:GET /2015-03-31/functions": (lambda account: account.client("lambda").list_functions()),
    "route53:GET /2013-04-01/hostedzone": (
        lambda account: account.client("route53").list_hosted_zones()
    ),
    "eks:ListInsights": lambda account: account.client("eks").list_insights(clusterName="demo"),
    "budgets:DescribeBudgetPerformanceHistory": (
        lambda account: account.client("budgets").describe_budget_performance_history(
            AccountId="123456789012", BudgetName="b"
        )
    ),
}
"""The name that the answer must have → a call of a service, or of an operation, that is not here."""


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Account]:
    folder: Path = tmp_path_factory.mktemp("unknown")
    with pytest.MonkeyPatch.context() as patch, served(folder, patch) as made:
        yield made


@pytest.mark.parametrize("name", CALLS)
def test_an_unknown_call_is_answered_with_its_name(account: Account, name: str) -> None:
    with pytest.raises(ClientError) as caught:
        CALLS[name](account)
    told = caught.value.response["Error"]
    assert told["Code"] == "NotImplemented" and name in told["Message"], told
