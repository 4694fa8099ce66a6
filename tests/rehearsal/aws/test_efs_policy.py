"""Whom the policy of an EFS file system lets in, as the embedded account judges it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rehearsal.aws import backends, principals
from rehearsal.aws.efs import CLIENT, client_actions
from tests.rehearsal.aws_world import REGION, Account, refused, served
from trainyard.objects.iam.efs import mount_statement, plain_text_statement
from trainyard.objects.iam.policies import Document, document

ARN = "arn:aws:elasticfilesystem:us-east-2:123456789012:file-system/fs-1"
DRIVER, OTHER = (f"arn:aws:iam::123456789012:role/{name}" for name in ("driver", "other"))


@pytest.fixture
def system(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A file system with the product's policy, and a role with what the product gives the driver."""
    made = SimpleNamespace(
        file_system_policy=json.dumps(document(plain_text_statement(ARN))),
        file_system_arn=ARN,
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


def test_a_mount_is_judged_by_the_key_that_it_is_signed_with(account: Account) -> None:
    """As the kubelet of the rehearsal asks."""
    efs, iam = account.client("efs"), account.client("iam")
    made = efs.create_file_system(CreationToken="home")
    id_, arn = made["FileSystemId"], made["FileSystemArn"]
    policy = json.dumps(document(plain_text_statement(arn)))
    efs.put_file_system_policy(FileSystemId=id_, Policy=policy)
    trust = {"Principal": {"Service": "pods.eks.amazonaws.com"}, "Action": "sts:AssumeRole"}
    role = iam.create_role(RoleName="driver", AssumeRolePolicyDocument=json.dumps(document(trust)))[
        "Role"
    ]["Arn"]
    keys = principals.credentials(role, "pod")
    asks = f"file-systems/{id_}/mount?region={REGION}&tls=true&key={keys['AccessKeyId']}"
    assert account.world("GET", asks) == (200, {"allowed": []})
    iam.put_role_policy(
        RoleName="driver",
        PolicyName="stores",
        PolicyDocument=json.dumps(document(mount_statement(arn))),
    )
    assert account.world("GET", asks) == (200, {"allowed": [*CLIENT]})
    nobody = f"file-systems/{id_}/mount?region={REGION}&tls=true&key="
    assert account.world("GET", nobody) == (200, {"allowed": []})
