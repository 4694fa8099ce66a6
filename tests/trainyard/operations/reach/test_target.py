"""Which cluster a command works on: that of a stack, on an account that can be no other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.tool import run_word
from trainyard.operations.reach import target
from trainyard.operations.reach.updates import History
from trainyard.operations.status import status

URN = "urn:pulumi:dev::trainyard::pulumi:providers:kubernetes::cluster"


def _state(*resources: dict[str, Any]) -> dict[str, Any]:
    return {"deployment": {"resources": list(resources)}}


PROVIDER = {
    "type": "pulumi:providers:kubernetes",
    "urn": URN,
    "inputs": {"kubeconfig": "the stack's own"},
}
UNUSED = {
    **PROVIDER,
    "urn": URN.replace("::pulumi:", "::eks:index:Cluster$pulumi:"),
    "inputs": {"kubeconfig": "one that pulumi-eks makes"},
}


@pytest.fixture
def states(monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, Any]]:
    """Stack → its state."""
    found = {"dev": _state(UNUSED, PROVIDER), "empty": _state()}
    monkeypatch.setattr(target, "deployment", found.__getitem__)
    return found


@pytest.mark.usefixtures("states")
def test_the_kubeconfig_is_that_of_the_stacks_own_provider() -> None:
    assert target.kubeconfig("dev") == "the stack's own"


@pytest.mark.usefixtures("states")
def test_a_stack_without_a_cluster_is_named() -> None:
    with pytest.raises(target.TargetError, match="pulumi up --stack empty"):
        target.kubeconfig("empty")


@pytest.mark.usefixtures("states")
def test_the_kubeconfig_is_a_file_that_only_its_owner_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run_word("kubeconfig", ["dev", "--live"]) == 0
    file = Path(capsys.readouterr().out.strip())
    assert file.read_text() == "the stack's own" and file.stat().st_mode & 0o777 == 0o600
    assert run_word("kubeconfig", ["empty"]) == 1


@pytest.mark.usefixtures("states")
def test_status_of_a_stack_reads_the_cluster_of_its_state(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    read: list[str | None] = []

    def login(kubeconfig: str) -> None:
        read.append(kubeconfig)
        raise RuntimeError("timeout")

    monkeypatch.setattr(status, "asking", login)
    monkeypatch.setattr(status, "deployment", target.deployment)
    monkeypatch.setattr(status, "history_of", lambda stack: History(entries=()))
    assert run_word("status", ["--stack", "dev"]) == 1
    assert read == ["the stack's own"]
    assert run_word("status", ["--stack", "empty"]) == 1
    assert "has no cluster" in capsys.readouterr().out
