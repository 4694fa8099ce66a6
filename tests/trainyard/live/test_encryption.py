"""What `trainyard check --live` says about the key of a stack, and what `trainyard policy --key` prints."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.stackfile import at, environment_plan, without
from tests.support.stacks import KEY, planned
from tests.support.tool import run_word
from tests.trainyard.live.test_preflight import account
from trainyard.live.encryption import (
    bucket_key_warnings,
    default_key_checks,
    key_checks,
    key_errors,
    policy_errors,
)
from trainyard.live.questions.caller import NotAnswered
from trainyard.objects.iam.encryption import key_policy
from trainyard.problems import InputError, InputWarning
from trainyard.reports import policy as report

SEALED = "a key of the company and logs"
SOUND = {
    "KeyState": "Enabled",
    "KeySpec": "SYMMETRIC_DEFAULT",
    "KeyUsage": "ENCRYPT_DECRYPT",
}
PRINTED = key_policy(KEY, "dev")
NO_LOGS = environment_plan(at("kms_key_arn", KEY), without("cluster.log_retention_days"))
SIDS = [each["Sid"] for each in PRINTED["Statement"]]


def of_key(**described: str) -> list[InputError]:
    return [*key_errors(planned(SEALED), KEY, SOUND | described)]


def of_policy(statements: Any, stack: str = SEALED) -> list[InputError]:
    document = json.dumps({"Version": "2012-10-17", "Statement": statements})
    plan = planned(SEALED) if stack == SEALED else NO_LOGS
    return [*policy_errors(plan, KEY, document)]


def test_without_a_key_nothing_is_asked() -> None:
    assert key_checks(account(), planned("dev")) == {}


def test_a_sound_key_with_the_printed_policy_has_no_error() -> None:
    told = account(key=SOUND, key_policy=json.dumps(PRINTED))
    checks = key_checks(told, planned(SEALED))
    assert len(checks) == 2 and [error for each in checks.values() for error in each()] == []


DEFAULT = {"Arn": KEY, "KeyManager": "CUSTOMER", "KeyState": "Enabled"}
THROUGH_EC2 = {
    "Effect": "Allow",
    "Principal": {"AWS": "*"},
    "Action": ["kms:Encrypt", "kms:Decrypt", "kms:ReEncrypt*", "kms:GenerateDataKey*"]
    + ["kms:CreateGrant", "kms:DescribeKey"],
    "Resource": "*",
    "Condition": {"StringEquals": {"kms:ViaService": "ec2.ap-northeast-2.amazonaws.com"}},
}
"""As the policy of EBS's own key."""


def of_default(
    *statements: dict[str, Any], stack: str = "dev", **described: Any
) -> list[InputError | InputWarning]:
    """Findings about the account's default key of EBS with these statements in its policy."""
    told = account(
        default_key=DEFAULT | described, key_policy=json.dumps({"Statement": [*statements]})
    )
    checks = default_key_checks(told, planned(stack))
    return [finding for each in checks.values() for finding in each()]


def test_a_default_key_of_ebs_that_launchers_may_not_use_is_refused() -> None:
    """Karpenter's role has no right of IAM to it, so it does not help that the policy leaves all to IAM."""
    [error] = of_default(*PRINTED["Statement"])
    assert isinstance(error, InputError) and error.write == KEY
    assert f"the default {KEY}, whose policy does not let Karpenter in" in error.got
    assert f"write {KEY}, whose policy then needs what `trainyard policy dev --key`" in error.fix
    [both] = of_default(PRINTED["Statement"][0])
    assert isinstance(both, InputError) and "let Auto Scaling and Karpenter in" in both.got
    [gone] = of_default(*PRINTED["Statement"], KeyState="PendingDeletion")
    assert isinstance(gone, InputError) and gone.got.endswith(f"{KEY}, PendingDeletion")
    assert gone.fix == "write the ARN of a key that is enabled" and gone.write is None


def test_a_default_key_of_ebs_that_launchers_may_use_is_sound() -> None:
    role = planned("dev").karpenter.role_name
    karpenter = {"AWS": [f"arn:aws:iam::123456789012:role/{role}"]}
    assert of_default(THROUGH_EC2) == []
    each = ["kms:CreateGrant", "kms:Decrypt", "kms:DescribeKey", "kms:ReEncryptFrom"]
    each += ["kms:ReEncryptTo", "kms:GenerateDataKeyWithoutPlaintext"]
    assert of_default(THROUGH_EC2 | {"Action": each}) == []
    assert len(of_default(THROUGH_EC2 | {"Action": each[:-1]})) == 1
    assert of_default(*PRINTED["Statement"], THROUGH_EC2 | {"Principal": karpenter}) == []
    assert of_default(KeyManager="AWS") == [], "EBS's own key, by its ARN"
    assert of_default(stack=SEALED) == [], "disks have the key of the stack file"


def test_a_default_key_of_ebs_whose_policy_nobody_may_read_is_a_warning() -> None:
    told = account(default_key=DEFAULT, key_policy=NotAnswered("kms:GetKeyPolicy: AccessDenied"))
    [check] = default_key_checks(told, planned("dev")).values()
    [warning] = check()
    assert isinstance(warning, InputWarning) and "(kms:GetKeyPolicy: AccessDenied)" in warning.text


