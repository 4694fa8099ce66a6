"""Every word of the tool: its help, its options, its exit codes, and the command that comes next."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import re
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.recording import CHECKOUT
from trainyard.cli import main
from trainyard.cli.options import OPTIONS
from trainyard.cli.place import ELSEWHERE, NAMES_AN_ACCOUNT
from trainyard.cli.words import WORDS, Acts
from trainyard.operations.status.diagnosis import SILENCE
from trainyard.reports.check import DEADLINE

of_each_word = pytest.mark.parametrize("word", WORDS)
ANSWERS = {"yes": "yes", "no": "no"}


@pytest.fixture(autouse=True)
def an_account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """A folder with stack files where no rehearsal runs, and a shell that leads to AWS."""
    for name in (*ELSEWHERE, *NAMES_AN_ACCOUNT, "TRAINYARD_REHEARSAL"):
        monkeypatch.delenv(name, raising=False)
    for name in ("Pulumi.yaml", "Pulumi.dev.yaml", "Pulumi.team-vision.yaml"):
        (tmp_path / name).write_text((CHECKOUT / name).read_text())
    monkeypatch.chdir(tmp_path)
    yield monkeypatch


@pytest.fixture
def nothing_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """No program and no connection."""

    def refuse(*words: Any, **_: Any) -> None:
        raise AssertionError(f"started {words}")

    monkeypatch.setattr(subprocess.Popen, "__init__", refuse)
    monkeypatch.setattr(socket.socket, "connect", refuse)


def answers(monkeypatch: pytest.MonkeyPatch, word: str, code: int) -> list[Any]:
    """The word does nothing and ends with the code; returns the options that it is called with."""
    called: list[Any] = []
    module = importlib.import_module(WORDS[word].module)
    monkeypatch.setattr(module, "main", lambda options: called.append(options) or code)
    return called


def least(word: str) -> list[str]:
    """What somebody must type behind a word."""
    return {
        "migrate": ["job.yaml"],
        "completion": ["bash"],
        "again": ["t5-large"],
        "image": ["t5-large", "--from", "."],
        "new": ["environment"],
    }.get(word, [])


def ended(arguments: list[str]) -> int:
    """The exit code, also where argparse ends the process."""
    try:
        return main.typed(arguments)
    except SystemExit as end:
        assert isinstance(end.code, int)
        return end.code


@of_each_word
def test_a_word_has_a_function_that_takes_the_options(word: str) -> None:
    function = importlib.import_module(WORDS[word].module).main
    assert len(inspect.signature(function).parameters) == 1


@pytest.mark.usefixtures("nothing_starts")
@of_each_word
def test_help_is_a_sentence_options_with_a_sentence_each_an_example_and_exit_codes(
    word: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert ended([word, "--help"]) == 0
    said = capsys.readouterr().out
    does = WORDS[word].does
    assert does in said and does[0].isupper() and does.endswith(".") and does.count(". ") == 0
    for option in WORDS[word].takes:
        assert re.search(rf"^  {option}( [A-Z]+)?  +\S", said, re.MULTILINE), option
    assert f"\nexample: trainyard {WORDS[word].example}\n" in said
    assert f"  0  done\n  1  {WORDS[word].fails}\n  2  wrong usage" in said
    assert ("\n  3  somebody answered" in said) == ("--yes" in WORDS[word].takes)


@pytest.mark.usefixtures("nothing_starts")
@of_each_word
def test_the_example_of_a_word_can_be_typed(word: str) -> None:
    typed = shlex.split(WORDS[word].example.partition(" > ")[0])
    assert main.read(typed).word == word


@pytest.mark.usefixtures("nothing_starts")
def test_the_tool_without_a_word_lists_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert ended([]) == 2 and "required: word" in capsys.readouterr().err
    assert ended(["--help"]) == 0
    said = capsys.readouterr().out
    assert [word for word in WORDS if not re.search(rf"^    {word}\b", said, re.MULTILINE)] == []
    assert ended(["stats"]) == 2


@pytest.mark.usefixtures("nothing_starts")
@of_each_word
@pytest.mark.parametrize("wrong", ["--jsn", "--jso", "one two three"])
def test_what_a_word_does_not_know_is_wrong_usage(word: str, wrong: str) -> None:
    if word != "migrate" or wrong.startswith("--"):  # it takes any number of files
        assert ended([word, *least(word), *wrong.split()]) == 2


def test_every_option_is_declared_once_and_taken_by_a_word() -> None:
    taken = {option for word in WORDS.values() for option in word.takes}
    assert taken == {*OPTIONS}
    declared = [
        path
        for folder in ("trainyard", "stacks", "policy_pack")
        for path in (CHECKOUT / folder).rglob("*.py")
        if "add_argument(" in path.read_text()
    ]
    assert {path.name for path in declared} <= {
        "main.py",
        "configured.py",
        "pull_request.py",
        "previewable.py",
        "refresh.py",
    }


def test_what_an_option_says_of_its_default_is_true() -> None:
    assert f"({DEADLINE:g} by default)" in OPTIONS["--deadline"]["help"]
    assert f"({SILENCE.total_seconds() / 60:g} by default)" in OPTIONS["--silence"]["help"]


# Exit codes.


@of_each_word
@pytest.mark.parametrize("code", [0, 1, 2, 3])
def test_the_exit_code_is_that_of_the_word(
    word: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    called = answers(monkeypatch, word, code)
    assert main.typed([word, *least(word)]) == code and len(called) == 1


@of_each_word
def test_the_next_command_is_printed_behind_the_output_and_can_be_typed(
    word: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answers(monkeypatch, word, 0)
    main.typed([word, *least(word)])
    done = capsys.readouterr()
    answers(monkeypatch, word, 1)
    main.typed([word, *least(word)])
    failed = capsys.readouterr()
    assert done.out == failed.out == "", "it is for people, and what programs read stays as it is"
    for said, template in ((done.err, WORDS[word].then), (failed.err, WORDS[word].otherwise)):
        assert ("next: " in said) == bool(template)
        for line in re.findall(r"^next: trainyard (.*)$", said, re.MULTILINE):
            assert main.read(line.split()).word in WORDS


PRINT_THEIR_OWN = {
    *("stop", "again", "image", "accept", "dashboards", "schema", "completion", "new", "contract"),
    *("prove", "watch", "spent"),
}
"""Their next command depends on what they found, or there is none."""


def test_a_word_names_the_next_one() -> None:
    assert {name for name, word in WORDS.items() if not word.then} == PRINT_THEIR_OWN


def _followed(word: str, code: int, monkeypatch: pytest.MonkeyPatch, *options: str) -> list[str]:
    """Words that somebody types who starts with one and always types the next command. `code`: the end of
    the first word; all others end well."""
    typed = list[str]()
    line = [word, *least(word), *options]
    while line and line[0] not in typed:
        typed.append(line[0])
        answers(monkeypatch, line[0], code if len(typed) == 1 else 0)
        with contextlib.redirect_stderr(io.StringIO()) as said:
            main.typed(line)
        [*found] = re.findall(r"^next: trainyard (.*)$", said.getvalue(), re.MULTILINE)
        line = found[0].split() if found else []
    return [*typed, *line[:1]]


@of_each_word
@pytest.mark.parametrize("code", [0, 1])
def test_who_always_types_the_next_command_comes_to_an_end(
    word: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """status named watch and watch status; runs named spent and spent runs."""
    met = _followed(word, code, monkeypatch)
    mended = code == 1 and len(met) > 1 and met[-1] == met[0]  # what failed is tried again
    assert len({*met}) == len(met) - mended, met


@pytest.mark.parametrize("place", ["--live", "--rehearsal"])
def test_what_the_account_refuses_is_asked_again(
    place: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A check of the file alone passed then, and the account was never asked again."""
    if place == "--rehearsal":
        monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    answers(monkeypatch, "check", 1)
    assert main.typed(["check", "dev", place]) == 1
    assert capsys.readouterr().err.endswith(f"\nnext: trainyard check dev {place}\n")
    answers(monkeypatch, "check", 0)
    assert main.typed(["check", "dev", place]) == 0
    assert capsys.readouterr().err.endswith("\nnext: trainyard plan dev\n")


