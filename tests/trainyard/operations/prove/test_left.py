"""What is left is asked by the names and tags that the state had before it was destroyed."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from trainyard.operations.prove import left as module
from trainyard.operations.prove.left import STATE, keep, kept, left
from trainyard.plans.identity import Identity

Object = dict[str, Any]
ME = Identity(project="trainyard", stack="prove", region="us-east-1")


def _resource(kind: str, logical: str, **inputs: Any) -> Object:
    urn = f"urn:pulumi:prove::trainyard::{kind}::{logical}"
    return {"urn": urn, "type": kind, "custom": True, "id": "x", "inputs": inputs}


def _state(*resources: Object) -> Object:
    provider = _resource("pulumi:providers:aws", "aws", region="us-east-1")
    return {"deployment": {"resources": [provider, *resources]}}


VPC = _resource("aws:ec2/vpc:Vpc", "network", tags=ME.tags("network"))
CLUSTER = _resource("aws:eks/cluster:Cluster", "prove-x", name="prove-x", tags=ME.tags("x"))


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "testing")


def test_the_state_is_kept_for_its_owner_alone_also_of_a_destroy_that_was_killed() -> None:
    keep(_state(VPC, CLUSTER))
    keep(_state(CLUSTER))
    assert {each["type"] for each in kept()["deployment"]["resources"]} >= {
        VPC["type"],
        CLUSTER["type"],
    }
    assert stat.S_IMODE(STATE.stat().st_mode) == 0o600
    assert stat.S_IMODE(STATE.parent.stat().st_mode) == 0o700
    assert (STATE.parent / ".gitignore").read_text() == "*\n", "it has names of the account"


@mock_aws
def test_nothing_is_left_in_an_empty_account() -> None:
    assert left(_state(VPC, CLUSTER), "us-east-1") == []


@mock_aws
def test_what_is_still_there_is_named_without_its_id() -> None:
    ec2, logs = boto3.client("ec2", "us-east-1"), boto3.client("logs", "us-east-1")
    tags = [{"Key": key, "Value": value} for key, value in ME.tags("network").items()]
    made = ec2.create_vpc(
        CidrBlock="10.0.0.0/16", TagSpecifications=[{"ResourceType": "vpc", "Tags": tags}]
    )
    logs.create_log_group(logGroupName="/aws/eks/prove-x/cluster")
    logs.create_log_group(logGroupName="/aws/eks/prove-xy/cluster")
    owned = [{"Key": "kubernetes.io/cluster/prove-x", "Value": "owned"}]
    ec2.create_volume(
        AvailabilityZone="us-east-1a",
        Size=100,
        TagSpecifications=[{"ResourceType": "volume", "Tags": owned}],
    )
    found = left(_state(VPC, CLUSTER), "us-east-1")
    assert found == [
        "Vpc network",
        "log group /aws/eks/prove-x/cluster",
        "volume of 100 GiB, available",
    ]
    assert made["Vpc"]["VpcId"] not in str(found)


@mock_aws
def test_a_question_without_an_answer_is_said_and_the_others_are_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def denied(*_: Any) -> None:
        raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no"}}, "DescribeVpcs")

    monkeypatch.setattr(module, "find", denied)
    boto3.client("logs", "us-east-1").create_log_group(logGroupName="/aws/eks/prove-x/cluster")
    [not_known, group] = left(_state(VPC, CLUSTER), "us-east-1")
    assert not_known.startswith(
        "not known of resources of the stack: An error occurred (AccessDenied)"
    )
    assert group.startswith("log group")
