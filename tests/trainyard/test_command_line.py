"""Every command line says what it does, refuses what it does not know, and ends quietly."""

from __future__ import annotations

import argparse
import ast
import importlib
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.recording import CHECKOUT
from trainyard import command_line

THE_TOOL = [CHECKOUT / "trainyard/__main__.py", CHECKOUT / "trainyard/cli/script.py"]
"""What starts `trainyard`: tests/trainyard/cli has its words, and what they take."""
SCRIPTS = [
    path
    for pattern in ("trainyard/**", "benchmarks", "development", "rehearsal", "tests/worlds")
    for path in sorted(CHECKOUT.glob(f"{pattern}/*.py"))
    if "__name__ ==" in path.read_text()
    and path.name not in ("world.py", "tunnel.py")  # parts of the rehearsal: no person starts them
    and "in_cluster" not in path.parts  # a pod starts them
    and path not in THE_TOOL
]
MODULES = [".".join(path.relative_to(CHECKOUT).with_suffix("").parts) for path in SCRIPTS]
SUBWORDS = (
    "up",
    "down",
    "status",
    "mirror",
    "preview",
    "env",
    "kubeconfig",
    "drain",
    "repair",
    "run",
)
WORLD_WORDS = ("build", "up", "down", "env", "inventory", "status", "processes", "fault")
WORDS = [
    *((module,) for module in MODULES),
    *(("development.__main__", word) for word in SUBWORDS),
    *(("rehearsal.__main__", word) for word in WORLD_WORDS),
]
REQUIRED = {
    "trainyard.reports.pull_request": ["dev"],
    "development.__main__": ["status"],
    "development.artifacts": ["v0.2.0", "dist"],
    "rehearsal.__main__": ["status"],
}
"""What else would be missing."""


@pytest.fixture
def nothing_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """No program and no connection."""

    def refuse(*words: Any, **_: Any) -> None:
        raise AssertionError(f"started {words}")

    monkeypatch.setattr(subprocess.Popen, "__init__", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)


def _main(module: str, arguments: list[str]) -> int:
    """The exit code."""
    with pytest.raises(SystemExit) as ended:
        importlib.import_module(module).main(arguments)
    assert isinstance(ended.value.code, int)
    return ended.value.code


def test_every_command_line_of_the_documents_is_tested() -> None:
    assert {
        "trainyard.reports.pull_request",
        "trainyard.catalog.refresh",
        "rehearsal.__main__",
    } <= {*MODULES}


def test_a_table_has_aligned_columns_and_no_blanks_at_the_end_of_a_line() -> None:
    rows = [("NODE", "GPU", "READY"), ("n1", 16, True), ("node-2", "", "")]
    assert command_line.table(rows) == ["  NODE    GPU  READY", "  n1      16   True", "  node-2"]
    assert command_line.table(rows[:2], indent=0) == ["NODE  GPU  READY", "n1    16   True"]
    assert command_line.table([]) == []