SLOW = ("check", "plan", "status", "runs", "spent")


@pytest.mark.parametrize("word", SLOW)
def test_a_word_that_takes_long_says_what_it_reads(
    word: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module = importlib.import_module(WORDS[word].module)
    monkeypatch.setattr(main.command_line, "SHORT_SECONDS", 0.01)
    monkeypatch.setattr(module, "main", lambda options: time.sleep(0.2) or 0)
    main.typed([word, "dev"])
    said = capsys.readouterr()
    assert said.out == "" and f"\nreads {WORDS[word].reads.format(stack='dev')}\n" in said.err
    monkeypatch.setattr(main.command_line, "SHORT_SECONDS", 2.0)
    main.typed([word, "dev"])
    assert "reads" not in capsys.readouterr().err, "what ends at once says nothing"


def test_a_check_that_waits_for_an_account_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module = importlib.import_module(WORDS["check"].module)
    monkeypatch.setattr(main.command_line, "SHORT_SECONDS", 0.01)
    monkeypatch.setattr(module, "main", lambda options: time.sleep(0.2) or 0)
    main.typed(["check", "dev", "--live"])
    assert "\nasks the account what Pulumi.dev.yaml needs\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    "word", ["drain", "repair", "stop", "mirror", "shell", "accept", "again", "prove"]
)
def test_without_a_question_an_account_must_be_named(
    word: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    called = answers(monkeypatch, word, 0)
    needed = [*least(word), *(["--job", "x"] if WORDS[word].needs_with_yes else [])]
    assert main.typed([word, *needed, "--yes"]) == 2 and not called
    assert "--yes needs --live on the AWS account of" in capsys.readouterr().err
    assert main.typed([word, *needed, "--yes", "--live"]) == 0 and len(called) == 1


# The stack.


def _stack(word: str, *words: str) -> str:
    return main.read([word, *words]).stack


def test_a_stack_is_named_by_an_option_or_first_and_otherwise_dev_or_the_only_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _stack("plan", "team-vision") == _stack("plan", "--stack", "team-vision")
    assert _stack("plan") == _stack("logs", "t5-large") == "dev"
    (tmp_path / "Pulumi.dev.yaml").unlink()
    assert _stack("plan") == "team-vision"
    for name in ("a", "b"):
        (tmp_path / f"Pulumi.{name}.yaml").touch()
    assert main.typed(["plan"]) == 2
    assert "has the stack files of a, b, team-vision. Fix: name one" in capsys.readouterr().err
    for file in tmp_path.glob("Pulumi.*.yaml"):
        file.unlink()
    assert main.typed(["plan"]) == 2
    assert "Fix: go to the folder of your stack files" in capsys.readouterr().err


def test_the_first_argument_is_the_job_where_a_word_is_about_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = main.read(["logs", "t5-large", "--rank", "0", "--follow"])
    assert (options.job, options.stack, options.rank, options.follow) == (
        "t5-large",
        "dev",
        0,
        True,
    )
    assert main.read(["stop", "--job", "t5-large"]).job == "t5-large"
    assert main.typed(["stop", "t5-large", "--job", "other"]) == 2
    assert "--job other and t5-large contradict each other" in capsys.readouterr().err
    assert main.typed(["logs", "t5-large", "dev"]) == 2
    assert "logs takes one name, that of the job. Fix: --stack dev" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main.typed(["logs", "t5-large", "--jsn"])
    assert "unrecognized arguments: --jsn" in capsys.readouterr().err
    assert main.typed(["image", "t5-large"]) == 2
    assert "--from is missing" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "missing"),
    [
        (["stop", ""], "--job"),
        (["stop", "--job", ""], "--job"),
        (["logs", "", "--stack", "dev"], "--job"),
        (["drain", ""], "--stack"),
        (["status", "--stack", ""], "--stack"),
    ],
)
def test_an_empty_name_is_wrong_usage(
    nothing_starts: None, words: list[str], missing: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Such as of a variable that is not set. An empty job meant each one that no entry describes, and an empty stack
    the one that Pulumi has selected."""
    assert main.typed([*words, "--live"]) == 2
    assert capsys.readouterr().err.startswith(f"{missing} is empty. example: trainyard {words[0]}")


@pytest.mark.parametrize(
    ("words", "fix"),
    [
        (["check", "acme/dev"], "write dev, and `pulumi org set-default acme` once"),
        (
            ["due", "--stack", "acme/trainyard/dev"],
            "write dev, and `pulumi org set-default acme` once",
        ),
        (["plan", "organization/trainyard/dev"], "write dev"),
    ],
)
def test_a_stack_with_its_organization_is_told_how_pulumi_takes_it_without(
    nothing_starts: None, words: list[str], fix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Pulumi leaves the organization out of the name of the stack file."""
    assert main.typed(words) == 2
    assert capsys.readouterr().err == (
        f"--stack: must be the name that Pulumi.<stack>.yaml has, without organization and project; got {words[-1]}."
        f" Fix: {fix}\n"
    )


def test_a_word_about_what_runs_takes_a_stack_as_pulumi_does(
    an_account: pytest.MonkeyPatch,
) -> None:
    called = answers(an_account, "status", 0)
    assert main.typed(["status", "--stack", "acme/dev", "--live"]) == 0
    assert called[0].stack == "acme/dev"


def test_without_a_question_stop_needs_a_name(
    nothing_starts: None, an_account: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The only job of the cluster can be that of a team, and nobody would see which one is meant."""
    assert main.typed(["stop", "--stack", "dev", "--yes", "--live"]) == 2
    assert capsys.readouterr().err == (
        "--job is missing, which --yes needs. example: trainyard stop t5-large\n"
    )
    called = answers(an_account, "stop", 0)
    assert main.typed(["stop", "--stack", "dev", "--live"]) == 0 and called


@pytest.mark.parametrize("word", [name for name, word in WORDS.items() if word.of_a_stack])
def test_the_first_line_says_the_stack_and_where_the_word_acts(
    word: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answers(monkeypatch, word, 0)
    main.typed([word, *least(word)])
    first = capsys.readouterr().err.splitlines()[0]
    if WORDS[word].acts is Acts.THERE:
        assert (
            first == "stack dev: the AWS account of the credentials of this shell, ap-northeast-2"
        )
    else:
        assert first == "stack dev: Pulumi.dev.yaml, no account"


def test_the_tool_runs_in_any_folder_and_as_a_module(tmp_path: Path) -> None:
    from trainyard.cli.script import SCRIPT

    checkout = tmp_path / "a checkout"
    script = checkout / ".venv/bin/trainyard"
    script.parent.mkdir(parents=True)
    script.write_text(SCRIPT)
    script.chmod(0o755)
    (script.parent / "python").write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    (script.parent / "python").chmod(0o755)
    for entry in CHECKOUT.iterdir():
        if entry.name not in (".venv", ".rehearsal", "Pulumi.dev.yaml"):
            (checkout / entry.name).symlink_to(entry)
    (tmp_path / "operations").mkdir()  # a folder of that name is not ours
    done = subprocess.run([script, "check"], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout.splitlines()[-1].partition(";")[0]) == (
        0,
        "dev: no errors, 6 warnings",
    )
    said = [line for line in done.stderr.splitlines() if not line.startswith("reads ")]
    assert said == ["stack dev: Pulumi.dev.yaml, no account", "next: trainyard plan dev"]
