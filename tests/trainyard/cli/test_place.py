"""Where a word acts follows from one rule, and where two places could be meant it is refused."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.trainyard.cli.test_words import an_account, answers
from trainyard.cli import main
from trainyard.cli.place import ELSEWHERE, NAMES_AN_ACCOUNT, Unclear, place_of

__all__ = ["an_account"]
URL = "http://127.0.0.1:4000"


@pytest.fixture
def rehearsal(tmp_path: Path) -> Path:
    """A rehearsal has been started in the folder."""
    (tmp_path / ".rehearsal").mkdir()
    (tmp_path / ".rehearsal/world.json").touch()
    (tmp_path / "rehearsal").mkdir()
    return tmp_path


def of(*, live: bool = False, rehearsal: bool = False) -> str:
    place = place_of("dev", live=live, rehearsal=rehearsal)
    return "account" if place.live else "enters" if place.to_be_entered else "shell"


def test_without_a_rehearsal_it_is_the_account() -> None:
    assert of() == of(live=True) == "account"
    with pytest.raises(Unclear, match="none runs here. Fix: make up starts one; or write --live"):
        of(rehearsal=True)


def test_a_checkout_without_a_rehearsal_and_without_pulumi_has_nothing_to_look_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After `make down` a word went on to the account, and asked for Pulumi."""
    (tmp_path / "development").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unclear, match="nothing to look at. Fix: make up starts one; for an AWS"):
        of()
    assert of(live=True) == "account"
    (tmp_path / "pulumi").touch(mode=0o755)
    assert of() == "account"


@pytest.mark.usefixtures("rehearsal")
def test_where_a_rehearsal_runs_it_is_meant_unless_the_account_is_named() -> None:
    assert of() == of(rehearsal=True) == "enters"
    assert of(live=True) == "account"


def test_the_state_of_a_rehearsal_may_be_elsewhere(
    rehearsal: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (rehearsal / ".rehearsal").rename(tmp_path / "state")
    assert of() == "account"
    monkeypatch.setenv("TRAINYARD_REHEARSAL", str(tmp_path / "state"))
    assert of() == "enters"


@pytest.mark.usefixtures("rehearsal")
@pytest.mark.parametrize("variable", NAMES_AN_ACCOUNT)
def test_a_shell_that_names_an_account_beside_a_rehearsal_means_neither(
    variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "a-secret")
    with pytest.raises(Unclear, match=f"this shell has {variable}: both could") as unclear:
        of()
    assert "a-secret" not in str(unclear.value)
    assert (of(live=True), of(rehearsal=True)) == ("account", "enters")


@pytest.mark.parametrize("variable", ELSEWHERE)
def test_a_shell_that_leads_elsewhere_is_no_account(
    variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, URL)
    assert of() == of(rehearsal=True) == "shell"
    with pytest.raises(Unclear, match=f"{variable}=http.*Fix: unset {variable}"):
        of(live=True)


@pytest.mark.usefixtures("rehearsal")
@pytest.mark.parametrize(("word", "by"), [("logs", "run"), ("drain", "drain")])
def test_a_word_enters_the_rehearsal_as_somebody_has_typed_it(
    word: str, by: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    called: list[list[str]] = []
    monkeypatch.setattr(subprocess, "call", lambda words: called.append(words) or 3)
    assert main.typed([word, "--rehearsal", "--stack", "dev"]) == 3
    assert called == [
        [sys.executable, "-m", "development", by, "--stack", "dev", "--", word, "--stack", "dev"]
        + ["--rehearsal"]
    ]
    assert capsys.readouterr().err == "", "the word inside prints where it acts"
    # There it is called again, and finds itself inside.
    monkeypatch.setenv("AWS_ENDPOINT_URL", URL)
    inside = answers(monkeypatch, word, 0)
    assert main.typed(called[0][called[0].index("--") + 1 :]) == 0
    assert [options.live for options in inside] == [False]
    assert f"stack dev: the rehearsal, AWS_ENDPOINT_URL={URL}\n" in capsys.readouterr().err


def test_a_refusal_has_the_code_of_wrong_usage(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    called = answers(monkeypatch, "drain", 0)
    monkeypatch.setenv("AWS_ENDPOINT_URL", URL)
    assert main.typed(["drain", "--live"]) == 2 and not called
    assert "--live means an AWS account" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ('aws:allowedAccountIds: ["111122223333"]', "AWS account 111122223333, eu-west-1"),
        ("aws:profile: ours", "the AWS account of profile ours, eu-west-1"),
        ("aws:allowedAccountIds: [a, b]", "the AWS account of the credentials of this shell, eu"),
        ("- no: map", "the AWS account of the credentials of this shell"),
    ],
)
def test_the_account_is_said_as_the_stack_file_names_it(
    settings: str, said: str, tmp_path: Path
) -> None:
    text = f"config:\n  {settings}\n" + "  aws:region: eu-west-1\n" * (settings[0] != "-")
    (tmp_path / "Pulumi.dev.yaml").write_text(text)
    assert re.match(re.escape(said), place_of("dev", live=True, rehearsal=False).says)


@pytest.mark.usefixtures("rehearsal")
def test_check_asks_no_account_unless_one_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    called = answers(monkeypatch, "check", 0)
    assert main.typed(["check"]) == 0 and not called[0].asks
    assert main.typed(["check", "--live"]) == 0 and called[1].asks and called[1].live


def test_the_next_command_means_the_same_place(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    answers(monkeypatch, "status", 0)
    main.typed(["status"])
    assert "next: trainyard watch dev --live\n" in capsys.readouterr().err
    monkeypatch.setenv("AWS_ENDPOINT_URL", URL)
    main.typed(["status"])
    assert "next: trainyard watch dev\n" in capsys.readouterr().err
