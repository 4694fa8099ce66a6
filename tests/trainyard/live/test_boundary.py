"""What `trainyard check --live` says about a permissions boundary, and who may ask."""

from __future__ import annotations

import json

import pytest
from moto import mock_aws

from tests.support.stackfile import Edit, at, environment_plan
from tests.trainyard.live.test_preflight import REGION, errors
from trainyard.live.questions.account import Account
from trainyard.objects.iam.policies import document
from trainyard.plans.access import AccessPlan
from trainyard.reports import policy

OURS = "arn:aws:iam::123456789012:policy/boundary"
THEIRS = "arn:aws:iam::210987654321:policy/boundary"
OF_AWS = "arn:aws:iam::aws:policy/PowerUserAccess"
SETTING = "permissions_boundary"


@pytest.mark.parametrize("arn", [OURS, OF_AWS])
def test_a_policy_that_exists_has_no_error(arn: str) -> None:
    assert errors(at(SETTING, arn)) == []


@pytest.mark.parametrize(
    ("arn", "exists", "got"),
    [
        (OURS, False, f"got {OURS}, which does not exist. Fix: create it"),
        (OF_AWS, False, f"got {OF_AWS}, which does not exist. Fix: create it"),
        (THEIRS, True, f"got {THEIRS}. Fix: create it, or write the ARN of one that exists"),
        (THEIRS, False, f"got {THEIRS}. Fix: create it, or write the ARN of one that exists"),
    ],
)
def test_a_policy_that_no_role_can_have_is_refused(arn: str, exists: bool, got: str) -> None:
    [error] = errors(at(SETTING, arn), has_policy=exists)
    assert error.startswith(f"environment.{SETTING}")
    assert "must be an IAM policy of account 123456789012, or one of AWS" in error
    assert got in error


def test_a_stack_without_a_boundary_asks_about_none() -> None:
    assert errors(has_policy=False) == []


def test_the_account_knows_its_policies() -> None:
    with mock_aws():
        account = Account(AccessPlan(region=REGION))
        assert not account.has_policy(OURS)
        account._clients["iam"].create_policy(
            PolicyName="boundary",
            PolicyDocument=json.dumps(document({"Action": ["s3:*"], "Resource": "*"})),
        )
        assert account.has_policy(OURS)


@pytest.mark.parametrize("preview", [True, False])
def test_who_deploys_and_previews_may_read_the_boundary_and_no_other_policy(preview: bool) -> None:
    def reads(*edits: Edit) -> list[str]:
        documents = policy.policies(environment_plan(*edits), preview=preview).values()
        return [
            statement["Resource"]
            for document in documents
            for statement in document["Statement"]
            if "iam:GetPolicy" in statement["Action"]
        ]

    assert reads(at(SETTING, OURS)) == [OURS]
    assert reads() == []
