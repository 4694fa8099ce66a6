"""Where the state of a stack is kept, and whether it can be lost there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto import mock_aws

from trainyard.live.questions.account import Account
from trainyard.live.state import back_end, state_checks
from trainyard.plans.access import AccessPlan

REGION, BUCKET = "us-east-1", "my-states"
EVERYBODY = {"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": "*"}


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A project without a back end, whose user has never logged in."""
    (tmp_path / "Pulumi.yaml").write_text("name: trainyard\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PULUMI_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("PULUMI_BACKEND_URL", raising=False)
    return tmp_path


def test_the_back_end_is_the_one_that_pulumi_would_use(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert back_end() == ""
    (folder / "home").mkdir()
    (folder / "home" / "credentials.json").write_text(json.dumps({"current": "s3://login"}))
    assert back_end() == "s3://login"
    (folder / "Pulumi.yaml").write_text("name: trainyard\nbackend: {url: s3://project}\n")
    assert back_end() == "s3://project"
    monkeypatch.setenv("PULUMI_BACKEND_URL", "s3://variable")
    assert back_end() == "s3://variable"


def said(url: str, account: Any = None) -> list[str]:
    return [str(one) for check in state_checks(account, url).values() for one in check()]


def test_a_state_on_one_machine_is_no_state_of_a_team() -> None:
    [warning] = said("file:///home/me/states")
    assert "`pulumi up` on another machine knows nothing of what exists" in warning


def test_pulumis_own_service_is_asked_nothing() -> None:
    assert said("https://api.pulumi.com") == said("") == []


def test_a_bucket_keeps_old_versions_and_lets_not_everybody_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("AWS_PROFILE", raising=False)
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    with mock_aws():
        s3, account = boto3.client("s3", REGION), Account(AccessPlan(region=REGION))
        s3.create_bucket(Bucket=BUCKET)
        [lost] = said(f"s3://{BUCKET}?region={REGION}", account)
        assert f"put-bucket-versioning --bucket {BUCKET} " in lost
        s3.put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration={"Status": "Enabled"})
        assert said(f"s3://{BUCKET}", account) == []
        s3.put_bucket_policy(Bucket=BUCKET, Policy=json.dumps({"Statement": [EVERYBODY]}))
        [public] = said(f"s3://{BUCKET}", account)
        assert f"got bucket {BUCKET}, whose policy is public" in public
