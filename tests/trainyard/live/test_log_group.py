"""`trainyard check --live` about the log group that EKS makes by itself."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import pytest
from botocore.stub import Stubber

from tests.support.stackfile import at, environment_plan, without
from trainyard.live.log_group import log_group_checks
from trainyard.live.questions.account import Account
from trainyard.plans.access import AccessPlan

CLUSTER = environment_plan().cluster.name
GROUP = f"/aws/eks/{CLUSTER}/cluster"
KEPT = at("cluster.log_retention_days", 30)


def said(found: dict[str, Any]) -> list[str]:
    told = Mock(spec=Account)
    told.log_group.return_value = found
    checks = log_group_checks(told, environment_plan(KEPT))
    lines = [str(finding) for check in checks.values() for finding in check()]
    told.log_group.assert_called_once_with(GROUP)
    return lines


def test_a_group_without_retention_is_one_that_eks_has_made() -> None:
    [warning] = said({"logGroupName": GROUP})
    assert warning.startswith("environment.cluster.log_retention_days: EKS has made the log group")
    command = f"`aws logs delete-log-group --log-group-name {GROUP} --region ap-northeast-2`"
    assert command in warning and "run `trainyard repair dev --live` after that stop" in warning


@pytest.mark.parametrize("found", [{}, {"logGroupName": GROUP, "retentionInDays": 30}])
def test_a_group_of_the_stack_and_none_have_no_warning(found: dict[str, Any]) -> None:
    assert said(found) == []


def test_a_stack_that_leaves_the_group_to_eks_is_asked_nothing() -> None:
    plan = environment_plan(without("cluster.log_retention_days"))
    assert log_group_checks(Mock(spec=Account), plan) == {}


def test_a_group_whose_name_only_begins_so_is_another_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")
    ours = Account(AccessPlan(region="ap-northeast-2"))
    groups = [{"logGroupName": f"{GROUP}-2"}, {"logGroupName": GROUP}]
    with Stubber(ours._clients["logs"]) as stub:
        for count in (1, 2):
            answer = {"logGroups": groups[:count]}
            stub.add_response("describe_log_groups", answer, {"logGroupNamePrefix": GROUP})
        assert [ours.log_group(GROUP) for _ in range(2)] == [{}, groups[1]]
