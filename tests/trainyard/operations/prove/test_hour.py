"""Programs of the hour: what they print is shown and kept, and the limit ends them."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from decimal import Decimal
from pathlib import Path

import pytest

from tests.support.patience import until
from tests.trainyard.operations.prove.proofs import whole
from trainyard.operations.prove import hour as module
from trainyard.operations.prove.hour import CHILD, Hour, LimitReached, wait_for_child
from trainyard.operations.prove.record import LOCAL, load
from trainyard.operations.prove.steps import STEPS

SMALL = next(step for step in STEPS if step.name == "small")
DESTROY = next(step for step in STEPS if step.name == "destroy")


@pytest.fixture
def hour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Hour:
    """An hour in its first step that builds, with a pulumi that writes what it is told."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.01)
    proof = whole()
    proof.steps = []
    made = Hour(stack="prove", live=True, image="", wait_minutes=0, limit=Decimal(15), proof=proof)
    made.begin(SMALL, Decimal("1.40"), Decimal("1.50"))
    fake = tmp_path / "bin" / "pulumi"
    fake.parent.mkdir()
    fake.write_text(
        '#!/bin/sh\necho "$@" >> args\n'
        'while [ "$1" != --event-log ]; do shift; done\necho \'{"a": 1}\' > "$2"\n'
        "echo out; echo error >&2; exit ${FAKE:-0}\n"
    )
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{fake.parent}:{os.environ['PATH']}")
    return made


def _program(hour: Hour, script: str) -> module.Output:
    return hour._program([sys.executable, "-c", script])  # pyright: ignore[reportPrivateUsage]


def test_a_step_is_in_the_file_before_anything_of_it_is_done(hour: Hour) -> None:
    found = load()
    assert found and [step.state for step in found.steps] == ["running"]
    assert found.steps[0].usd_per_hour == "1.40" and hour.built


def test_the_engine_is_asked_nothing_and_its_events_are_kept_of_each_call(
    hour: Hour, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FAKE", "7")
    ended = hour.engine("up")
    assert (ended.code, ended.out, ended.err, ended.why) == (7, "out\n", "error\n", "error")
    shown = capsys.readouterr().out
    assert "out\n" in shown and "error\n" in shown and "small: pulumi up --stack prove" in shown
    assert Path("args").read_text().startswith("up --stack prove --yes --skip-preview")
    hour.engine("up")
    assert [file.name for file in hour.event_files()] == [
        "events-small-0.json",
        "events-small-1.json",
    ]
    assert hour.events() == [{"a": 1}] * 2 and not CHILD.exists()


def test_a_word_acts_where_this_one_acts(hour: Hour, monkeypatch: pytest.MonkeyPatch) -> None:
    commands = list[list[str]]()
    monkeypatch.setattr(
        Hour,
        "_program",
        lambda self, command: commands.append(command) or module.Output(code=0, out="", err=""),
    )
    hour.tool("drain", "--yes")
    hour.live = False
    hour.tool("drain", "--yes")
    words = ["-m", "trainyard", "drain", "--stack", "prove", "--yes"]
    assert [command[1:] for command in commands] == [[*words, "--live"], words]


def test_a_program_that_would_cost_more_than_the_limit_leaves_is_asked_to_stop(
    hour: Hour, monkeypatch: pytest.MonkeyPatch
) -> None:
    hour.limit, look = Decimal("0.01"), hour.check_limit
    monkeypatch.setattr(hour, "check_limit", lambda: until(Path("ready").exists) and look())
    script = (
        "import signal, sys, time\n"
        "signal.signal(signal.SIGINT, lambda *_: (open('asked', 'w').close(), sys.exit(3)))\n"
        "open('ready', 'w').close(); time.sleep(600)"
    )
    with pytest.raises(LimitReached, match="more than the limit of 0.01 USD leaves"):
        _program(hour, script)
    assert Path("asked").exists() and not CHILD.exists()


def test_deleting_is_never_stopped(hour: Hour) -> None:
    hour.begin(DESTROY, Decimal("1.40"), Decimal())
    hour.limit = Decimal()
    assert _program(hour, "print('deleted')").out == "deleted\n"


def test_the_limit_lasts_while_it_is_far_away(hour: Hour) -> None:
    assert _program(hour, "import time; time.sleep(0.1)").code == 0
    hour.check_limit()


def test_an_engine_that_outlives_a_killed_call_is_waited_for(
    hour: Hour, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    LOCAL.mkdir(exist_ok=True)
    CHILD.write_text("123\n")
    answers = iter(["/usr/bin/pulumi\n", "pulumi\n", "bash\n"])
    monkeypatch.setattr(
        subprocess,
        "run",
        lambda words, **_: subprocess.CompletedProcess(words, 0, next(answers), ""),
    )
    monkeypatch.setattr(module.time, "sleep", lambda _: None)
    wait_for_child()
    assert capsys.readouterr().out.count("waits for pulumi") == 1 and not CHILD.exists()
    wait_for_child()
