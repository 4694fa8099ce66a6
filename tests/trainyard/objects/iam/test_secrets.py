"""How a value gets from a file into a variable, and what a role of pods may read."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from rehearsal.kubelet.environment import expand
from trainyard.objects.iam import secrets
from trainyard.objects.iam.secrets import ManagedSecret, secret_files, secret_statements

TOKEN = {"HF_TOKEN": ManagedSecret(secrets_manager="vision/hf", key="token")}
AT = "arn:aws:secretsmanager:us-east-2:123456789012:secret:"
KEY = "arn:aws:kms:us-east-2:123456789012:key/1"


def ran(
    folder: Path, patch: pytest.MonkeyPatch, *command: str
) -> subprocess.CompletedProcess[bytes]:
    """The command as the container starts it."""
    patch.setattr(secrets, "FOLDER", str(folder))
    files = secret_files("train", TOKEN, "us-east-2")
    assert files
    return subprocess.run(files.exporting(command), capture_output=True)


@pytest.mark.parametrize("value", ["hf_abc", "with 'quotes' \"and\" $HOME `date` $(date)", "a\nb"])
def test_a_command_finds_the_value_in_its_variable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    (tmp_path / "HF_TOKEN.value").write_text(value)
    script = 'printf %s "$HF_TOKEN"; printf " %s" "$@"'
    found = ran(tmp_path, monkeypatch, "/bin/bash", "-c", script, "bash", "a b", "c")
    assert found.stdout.decode() == f"{value} a b c"


def test_without_its_file_nothing_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = ran(tmp_path, monkeypatch, "echo", "started")
    assert found.returncode != 0 and found.stdout == b""


def test_the_exit_code_and_the_process_are_those_of_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "HF_TOKEN.value").write_text("a")
    assert ran(tmp_path, monkeypatch, "/bin/sh", "-c", "exit 7").returncode == 7


def test_kubernetes_expands_the_words_of_the_command_and_none_of_ours() -> None:
    files = secret_files("train", TOKEN, "us-east-2")
    assert files
    words = [
        expand(word, {"PET_MASTER_ADDR": "m"}) for word in files.exporting(("$(PET_MASTER_ADDR)",))
    ]
    assert words[-1] == "m" and f"$(cat {secrets.FOLDER}/HF_TOKEN.value)" in words[2]


def test_another_secret_is_another_object_and_the_same_one_is_not() -> None:
    def name(secret: str, region: str = "us-east-2") -> str:
        found = secret_files("train", {"A": ManagedSecret(secrets_manager=secret)}, region)
        assert found
        return found.name

    assert name("a") == name("a")
    assert len({name("a"), name("b"), name("a", "eu-west-1")}) == 3


def test_a_role_reads_what_is_named_and_uses_keys_by_secrets_manager_only() -> None:
    named = ["vision/", "shared/hf", f"{AT}other-AbCdEf"]
    reads, key = secret_statements(named, [KEY], region="us-east-2", account="123456789012")
    assert reads["Resource"] == [
        f"{AT}other-AbCdEf",
        f"{AT}shared/hf-??????",
        f"{AT}vision/*",
    ]
    assert set(reads["Action"]) == {
        "secretsmanager:DescribeSecret",
        "secretsmanager:GetSecretValue",
    }
    assert key == {
        "Sid": "SecretKey0",
        "Action": ["kms:Decrypt"],
        "Resource": KEY,
        "Condition": {"StringEquals": {"kms:ViaService": "secretsmanager.us-east-2.amazonaws.com"}},
    }
    assert secret_statements([], [KEY], region="us-east-2", account="123456789012") == ()
