"""`trainyard contract`: the contract of a team as a file, from the environment's stack file alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.contracts import alone
from tests.support.teams import both, by_name, checkout, environment_of, listed, team_of
from trainyard.cli import main
from trainyard.settings.reading.contracts import core


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (place := tmp_path / "platform").mkdir()
    monkeypatch.chdir(place)
    return checkout(place, listed, by_name)


def _printed(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    assert main.typed(["contract", *words]) == code
    return capsys.readouterr().out


def test_a_team_plans_by_what_is_printed_as_beside_the_stack_file(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = _printed(capsys, "--stack", "dev", "--team", "vision")
    assert text.startswith("# Environment dev as team vision may use it")
    assert team_of(alone(tmp_path / "team", text)) == team_of(folder)


def test_it_is_what_the_environment_publishes_and_what_follows_from_it(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    printed: dict[str, Any] = yaml.safe_load(_printed(capsys, "dev", "--team", "vision"))
    plan = environment_of(folder)
    assert core(printed) == plan.teams["vision"].contract
    assert printed["releases"] == {"kubernetes": "1.35", "trainer": "2.1.0"}
    assert set(printed["digests"]["pools"]) == {"g6e", "h100"}
    [image] = printed["runtimes"]["torch-distributed-resilient"]
    assert image.startswith("public.ecr.aws/deep-learning-containers/")
    for_others = yaml.safe_load(_printed(capsys, "dev"))
    assert for_others == yaml.safe_load(yaml.safe_dump(dict(plan.contract)))


def test_it_is_the_same_text_each_time_and_whatever_the_order_of_the_stack_file(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def turned(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: turned(value[key]) for key in reversed(value)}
        return value

    def edit(settings: dict[str, Any]) -> None:
        again = turned(settings)
        settings.clear()
        settings.update(again)

    first = _printed(capsys, "dev", "--team", "vision")
    checkout(folder, both(listed, edit), by_name)
    assert _printed(capsys, "dev", "--team", "vision") == first


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("dev", "--team", "audio"), "--team: must be a team under environment.teams; got audio"),
        (
            ("team-vision",),
            "--stack: must be an environment; got team-vision. Fix: write --stack dev",
        ),
    ],
)
def test_what_has_no_contract_is_refused_on_stderr(
    folder: Path, words: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is printed goes to a file."""
    assert main.typed(["contract", *words]) == 1
    done = capsys.readouterr()
    assert done.out == "" and says in done.err


def test_errors_of_the_stack_file_go_to_stderr(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = folder / "Pulumi.dev.yaml"
    file.write_text(file.read_text().replace("ap-northeast-2a", "ap-northeast-9z"))
    assert main.typed(["contract", "dev", "--team", "vision"]) == 1
    done = capsys.readouterr()
    assert done.out == "" and "environment.zone" in done.err
