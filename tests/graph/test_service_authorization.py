"""Every IAM policy and trust of every recorded stack, and the policies of its deployer, judged by the
Service Authorization Reference: actions, resources and condition keys."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from tests.graph.test_recorded_stacks import ALL, graph_of, plan_of
from tests.support.cloudformation import filled
from tests.support.service_authorization import documents, faults, pairs
from trainyard.reports.policy import policies

KINDS = {
    "assumeRolePolicy of aws:iam/role:Role",
    "policy of aws:efs/fileSystemPolicy:FileSystemPolicy",
    "policy of aws:iam/rolePolicy:RolePolicy",
    "policy of aws:s3/bucketPolicy:BucketPolicy",
    "policy of aws:sqs/queuePolicy:QueuePolicy",
}
"""Inputs that are IAM documents. A new one is judged by itself, and named here."""


def _documents(stack: str) -> dict[str, list[dict[str, Any]]]:
    """Kind of document → those of the stack."""
    found: dict[str, list[dict[str, Any]]] = {}
    for node in graph_of(stack).starting("aws:"):
        for name, value in filled(node.inputs).items():
            for document in documents(value):
                found.setdefault(f"{name} of {node.kind}", []).append(dict(document))
    deployer = [policies(plan_of(stack), preview=preview) for preview in (False, True)]
    found["deployer"] = [dict(each) for named in deployer for each in named.values()]
    return found


@pytest.mark.parametrize("stack", ALL)
def test_iam_acts_on_every_action_resource_and_condition(stack: str) -> None:
    found = _documents(stack)
    assert {*found} - {"deployer"} <= KINDS
    assert sum(pairs(each) for named in found.values() for each in named) > 200
    wrong = [(kind, faults(each)) for kind, named in found.items() for each in named]
    assert [(kind, found) for kind, found in wrong if found] == []


def test_every_kind_of_document_is_judged() -> None:
    assert {kind for stack in ALL for kind in _documents(stack)} == KINDS | {"deployer"}


QUEUE, BUCKET = "arn:aws:sqs:us-east-2:123456789012:q", "arn:aws:s3:::b"
SOUND: dict[str, Any] = {
    "Effect": "Allow",
    "Action": ["ec2:TerminateInstances"],
    "Resource": ["arn:aws:ec2:us-east-2:*:instance/*"],
    "Condition": {
        "StringEquals": {"aws:ResourceTag/a": "b", "aws:RequestedRegion": "us-east-2"},
    },
}
TRUST: dict[str, Any] = {
    "Effect": "Allow",
    "Principal": {"Service": "pods.eks.amazonaws.com"},
    "Action": ["sts:AssumeRole", "sts:TagSession"],
    "Condition": {
        "StringEquals": {"aws:RequestTag/kubernetes-namespace": "a", "aws:SourceAccount": "1"},
        "ArnEquals": {"aws:SourceArn": "arn:aws:eks:us-east-2:123456789012:cluster/c"},
    },
}


def _faults(statement: dict[str, Any], **changes: Any) -> list[str]:
    return faults({"Statement": [{**copy.deepcopy(statement), **changes}]})


@pytest.mark.parametrize("statement", [SOUND, TRUST])
def test_a_sound_statement_has_no_fault(statement: dict[str, Any]) -> None:
    assert _faults(statement) == []


def _if(operator: str, key: str) -> dict[str, Any]:
    return {"Condition": {operator: {key: "x"}}}


@pytest.mark.parametrize(
    ("statement", "changes", "said"),
    [
        (SOUND, {"Action": "ec2:TerminateInstance"}, "no action ec2:TerminateInstance"),
        (SOUND, {"Action": "ecc2:*"}, "no action ecc2:*"),
        (SOUND, {"Resource": QUEUE}, "takes none of"),
        (SOUND, {"Resource": [*SOUND["Resource"], BUCKET]}, f"no action takes {BUCKET}"),
        (SOUND, {"Action": "s3:GetObject", "Resource": BUCKET}, "takes none of"),
        (SOUND, {"Action": "s3:ListBucket", "Resource": f"{BUCKET}/*"}, "takes none of"),
        (SOUND, {"Action": "ec2:DescribeInstances"}, "takes none of"),
        (SOUND, _if("StringEquals", "aws:RequestRegion"), "no global key aws:RequestRegion"),
        (SOUND, _if("StringEquals", "aws:SourceArn"), "StringEquals is no operator for"),
        (SOUND, _if("Bool", "aws:SourceAccount"), "Bool is no operator for"),
        (SOUND, _if("StringEquals", "ec2:CreateAction"), "has no key ec2:CreateAction"),
        (SOUND, _if("StringEquals", "s3:prefix"), "has no key s3:prefix"),
        (SOUND, _if("StringEquals", "iam:PassedToServices"), "has no key iam:PassedToServices"),
        (
            SOUND,
            {"Action": ["ec2:DescribeInstances"], "Resource": "*"},
            "ec2:describeinstances has no key aws:ResourceTag/a",
        ),
        (
            SOUND,
            {"Action": [*SOUND["Action"], "ec2:DescribeImages"], "Resource": "*"},
            "ec2:describeimages has no key aws:ResourceTag/a",
        ),
        (TRUST, {"Action": "sts:AssumeRoles"}, "no action sts:AssumeRoles"),
        (TRUST, _if("StringEquals", "aws:SourceAcount"), "no global key aws:SourceAcount"),
        (TRUST, _if("StringEquals", "sts:Source"), "has no key sts:Source"),
    ],
)
def test_a_planted_fault_is_found(
    statement: dict[str, Any], changes: dict[str, Any], said: str
) -> None:
    found = _faults(statement, **changes)
    assert any(said in each for each in found), found


def test_a_planted_fault_in_a_recorded_document_is_found() -> None:
    """Each tag condition of the dev stack, on an action that has no tags."""
    planted = 0
    for named in _documents("dev").values():
        for document in named:
            for number, statement in enumerate(document["Statement"]):
                keys = [key for each in statement.get("Condition", {}).values() for key in each]
                if any("Tag/" in key for key in keys):
                    wrong = copy.deepcopy(document)
                    wrong["Statement"][number]["Action"] = "sts:GetCallerIdentity"
                    assert faults(wrong), statement
                    planted += 1
    assert planted > 5