def test_a_key_of_a_bucket_that_another_account_owns_is_told() -> None:
    """Only its own policy can let this account use it."""
    bucket = {"bucket": "theirs", "kms_key_arn": KEY}
    plan = environment_plan(at("storage.sets", {"s3": bucket}))
    mine = "arn:aws:iam::123456789012:role/deployer"
    assert [*bucket_key_warnings(plan, mine)] == []
    [told] = bucket_key_warnings(plan, mine.replace("123456789012", "999999999999"))
    assert told.path == "environment.storage.sets.s3.kms_key_arn"
    assert "allow 999999999999 kms:Decrypt in the policy of the key" in told.text
    plan = environment_plan(at("storage.sets", {"s3": bucket | {"writable": True}}))
    [told] = bucket_key_warnings(plan, mine.replace("123456789012", "999999999999"))
    assert "kms:Decrypt and kms:GenerateDataKey in the policy" in told.text


@pytest.mark.parametrize(
    ("described", "got", "fix"),
    [
        ({"KeyState": "Disabled"}, "Disabled", "run `aws kms enable-key --key-id"),
        ({"KeyState": "PendingDeletion"}, "PendingDeletion", "write the ARN of another key"),
        ({"KeySpec": "RSA_2048"}, "RSA_2048 for ENCRYPT_DECRYPT", "KeySpec SYMMETRIC_DEFAULT"),
        ({"KeyUsage": "SIGN_VERIFY"}, "for SIGN_VERIFY", "KeyUsage ENCRYPT_DECRYPT"),
    ],
)
def test_a_key_that_encrypts_nothing_is_refused(
    described: dict[str, str], got: str, fix: str
) -> None:
    [error] = of_key(**described)
    assert got in error.got and fix in error.fix


def test_a_key_that_the_account_does_not_know_is_refused_once() -> None:
    told = account(key={}, key_policy="")
    found = [error for each in key_checks(told, planned(SEALED)).values() for error in each()]
    assert len(found) == 1 and "unknown to this account" in found[0].got


@pytest.mark.parametrize("lost", SIDS)
def test_each_statement_that_the_policy_lacks_is_named(lost: str) -> None:
    [error] = of_policy([each for each in PRINTED["Statement"] if each["Sid"] != lost])
    assert lost in error.got and not [sid for sid in SIDS if sid != lost and sid in error.got]
    assert "trainyard policy dev --key" in error.fix


def test_logs_need_nothing_of_the_key_where_the_stack_has_no_log_group() -> None:
    statements = [each for each in PRINTED["Statement"] if each["Sid"] != "WriteLogs"]
    assert of_policy(statements, "without logs") == []


def test_other_words_for_the_same_are_as_good() -> None:
    """The policy of EBS's own key lets everybody of the account in through EC2."""
    account_id = {"Effect": "Allow", "Principal": {"AWS": "123456789012"}, "Action": "kms:*"}
    rest = [e for e in PRINTED["Statement"] if e["Sid"] in ("SendInterruptions", "WriteLogs")]
    assert of_policy([THROUGH_EC2, account_id | {"Resource": "*"}, *rest]) == []


def test_a_denial_lets_nobody_in() -> None:
    denied = [each | {"Effect": "Deny"} for each in PRINTED["Statement"]]
    [error] = of_policy(denied)
    assert all(sid in error.got for sid in SIDS)


def test_the_deployer_uses_the_key_through_services_only_and_no_other_key() -> None:
    documents = report.policies(planned(SEALED))
    statements = [each for document in documents.values() for each in document["Statement"]]
    of_kms = {
        each["Sid"]: each
        for each in statements
        if any(action.startswith("kms:") for action in each["Action"])
    }
    assert of_kms.keys() == {"UseKeys", "ReadKey"}
    assert {each["Resource"] for each in of_kms.values()} == {KEY}
    assert "kms:ViaService" in json.dumps(of_kms["UseKeys"]["Condition"])
    assert KEY not in json.dumps(report.policies(planned("dev")))
    assert KEY in json.dumps(report.policies(planned(SEALED), preview=True))


def test_a_role_for_flow_logs_is_passed_to_no_other_service() -> None:
    sealed, dev = (json.dumps(report.policies(planned(each))) for each in (SEALED, "dev"))
    assert "vpc-flow-logs.amazonaws.com" in sealed and "vpc-flow-logs.amazonaws.com" not in dev


def test_make_policy_prints_the_statements_for_the_owner_of_the_key(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def sealed(stack: str, report: Any) -> int:
        return report(None, planned(SEALED if stack == "sealed" else "dev"))

    monkeypatch.setattr(report, "report_on", sealed)
    assert run_word("policy", ["sealed", "--key"]) == 0
    assert json.loads(capsys.readouterr().out) == PRINTED
    assert run_word("policy", ["dev", "--key"]) == 2
    assert "environment.kms_key_arn is not set" in capsys.readouterr().out
