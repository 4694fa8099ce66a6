"""What `trainyard check --live` says about secrets of Secrets Manager, and who may ask."""

from __future__ import annotations

import json
from typing import Any

import pytest
from moto import mock_aws

from tests.support.stackfile import at, environment_plan
from tests.trainyard.live.test_preflight import REGION, errors
from trainyard.live.questions.account import Account
from trainyard.plans.access import AccessPlan
from trainyard.reports import policy

NAME = "vision/hf"
SECRET = {"secrets_manager": NAME, "key": "token"}
READS = at("jobs.t5-large.secrets", {"HF_TOKEN": SECRET})
PATH = "environment.jobs.t5-large.secrets.HF_TOKEN"
KEY = f"arn:aws:kms:{REGION}:123456789012:key/0a1b2c3d-0000-4000-8000-000000000000"


@pytest.mark.parametrize(
    "key", [{}, {"KmsKeyId": f"arn:aws:kms:{REGION}:1:alias/aws/secretsmanager"}]
)
def test_a_secret_that_pods_can_read_has_no_error(key: dict[str, str]) -> None:
    assert errors(READS, secret={"Name": NAME, **key}) == []


@pytest.mark.parametrize(
    ("described", "path", "words"),
    [
        ({}, "secrets_manager", f"{NAME}, which does not exist. Fix: create it"),
        ({"DeletedDate": 1}, "secrets_manager", "Fix: run `aws secretsmanager restore-secret"),
        ({"KmsKeyId": KEY}, "kms_key_arn", f"Fix: write the ARN of the key: {KEY}"),
    ],
)
def test_a_secret_that_pods_cannot_read_is_refused(
    described: dict[str, Any], path: str, words: str
) -> None:
    [error] = errors(READS, secret=described)
    assert error.startswith(f"{PATH}.{path}") and words in error


def test_a_job_that_names_the_key_of_its_secret_may_use_it() -> None:
    named = at("jobs.t5-large.secrets", {"HF_TOKEN": SECRET | {"kms_key_arn": KEY}})
    assert errors(named, secret={"KmsKeyId": KEY}) == []


def test_the_account_describes_a_secret_without_its_value() -> None:
    with mock_aws():
        account = Account(AccessPlan(region=REGION))
        assert account.secret(NAME) == {}
        manager = account._clients["secretsmanager"]
        manager.create_secret(Name=NAME, SecretString="planted")
        described = account.secret(NAME)
        assert described["Name"] == NAME and "planted" not in str(described)
        manager.delete_secret(SecretId=NAME, RecoveryWindowInDays=7)
        assert account.secret(NAME)["DeletedDate"]


@pytest.mark.parametrize("preview", [True, False])
def test_who_deploys_and_previews_may_describe_these_secrets_and_no_others(preview: bool) -> None:
    of_secrets = [
        (statement["Action"], statement["Resource"])
        for document in policy.policies(environment_plan(READS), preview=preview).values()
        for statement in document["Statement"]
        if "secretsmanager" in json.dumps(statement)
    ]
    resource = f"arn:aws:secretsmanager:{REGION}:*:secret:{NAME}-??????"
    assert of_secrets == [(["secretsmanager:DescribeSecret"], [resource])]
    without = json.dumps(policy.policies(environment_plan(), preview=preview))
    assert "secretsmanager" not in without
