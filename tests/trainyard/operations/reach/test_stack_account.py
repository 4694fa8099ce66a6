"""With which credentials the account of a stack is asked."""

from __future__ import annotations

import json
from pathlib import Path

import moto
import pytest

from trainyard.operations.reach.stack_account import session_of


def test_the_account_is_asked_as_the_stacks_own_provider_does(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    (tmp_path / "config").write_text(
        "[profile corp]\naws_access_key_id = x\naws_secret_access_key = x\n"
    )
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    role = {"roleArn": "arn:aws:iam::123456789012:role/deployer", "sessionName": "ci"}
    inputs = {"region": "eu-west-1", "profile": "corp", "assumeRoles": json.dumps([role])}
    provider = {"type": "pulumi:providers:aws", "urn": "a", "inputs": inputs}
    with moto.mock_aws():
        session = session_of({"deployment": {"resources": [provider]}}, None)
        arn = session.client("sts").get_caller_identity()["Arn"]
    assert (arn, session.region_name) == (
        "arn:aws:sts::123456789012:assumed-role/deployer/ci",
        "eu-west-1",
    )
