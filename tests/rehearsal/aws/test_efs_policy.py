"""Whom the policy of an EFS file system lets in, as the embedded account judges it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from plans.efs import mount_statement, plain_text_statement
from plans.policies import Document, document
from rehearsal.aws import backends, principals
from rehearsal.aws.efs import CLIENT, client_actions
from tests.rehearsal.aws_world import Account, refused, served

ARN = "arn:aws:elasticfilesystem:us-east-2:123456789012:file-system/fs-1"
DRIVER, OTHER = (f"arn:aws:iam::123456789012:role/{name}" for name in ("driver", "other"))


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A file system with the product's policy, and a role with what the product gives the driver."""
    made = SimpleNamespace(
        file_system_policy=json.dumps(document(plain_text_statement(ARN))),
        info_json={"FileSystemArn": ARN},
    )
    found = SimpleNamespace(file_systems_by_id={"fs-1": made})
    monkeypatch.setattr(backends, "efs", lambda _: found)
    allowed: dict[str, list[Document]] = {DRIVER: [document(mount_statement(ARN))]}
    monkeypatch.setattr(principals, "_documents", lambda arn: allowed.get(arn, []))
    return made


def actions(role: str, *, tls: bool = True) -> list[str]:
    return client_actions("us-east-2", "fs-1", role, tls=tls)


def test_only_the_drivers_role_mounts_and_only_with_tls(system: Any) -> None:
    assert actions(DRIVER) == [*CLIENT]
    assert actions(DRIVER, tls=False) == []
    assert actions(OTHER) == [] == actions("")


def test_without_a_policy_everybody_mounts(system: Any) -> None:
    system.file_system_policy = None
    assert actions("", tls=False) == [*CLIENT]


def test_a_policy_can_let_somebody_in_by_itself(system: Any) -> None:
    statement = {
        "Principal": {"AWS": OTHER},
        "Action": "elasticfilesystem:ClientMount",
        "Resource": ARN,
    }
    system.file_system_policy = json.dumps(document(statement))
    assert actions(OTHER) == ["ClientMount"] and actions("") == []


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Account]:
    with served(tmp_path, monkeypatch) as account:
        yield account


def test_a_policy_is_put_read_and_deleted(account: Account) -> None:
    efs = account.client("efs")
    id_ = efs.create_file_system(CreationToken="home")["FileSystemId"]
    policy = json.dumps(document(plain_text_statement(ARN)))
    efs.put_file_system_policy(FileSystemId=id_, Policy=policy)
    assert efs.describe_file_system_policy(FileSystemId=id_)["Policy"] == policy
    efs.delete_file_system_policy(FileSystemId=id_)
    with refused("PolicyNotFound"):
        efs.describe_file_system_policy(FileSystemId=id_)
    with refused("FileSystemNotFound"):
        efs.put_file_system_policy(FileSystemId="fs-0123456789abcdef0", Policy=policy)


def test_a_policy_of_a_role_has_each_id_once(account: Account) -> None:
    iam = account.client("iam")
    trust = {"Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole"}
    iam.create_role(RoleName="driver", AssumeRolePolicyDocument=json.dumps(document(trust)))
    one = {"Sid": "List", "Action": "s3:ListBucket", "Resource": "*"}
    with refused("MalformedPolicyDocument"):
        iam.put_role_policy(
            RoleName="driver", PolicyName="stores", PolicyDocument=json.dumps(document(one, one))
        )
    iam.put_role_policy(
        RoleName="driver", PolicyName="stores", PolicyDocument=json.dumps(document(one))
    )
