"""What bash cannot read is refused with bash's own words; what it can read is not run."""

from __future__ import annotations

from pathlib import Path

import pytest

from trainyard.rules import bash_syntax
from trainyard.rules.bash_syntax import syntax_error

READ = [
    "",
    "torchrun --nnodes=$(PET_NNODES) train.py",
    "cat <<EOF\n$(A) ` \nEOF\n",
    "rm -rf !(a|b)",
    "mapfile -t a < <(ls) && echo ${a[@]}",
    "case $1 in a) true;; esac",
    "python -c 'print(\"é\")'",
    "torchrun <your-script>",
]


@pytest.mark.parametrize("script", READ)
def test_what_bash_can_read_is_accepted(script: str) -> None:
    assert syntax_error(script) == ""


@pytest.mark.parametrize(
    ("script", "line"),
    [("if true; then\n  a\n", 3), ("a\n)\n", 2), ("for x in; do; done", 1), ('echo "a\nb', 1)],
)
def test_what_bash_cannot_read_is_said_with_its_line(script: str, line: int) -> None:
    assert syntax_error(script).startswith(f"line {line}: ")


def test_nothing_of_a_script_runs(tmp_path: Path) -> None:
    assert syntax_error(f"touch {tmp_path}/a; $(touch {tmp_path}/b)") == ""
    assert list(tmp_path.iterdir()) == []


def test_without_a_bash_of_today_nothing_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    old = tmp_path / "bash"
    old.write_text("#!/bin/sh\necho 'bash: line 1: syntax error' >&2; exit 2\n")
    old.chmod(0o755)
    for path in (str(tmp_path / "nowhere"), str(tmp_path)):
        monkeypatch.setenv("PATH", path)
        _forget()
        assert syntax_error("a )") == ""
    monkeypatch.undo()
    _forget()
    assert syntax_error("a )") != ""


def _forget() -> None:
    for known in (bash_syntax._bash, bash_syntax._is_bash_4, syntax_error):
        known.cache_clear()
