"""The world's life, with stand-ins for account and fleet."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rehearsal import paths, processes, world
from tests.support.patience import until
from tests.support.worlds import NEEDS_A_WORLD

PARTS = ("tests.development.fake_account", "tests.development.fake_fleet")


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A state folder of its own, and no process left."""
    for name in ("LOGS", "BACKEND"):
        monkeypatch.setattr(paths, name, tmp_path / getattr(paths, name).name)
    monkeypatch.setattr(paths, "STATE", tmp_path)
    yield tmp_path
    world.stop()


@pytest.fixture
def started(state: Path) -> paths.World:
    return world.start(parts=PARTS)


def _pid(name: str) -> int:
    return next(process.pid for process in world.list_processes() if process.name.endswith(name))


def _inside(command: str) -> str:
    flags = ["--user", "--net", "--mount", "--pid", "--preserve-credentials"]
    return subprocess.run(
        ["nsenter", "--target", str(_pid("fake_account")), *flags, "sh", "-c", command],
        check=True,
        capture_output=True,
        text=True,
    ).stdout


@NEEDS_A_WORLD
def test_the_account_answers_outside_at_the_address_it_is_known_by(started: paths.World):
    assert world.ask("GET", "health") == {"ok": True}


@NEEDS_A_WORLD
def test_the_world_has_a_bridge_that_the_machine_does_not_see(started: paths.World):
    assert paths.BRIDGE in _inside("ip -brief address show br0")
    assert (
        paths.BRIDGE
        not in subprocess.run(["ip", "-brief", "address"], capture_output=True, text=True).stdout
    )


@NEEDS_A_WORLD
def test_a_world_that_runs_is_used_again(started: paths.World):
    before = [process.pid for process in world.list_processes()]
    assert world.start(parts=PARTS) == started
    assert [process.pid for process in world.list_processes()] == before


@NEEDS_A_WORLD
def test_stop_leaves_no_process_and_nothing_but_logs(started: paths.World, state: Path):
    pids = [process.pid for process in world.list_processes()]
    world.stop()
    assert [pid for pid in pids if processes.started(pid)] == []
    assert os.listdir(state) == ["logs"]


@NEEDS_A_WORLD
def test_a_world_whose_keeper_was_killed_dies_and_a_new_one_can_start(started: paths.World):
    pids = [process.pid for process in world.list_processes()]
    os.kill(_pid("rehearsal.world"), signal.SIGKILL)
    assert until(lambda: not any(map(processes.started, pids)))
    world.start(parts=PARTS)
    assert world.ask("GET", "health") == {"ok": True}


@NEEDS_A_WORLD
def test_a_process_that_lost_all_its_parents_ends_with_the_world(started: paths.World):
    _inside("setsid sleep 4711 >/dev/null 2>&1 &")
    assert until(lambda: any(process.name == "sleep" for process in world.list_processes()))
    orphan = _pid("sleep")
    os.kill(_pid("rehearsal.world"), signal.SIGKILL)
    assert until(lambda: processes.started(orphan) is None)


@NEEDS_A_WORLD
def test_a_fleet_that_ended_is_started_again_and_that_is_said(started: paths.World):
    assert until(lambda: any(p.name.endswith("fake_fleet") for p in world.list_processes()))
    before = _pid("fake_fleet")
    os.kill(before, signal.SIGKILL)
    assert until(
        lambda: any(
            p.name.endswith("fake_fleet") and p.pid != before for p in world.list_processes()
        ),
    )
    assert "fake_fleet ended with -9" in world.incidents()[0]
    assert not world.lost()


@NEEDS_A_WORLD
def test_an_account_that_ended_is_not_started_again_because_it_would_know_nothing(
    started: paths.World,
):
    os.kill(_pid("fake_account"), signal.SIGKILL)
    assert until(world.lost)
    assert not any(process.name.endswith("fake_account") for process in world.list_processes())
    said: list[str] = []
    world.start(parts=PARTS, report=said.append)
    assert "clearing away" in said[0]
    assert not world.lost()


@NEEDS_A_WORLD
def test_nothing_of_the_callers_aws_identity_enters(state: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AWS_PROFILE", "production")
    world.start(parts=PARTS)
    assert b"production" not in Path(f"/proc/{_pid('fake_account')}/environ").read_bytes()


@NEEDS_A_WORLD
def test_an_account_that_cannot_start_is_said_at_once_with_its_log(state: Path):
    with pytest.raises(world.WorldError, match=r"account.log .* in .*/logs"):
        world.start(parts=("tests.rehearsal.no_such_module",))


def test_a_pid_that_was_given_to_another_process_is_not_taken_for_the_keeper(state: Path):
    (state / "keeper").write_text(f"{os.getpid()} 1")
    assert not world.running()


def test_a_machine_without_namespaces_is_told_the_remedy(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(
        world, "NAMESPACES", (sys.executable, "-c", "raise SystemExit('Operation not permitted')")
    )
    monkeypatch.setattr(world, "_sysctl", {"kernel.apparmor_restrict_unprivileged_userns": "1"}.get)
    assert "sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0" in (
        world.obstacle() or ""
    )


def test_a_state_folder_too_deep_for_unix_sockets_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(paths, "STATE", Path("/tmp") / ("x" * 120))
    assert "TRAINYARD_REHEARSAL" in (world.obstacle() or "")
