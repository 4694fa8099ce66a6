"""A shell completes words, options and the stacks of a folder."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from trainyard.cli.completion import bash, zsh
from trainyard.cli.options import OPTIONS
from trainyard.cli.words import WORDS


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("Pulumi.yaml", "Pulumi.dev.yaml", "Pulumi.team-vision.yaml"):
        (tmp_path / name).touch()
    return tmp_path


def completed(folder: Path, *words: str) -> list[str]:
    """What bash offers for the last word."""
    typed = " ".join(f"'{word}'" for word in ("trainyard", *words))
    script = (
        f"{bash()}\nCOMP_WORDS=({typed}); COMP_CWORD={len(words)}\n_trainyard\n"
        "printf '%s\\n' \"${COMPREPLY[@]}\""
    )
    done = subprocess.run(
        ["bash", "--norc", "-c", script], cwd=folder, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return done.stdout.split()


def test_bash_completes_words_options_and_stacks(folder: Path) -> None:
    assert completed(folder, "") == [*WORDS]
    assert completed(folder, "sta") == ["status"]
    assert completed(folder, "plan", "") == [*WORDS["plan"].takes, "--help", "dev", "team-vision"]
    assert completed(folder, "logs", "t5", "--stack", "t") == ["team-vision"]
    assert completed(folder, "logs", "t5", "--r") == ["--rank", "--rehearsal"]
    assert completed(folder, "logs", "--rank", "") == [], "a number"
    assert completed(folder, "new", "t") == ["team"]
    assert completed(folder, "completion", "") == ["bash", "zsh", "--help"]
    assert completed(folder / "..", "plan", "d") == [], "no stack file, no stack"


def test_the_completion_of_zsh_has_every_word_and_option() -> None:
    text = zsh()
    for name, word in WORDS.items():
        [case] = [line for line in text.splitlines() if line.strip().startswith(f"{name}) ")]
        assert f"'{name}:{word.does}'" in text
        assert [option for option in word.takes if f"'{option}[" not in case] == []
    assert "'1:kind:(environment team)' '2:into:_files'" in text
    assert "%(default)" not in text and len(OPTIONS) > 20
    if zsh_program := shutil.which("zsh"):
        done = subprocess.run([zsh_program, "-f", "-n"], input=text, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
