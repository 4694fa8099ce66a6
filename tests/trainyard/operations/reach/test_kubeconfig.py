"""`trainyard kubeconfig`: a file that only its owner reads, or why there is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.tool import run_word
from trainyard.operations.reach import kubeconfig
from trainyard.operations.reach.pulumi import PulumiError
from trainyard.operations.reach.target import TargetError


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_file_is_its_owners_and_its_path_is_printed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(kubeconfig, "kubeconfig", lambda stack: f"kind: Config # {stack}")
    assert run_word("kubeconfig", ["dev"]) == 0
    file = Path(capsys.readouterr().out.strip())
    assert (file.name, file.read_text()) == ("dev.yaml", "kind: Config # dev")
    assert file.stat().st_mode & 0o777 == 0o600 and file.is_relative_to(folder)


@pytest.mark.parametrize("error", [PulumiError, TargetError])
def test_a_stack_without_a_cluster_is_no_traceback(
    error: type[Exception], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(stack: str) -> str:
        raise error(f"{stack} has no cluster")

    monkeypatch.setattr(kubeconfig, "kubeconfig", fails)
    assert run_word("kubeconfig", ["dev"]) == 1
    assert capsys.readouterr().err == "dev has no cluster\n"