@pytest.mark.usefixtures("nothing_starts")
@pytest.mark.parametrize("words", WORDS, ids=" ".join)
def test_help_says_what_a_word_does_and_starts_nothing(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    module, *sub = words
    assert _main(module, [*sub, "--help"]) == 0
    usage, sentence = capsys.readouterr().out.split("\n\n")[:2]
    assert f"python -m {module.removesuffix('.__main__')}" in usage
    assert sentence[0].isupper() and sentence.endswith(".") and sentence.count(". ") == 0


@pytest.mark.usefixtures("nothing_starts")
@pytest.mark.parametrize("words", WORDS, ids=" ".join)
def test_an_unknown_argument_is_an_error(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    module, *sub = words
    assert _main(module, [*(sub or REQUIRED.get(module, [])), "--jsn"]) == 2
    assert "unrecognized arguments: --jsn" in capsys.readouterr().err


@pytest.mark.usefixtures("nothing_starts")
@pytest.mark.parametrize("module", MODULES)
def test_every_argument_has_its_sentence(module: str, monkeypatch: pytest.MonkeyPatch) -> None:
    parsers: list[argparse.ArgumentParser] = []

    def given(self: argparse.ArgumentParser, *_: Any) -> None:
        parsers.append(self)
        raise SystemExit(0)

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", given)
    _main(module, [])
    found = [action for parser in parsers for action in _actions(parser)]
    assert found and [action.dest for action in found if not action.help] == []


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for sub in action.choices.values():
                yield from _actions(sub)
        else:
            yield action


@pytest.mark.usefixtures("nothing_starts")
@pytest.mark.parametrize(
    ("module", "arguments"),
    [("trainyard.catalog.refresh", ["--price"]), ("rehearsal.__main__", ["down", "--forc"])],
)
def test_a_shortened_option_is_an_error(module: str, arguments: list[str]) -> None:
    assert _main(module, arguments) == 2


@pytest.mark.usefixtures("nothing_starts")
@pytest.mark.parametrize(
    ("module", "arguments", "said"),
    [
        ("trainyard.catalog.refresh", ["--prices", "--from-moto"], "not allowed with"),
        ("trainyard.catalog.refresh", ["--as-of", "2026-11"], "it needs --from-moto"),
        ("rehearsal.__main__", [], "required: command"),
        ("rehearsal.__main__", ["fault", "vanishes"], "invalid choice"),
        ("benchmarks.estate", ["teams"], "COUNT is missing"),
        ("benchmarks.program", ["flat"], "FILE belongs to"),
    ],
)
def test_what_is_missing_or_contradicts_is_said(
    module: str, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _main(module, arguments) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_command_ends_in_the_same_way(path: Path) -> None:
    last = ast.parse(path.read_text()).body[-1]
    assert isinstance(last, ast.If)
    ours = "terminal" if path.parent.name == "rehearsal" else "command_line"
    assert [ast.unparse(line) for line in last.body] == [f"{ours}.run(main)"]


# The end.


def _with_a_reader_who_left(*command: str) -> tuple[int, str]:
    """Exit code and stderr of Python, whose stdout nobody reads."""
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", *command],
        cwd=CHECKOUT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout and process.stderr
    process.stdout.close()
    said = process.stderr.read()
    process.stderr.close()
    return process.wait(), said


@pytest.mark.parametrize(
    "words",
    [
        ("trainyard", "plan", "dev"),
        ("trainyard", "plan", "dev", "--json"),
        ("trainyard", "schema"),
        ("trainyard", "check", "--help"),
        ("trainyard", "migrate", "tests/workloads/valid/pytorchjob-simple.yaml"),
    ],
    ids=" ".join,
)
def test_a_closed_pipe_ends_a_command_quietly(words: tuple[str, ...]) -> None:
    code, said = _with_a_reader_who_left("-m", *words)
    lines = said.splitlines()
    ours = ("stack dev: ", "next: ", "reads ")
    assert code == 0 and all(line.startswith(ours) for line in lines)


@pytest.mark.parametrize("unbuffered", [(), ("-u",)])
def test_without_a_reader_a_command_goes_to_its_end_and_keeps_its_exit_code(
    unbuffered: tuple[str, ...], tmp_path: Path
) -> None:
    program = (
        "import pathlib\nfrom trainyard import command_line\n"
        "def main(_):\n"
        "    for _ in range(9999): print('a line', flush=True)\n"
        f"    pathlib.Path({str(tmp_path / 'end')!r}).touch()\n"
        "    return 3\n"
        "command_line.run(main)"
    )
    assert _with_a_reader_who_left(*unbuffered, "-c", program) == (3, "")
    assert (tmp_path / "end").exists()


@pytest.mark.parametrize(
    ("body", "code", "said"),
    [
        ("return __import__('subprocess').call(['sh', '-c', 'kill -PIPE $$'])", 0, ""),
        ("raise KeyboardInterrupt", command_line.INTERRUPTED, "\nstopped\n"),
        ("return 1 / 0", 1, "ZeroDivisionError"),
    ],
)
def test_how_a_command_ends_is_how_its_process_ends(body: str, code: int, said: str) -> None:
    program = f"from trainyard import command_line\ndef main(_): {body}\ncommand_line.run(main)"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=CHECKOUT, capture_output=True, text=True
    )
    assert done.returncode == code and said in done.stderr
    assert said or not done.stderr


def test_something_that_takes_long_prints_on_stderr_that_it_goes_on(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command_line, "BEAT_SECONDS", 0.01)
    with command_line.showing("reads 3 objects"):
        time.sleep(0.2)
    shown = capsys.readouterr()
    assert shown.out == "" and shown.err.startswith("reads 3 objects\nreads 3 objects, for 0:00\n")
    time.sleep(0.05)
    assert capsys.readouterr().err == "", "and no more afterwards"


def test_what_mostly_ends_at_once_is_shown_only_where_it_takes_long(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(command_line, "BEAT_SECONDS", 0.05)
    with command_line.showing("reads the runs", after=5):
        pass
    assert capsys.readouterr().err == ""
    with command_line.showing("reads the runs", after=0.01):
        time.sleep(0.3)
    assert capsys.readouterr().err.startswith("reads the runs\nreads the runs, for 0:00\n")


def test_two_long_texts_are_cut_where_they_do_not_differ() -> None:
    common = "python train.py --data /mnt/scratch/sets/imagenet --epochs 90 --learning-rate "
    one, other = command_line.cut_apart(f"{common}0.1 {'x' * 80}", f"{common}0.2", 60)
    assert (one[:1], other[:1]) == ("…", "…") and len(one) == 60 and len(other) <= 60
    assert "--learning-rate 0.1 xx" in one and other.endswith("--learning-rate 0.2")
    assert one.endswith("x…")


def test_two_short_texts_are_whole() -> None:
    assert command_line.cut_apart("a", "b" * 60, 60) == ("a", "b" * 60)
    assert command_line.cut_apart("a", "b" * 61, 60) == ("a", f"{'b' * 59}…")
