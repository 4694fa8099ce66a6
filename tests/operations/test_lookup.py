"""Objects of an account are found from the inputs of the program, by moto's account."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws

from operations.lookup import ExistingObject, find

TRUST = json.dumps({"Version": "2012-10-17", "Statement": []})
WRITE = {"Effect": "Allow", "Action": "logs:PutLogEvents", "Resource": "*"}
RIGHTS = json.dumps({"Version": "2012-10-17", "Statement": [WRITE]})
MANAGED = "arn:aws:iam::aws:policy/AmazonEKSWorkerNodePolicy"
CASES: dict[str, tuple[dict[str, str], str]] = {
    "aws:iam/rolePolicy:RolePolicy": ({"role": "nodes", "name": "write"}, "nodes:write"),
    "aws:iam/rolePolicyAttachment:RolePolicyAttachment": (
        {"role": "nodes", "policyArn": MANAGED},
        f"nodes/{MANAGED}",
    ),
    "aws:cloudwatch/eventRule:EventRule": ({"name": "spot"}, "spot"),
    "aws:cloudwatch/eventTarget:EventTarget": (
        {"rule": "spot", "targetId": "karpenter"},
        "spot/karpenter",
    ),
    "aws:sns/topic:Topic": ({"name": "alerts"}, "arn:aws:sns:us-east-1:123456789012:alerts"),
}


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Iterator[boto3.Session]:
    monkeypatch.setenv("MOTO_IAM_LOAD_MANAGED_POLICIES", "true")
    with mock_aws():
        yield boto3.Session("id", "secret", region_name="us-east-1")


def _made(session: boto3.Session) -> None:
    iam, events = session.client("iam"), session.client("events")
    iam.create_role(RoleName="nodes", AssumeRolePolicyDocument=TRUST)
    iam.put_role_policy(RoleName="nodes", PolicyName="write", PolicyDocument=RIGHTS)
    iam.attach_role_policy(RoleName="nodes", PolicyArn=MANAGED)
    events.put_rule(Name="spot", EventPattern="{}")
    queue = "arn:aws:sqs:us-east-1:123456789012:q"
    events.put_targets(Rule="spot", Targets=[{"Id": "karpenter", "Arn": queue}])
    session.client("sns").create_topic(Name="alerts")


@pytest.mark.parametrize("kind", CASES)
def test_what_would_outlive_a_destroy_after_a_killed_update_is_found(
    session: boto3.Session, kind: str
) -> None:
    inputs, id_ = CASES[kind]
    assert find(session, kind, inputs) is None
    _made(session)
    assert find(session, kind, inputs) == ExistingObject(id=id_)


@pytest.mark.parametrize(
    ("kind", "other"),
    [
        ("aws:iam/rolePolicyAttachment:RolePolicyAttachment", {"policyArn": f"{MANAGED}2"}),
        ("aws:cloudwatch/eventTarget:EventTarget", {"targetId": "another"}),
    ],
)
def test_another_one_of_the_same_holder_is_not_it(
    session: boto3.Session, kind: str, other: dict[str, Any]
) -> None:
    _made(session)
    assert find(session, kind, CASES[kind][0] | other) is None


def test_a_workspace_is_found_by_its_whole_name(session: boto3.Session) -> None:
    """AWS gives it an id, and lists all whose names begin so."""
    amp, kind = session.client("amp"), "aws:amp/workspace:Workspace"
    amp.create_workspace(alias="dev-metrics-2")
    assert find(session, kind, {"alias": "dev-metrics"}) is None
    id_ = amp.create_workspace(alias="dev-metrics")["workspaceId"]
    assert find(session, kind, {"alias": "dev-metrics"}) == ExistingObject(id=id_)


def test_a_budget_is_found_by_its_name_in_the_account(session: boto3.Session) -> None:
    kind, inputs = "aws:budgets/budget:Budget", {"name": "dev-month"}
    assert find(session, kind, inputs) is None
    budget = {
        "BudgetName": "dev-month",
        "BudgetType": "COST",
        "TimeUnit": "MONTHLY",
        "BudgetLimit": {"Amount": "100", "Unit": "USD"},
    }
    session.client("budgets").create_budget(AccountId="123456789012", Budget=budget)
    assert find(session, kind, inputs) == ExistingObject(id="123456789012:dev-month")
