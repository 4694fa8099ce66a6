"""What `trainyard check --live` says of the policy of an existing EFS file system."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import pytest

from tests.support.existing_stores import EFS, EXISTING_STORES
from tests.support.existing_vpc import EXISTING_VPC
from tests.support.stackfile import environment, environment_plan
from trainyard.live.existing.efs_policy import MOUNT, ROOT, WRITE, policy_warnings
from trainyard.live.existing.stores import store_checks
from trainyard.live.questions.account import Account
from trainyard.plans.identity import Identity
from trainyard.plans.stores import ExistingEfsPlan

PLAN = ExistingEfsPlan(
    identity=Identity(project="p", stack="s", region="us-east-2"),
    kind="any",
    keep=True,
    path="environment.storage.home.efs.file_system_id",
    file_system_id=EFS,
    zones=("us-east-2a",),
)
ROLE = "arn:aws:iam::123456789012:role/cluster"
TLS = {
    "Effect": "Deny",
    "Principal": {"AWS": "*"},
    "Action": "*",
    "Condition": {"Bool": {"aws:SecureTransport": "false"}},
}


def _allow(action: Any, principal: Any) -> dict[str, Any]:
    return {"Effect": "Allow", "Principal": principal, "Action": action}


def _said(*statements: dict[str, Any]) -> list[str]:
    return [str(each) for each in policy_warnings(PLAN, json.dumps({"Statement": [*statements]}))]


@pytest.mark.parametrize("everybody", ["*", {"AWS": "*"}, {"AWS": ["*"]}])
@pytest.mark.parametrize(
    "action", [[MOUNT, WRITE, ROOT], "elasticfilesystem:Client*", "*", "ElasticFileSystem:*"]
)
def test_a_policy_that_lets_everybody_in_is_no_finding(action: Any, everybody: Any) -> None:
    assert _said(TLS, _allow(action, everybody)) == []
    assert [*policy_warnings(PLAN, "")] == []
    single = json.dumps({"Statement": _allow(action, everybody)})
    assert [*policy_warnings(PLAN, single)] == []
    assert _said({"Effect": "Allow", "Principal": "*", "NotAction": "s3:*"}) == []


@pytest.mark.parametrize("statement", [TLS, _allow([MOUNT, WRITE], {"AWS": ROLE})])
def test_a_policy_that_lets_only_roles_in_keeps_every_job_out(statement: dict[str, Any]) -> None:
    [warning] = _said(statement)
    assert warning == (
        f"environment.storage.home.efs.file_system_id: the policy of {EFS} does not let everybody {MOUNT} or {WRITE} or"
        f" {ROOT}."
        " Pods mount it without an IAM role, so jobs cannot mount it: such a pod never starts. Have its owner allow"
        f' this to Principal "*"; aws efs describe-file-system-policy --file-system-id {EFS} prints the policy'
    )


def test_a_policy_that_only_lets_read_is_said_to_refuse_what_jobs_write() -> None:
    [warning] = _said(_allow([MOUNT, ROOT], "*"), _allow(WRITE, {"AWS": ROLE}))
    assert f"everybody {WRITE}. " in warning and "so jobs cannot write to it." in warning


def test_a_policy_without_root_access_is_said_to_refuse_what_root_writes() -> None:
    """Pods run as root unless their image or file says more: EFS writes for them as 65534."""
    statement = _allow([MOUNT, WRITE], "*")
    [warning] = _said(statement)
    assert f"everybody {ROOT}. " in warning and "cannot write to it as root" in warning
    points = replace(PLAN, apart=True)
    policy = json.dumps({"Statement": [statement]})
    assert [*policy_warnings(points, policy)] == [], "access points have a user of their own"


def test_the_account_is_asked_about_each_existing_efs_and_about_no_other_store() -> None:
    asked = Mock(spec=Account)
    asked.efs_policy.return_value = json.dumps({"Statement": [TLS]})
    edits = (EXISTING_VPC, EXISTING_STORES)
    checks = store_checks(asked, environment_plan(*edits), environment(*edits))
    [name] = [name for name in checks if "policy" in name]
    [warning] = checks[name]()
    asked.efs_policy.assert_called_once_with(EFS)
    assert name == f"policy of file system {EFS}" and warning.path.endswith("efs.file_system_id")
