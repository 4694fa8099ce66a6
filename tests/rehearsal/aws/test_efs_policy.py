"""Whom the policy of an EFS file system lets in, as the embedded account judges it."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest

from plans.efs import mount_statement, plain_text_statement
from plans.policies import Document, document
from rehearsal.aws import backends, principals
from rehearsal.aws.efs import CLIENT, client_actions

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
