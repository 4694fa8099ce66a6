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
    "an array": (
        "A=(a\n  b) B=$(c)\nd",
        [(0, "A=(a\n  b) B=$(c)", "\n"), (0, "d", "")],
    ),
    "an arithmetic condition": (
        "((A == 0)) && a",
        [(0, "((A == 0))", "&&"), (0, "a", "")],
    ),
    "a line that goes on": ("a \\\n b && c", [(0, "a \\\n b", "&&"), (0, "c", "")]),
    "a quote that does not end": ("a; b 'c", []),
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_is_read_as_commands_with_their_operators(name: str) -> None:
    text, commands = SCRIPTS[name]
    found = [(each.depth, each.text, each.operator) for each in read_script(text).commands]
    assert found == commands


CONDITIONS = {
    "if [ a ]; then X; fi": "if [ a ]",
    "if [ a ] &&\n  [ b ]; then X; fi": "if [ a ] && [ b ]",
    "if a; then b; else X; fi": "else if a",
    "if a; then b; elif c; then X; fi": "else if a elif c",
    "if a; then b; fi; X": "",
    "a && b || X": "a && b ||",
    "a && { b; X; }": "a &&",
    "a && b; X": "",
    "(a; X)": "",
    "for i in 1 2; do X; done": "for i in 1 2",
    "while a; do if b; then X; fi; done": "while a\nif b",
    "case $A in\n 0) b;;\n 1) c; X;;\nesac": "case $A in 1",
    "f() { if a; then b; fi; X; }": "",
    "if a; then echo then; X; fi": "if a",
    "fi; else; X": "",
}


@pytest.mark.parametrize("script", CONDITIONS)
def test_a_command_has_the_conditions_of_its_blocks_and_of_its_line(script: str) -> None:
    [found] = [each for each in read_script(script).commands if each.text == "X"]
    assert found.under == CONDITIONS[script]
