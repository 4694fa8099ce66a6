"""Every report reads its stack file alike."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.support.recording import CHECKOUT
from tests.support.tool import run_word
from trainyard.reports import pull_request

Main = Callable[[list[str]], int]
WORDS = {word: partial(run_word, word) for word in ("check", "dashboards", "due", "plan", "policy")}
of_each_report = pytest.mark.parametrize(
    "main", [*WORDS.values(), pull_request.main], ids=[*WORDS, "pull_request"]
)


@pytest.fixture
def wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A stack whose file has one error."""
    (tmp_path / "Pulumi.yaml").write_text("name: trainyard\nruntime: python\n")
    (tmp_path / "Pulumi.wrong.yaml").write_text("config:\n  trainyard:nothing: {}\n")
    monkeypatch.chdir(tmp_path)
    return "wrong"


@of_each_report
def test_a_stack_without_a_file_is_told_which_file_is_missing(
    main: Main, wrong: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["there-is-none"]) == 2
    assert "no stack file (Pulumi.there-is-none.yaml)" in capsys.readouterr().out


@pytest.mark.parametrize(("job", "stack"), [("t5-large", "dev"), ("vit-base", "team-vision")])
def test_the_name_of_a_job_is_answered_with_its_stack(
    job: str, stack: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(CHECKOUT)
    assert run_word("check", [job]) == 2
    assert f"{job} is a job of stack {stack}: write {stack}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("stack", "said"),
    [
        (
            "wrogn",
            "did you mean wrong? Otherwise trainyard new environment --name wrogn writes one",
        ),
        ("zzz", "the stacks here are wrong; trainyard new environment --name zzz writes one"),
        ("team-nlp", "the stacks here are wrong; trainyard new team --name nlp writes one"),
    ],
)
def test_a_stack_without_a_file_is_told_which_there_are_and_what_writes_one(
    wrong: str, capsys: pytest.CaptureFixture[str], stack: str, said: str
) -> None:
    assert run_word("check", [stack]) == 2
    assert capsys.readouterr().out.rstrip().endswith(f"; {said}")


@of_each_report
def test_a_folder_without_a_project_is_told_so(
    main: Main, wrong: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("Pulumi.yaml").unlink()
    for stack in (wrong, "there-is-none"):
        assert main([stack]) == 2
        said = capsys.readouterr().out
        assert "no project file (Pulumi.yaml); go to the folder of Pulumi.yaml" in said


@of_each_report
def test_errors_of_the_stack_file_end_a_report(
    main: Main, wrong: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([wrong]) == 1
    assert "error" in capsys.readouterr().out


@pytest.mark.parametrize("main", [WORDS["due"], WORDS["plan"]], ids=["due", "plan"])
def test_a_program_reads_the_errors_as_json(
    main: Main, wrong: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([wrong, "--json"]) == 1
    said = json.loads(capsys.readouterr().out)
    assert said["stack"] == wrong and said["errors"]
