"""Commands of scripts, as bash reads them."""

from __future__ import annotations

import pytest

from trainyard.derive.shell import read_script

SCRIPTS: dict[str, tuple[str, list[tuple[int, str, str]]]] = {
    "a pipe with redirected errors": (
        "set -e\ntorchrun a 2>&1 | tee log\n",
        [(0, "set -e", "\n"), (0, "torchrun a 2>&1", "|"), (0, "tee log", "\n")],
    ),
    "both outputs in a file, in the background": (
        "torchrun a &>log &",
        [(0, "torchrun a &>log", "&")],
    ),
    "an if": (
        "if [ a ]; then b; else c; fi || true",
        [(1, "[ a ]", ";"), (1, "b", ";"), (1, "c", ";"), (0, "fi", "||"), (0, "true", "")],
    ),
    "a subshell": (
        "(cd x; a) | tee y",
        [(1, "cd x", ";"), (1, "a", ")"), (0, ")", "|"), (0, "tee y", "")],
    ),
    "a function": (
        "f() { a; }\nf",
        [(0, "f", "("), (1, "a", ";"), (0, "}", "\n"), (0, "f", "")],
    ),
    "a case": (
        "case $X in\n a) b;;\n *) c;;\nesac\nd",
        [
            (1, "$X in", "\n"),
            (1, "a", ")"),
            (1, "b", ";;"),
            (1, "*", ")"),
            (1, "c", ";;"),
            (0, "esac", "\n"),
            (0, "d", ""),
        ],
    ),
    "a heredoc": (
        "cat > a <<'EOF'\ntorchrun a &\nEOF\nbash a",
        [(0, "cat > a", "\n"), (0, "bash a", "")],
    ),
    "operators in quotes and in other commands": (
        "a 'b;c' \"d & e\" $(f | g) # h; i\nj",
        [(0, "a 'b;c' \"d & e\" $(f | g) # h; i", "\n"), (0, "j", "")],
    ),
    "a line that goes on": ("a \\\n b && c", [(0, "a \\\n b", "&&"), (0, "c", "")]),
    "a quote that does not end": ("a; b 'c", []),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_is_read_as_commands_with_their_operators(name: str) -> None:
    text, commands = SCRIPTS[name]
    found = [(each.depth, each.text, each.operator) for each in read_script(text).commands]
    assert found == commands
