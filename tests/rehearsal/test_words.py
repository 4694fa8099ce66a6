"""The words for a world: `python -m rehearsal`."""

from pathlib import Path
from typing import Any

import pytest

from rehearsal import __main__ as cli
from rehearsal import paths, world
from rehearsal.commands import words as commands

THING = {"type": "ec2:vpc", "id": "vpc-1", "name": "mine", "state": "available"}


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in which no world runs."""
    for name, place in {"STATE": "", "LOGS": "logs", "NODES": "nodes"}.items():
        monkeypatch.setattr(paths, name, tmp_path / place)
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [
        ["vanish"],
        ["vanish", "--instance", "i-1", "--zone", "a"],
        ["vanish", "--instance", "i-1", "--notice", "spot"],
        ["notice", "--instance", "i-1"],
        ["notice", "--notice", "spot"],
        ["break", "--instance", "i-1"],
        ["break", "--instance", "i-1", "--what", "xid"],
        ["break", "--instance", "i-1", "--what", "efa-down", "--xid", "79"],
        ["break", "--instance", "i-1", "--what", "kubelet-silent"],
        ["break", "--instance", "i-1", "--what", "kubelet-dead", "--seconds", "45"],
        ["api-away"],
        ["api-away", "--seconds", "9", "--zone", "a"],
        ["clear", "--service", "ec2"],
        ["throttle", "--instance", "i-1"],
        ["--service", "ec2"],
    ],
)
def test_a_fault_with_an_option_that_it_does_not_have_is_refused(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(world, "ask", lambda *_: pytest.fail("asked the account"))
    assert cli.main(["fault", *words]) == 2
    assert "must have --instance" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["env"], ["inventory"], ["fault"]], ids=str)
def test_a_word_that_needs_a_world_says_how_to_get_one(
    words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(commands.environment, "CONFIG", paths.STATE / "config")
    assert cli.main(words) == 1
    assert "`python -m rehearsal up` starts one" in capsys.readouterr().err


def test_down_ends_no_world_while_something_is_in_its_account(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    ended: list[str] = []
    monkeypatch.setattr(world, "running", lambda: True)
    monkeypatch.setattr(world, "stop", lambda: ended.append("world"))
    left: list[dict[str, Any]] = [THING, THING | {"id": "vpc-0", "state": "deleted"}]
    monkeypatch.setattr(world, "ask", lambda *_: left)
    assert cli.main(["down"]) == 1 and not ended
    said = capsys.readouterr().out
    assert "vpc-1  mine" in said and "vpc-0" not in said and "down --force" in said
    assert cli.main(["down", "--force"]) == 0 and ended == ["world"]
    left.clear()
    assert cli.main(["down"]) == 0 and ended == ["world", "world"]


def test_up_on_a_machine_without_namespaces_exits_2_at_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(world, "obstacle", lambda: "remedy: sudo sysctl")
    assert cli.main(["up"]) == 2
    assert "sysctl" in capsys.readouterr().err


def test_build_leaves_out_what_only_some_stacks_run_unless_it_is_named(
    monkeypatch: pytest.MonkeyPatch,
):
    built = list[str]()
    monkeypatch.setattr(
        commands.toolchain, "ensure", lambda *, programs, report: built.extend(programs)
    )
    monkeypatch.setattr(commands.genuine, "download", lambda *_: None)
    assert cli.main(["build"]) == 0
    usual = set(built)
    assert "etcd" in usual and not {"kueue", "prometheus"} & usual
    built.clear()
    assert cli.main(["build", "--also", "kueue"]) == 0
    assert set(built) - usual == {"kueue"}
