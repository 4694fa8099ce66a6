"""Which cluster a command works on: that of a stack, on an account that can be no other."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.recording import CHECKOUT
from trainyard.operations.reach import kubeconfig, target
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
    for name in target.ELSEWHERE:
        monkeypatch.delenv(name, raising=False)
    return found


@pytest.mark.usefixtures("states")
def test_the_kubeconfig_is_that_of_the_stacks_own_provider() -> None:
    assert target.kubeconfig("dev") == "the stack's own"


@pytest.mark.usefixtures("states")
def test_a_stack_without_a_cluster_is_named() -> None:
    with pytest.raises(target.TargetError, match="pulumi up --stack empty"):
        target.kubeconfig("empty")


@pytest.mark.usefixtures("states")
@pytest.mark.parametrize("variable", target.ELSEWHERE)
def test_live_is_refused_in_a_shell_that_reaches_something_else(
    variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    target.require_account(live=True)
    monkeypatch.setenv(variable, "http://127.0.0.1:4000")
    target.require_account(live=False)
    with pytest.raises(target.TargetError, match=f"{variable}=http.*Fix: unset {variable}"):
        target.require_account(live=True)


@pytest.mark.usefixtures("states")
def test_the_kubeconfig_is_a_file_that_only_its_owner_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert kubeconfig.main(["dev", "--live"]) == 0
    file = Path(capsys.readouterr().out.strip())
    assert file.read_text() == "the stack's own" and file.stat().st_mode & 0o777 == 0o600
    assert kubeconfig.main(["empty"]) == 1


@pytest.mark.usefixtures("states")
def test_status_of_a_stack_reads_the_cluster_of_its_state(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    read: list[str | None] = []

    def take(kubeconfig: str | None) -> None:
        read.append(kubeconfig)
        raise RuntimeError("timeout")

    monkeypatch.setattr(status, "take", take)
    assert status.main(["--stack", "dev"]) == status.main([]) == 1
    assert read == ["the stack's own", None]
    assert status.main(["--stack", "empty"]) == 1
    assert "has no cluster" in capsys.readouterr().out


@pytest.mark.parametrize("word", ["status", "kubeconfig", "drain", "repair"])
def test_a_word_means_the_rehearsal_and_with_live_the_account(word: str) -> None:
    def command(*settings: str) -> str:
        make = ["make", "--dry-run", "--always-make", word, "STACK=prod", *settings]
        printed = subprocess.run(make, cwd=CHECKOUT, capture_output=True, text=True, check=True)
        return printed.stdout.splitlines()[-1]

    assert f"development {word} --stack 'prod'" in command()
    assert f".{word} --live" in command("LIVE=1")
