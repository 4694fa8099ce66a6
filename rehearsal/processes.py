"""Finds processes by what cannot lie after a kill -9: pid with start time, and the user namespace they live in."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Process:
    """One process as `make status` shows it."""

    pid: int
    name: str
    """The Python module or the program: rehearsal.account, kube-apiserver."""
    rss_mib: float


def look(pid: int) -> Process:
    """What a process is; empty values where it has just gone."""
    resident = (_read(pid, "statm").split() or [b"0", b"0"])[1]
    return Process(pid=pid, name=_name(pid), rss_mib=int(resident) * os.sysconf("SC_PAGE_SIZE") / 2**20)


def started(pid: int) -> str | None:
    """Clock ticks since boot: with the pid it names one process for good. None where it is gone, or only a zombie."""
    state, *fields = _read(pid, "stat").rpartition(b")")[2].split() or [b"Z"]
    return None if state == b"Z" else fields[18].decode()


def in_namespace(namespace: str, marker: str) -> list[int]:
    """Everything in a user namespace, if any of it has `marker` in its environment.

    The kernel may give the number of a namespace that is gone to another one: the marker tells them apart.
    """
    found = [pid for pid in _pids() if _user_namespace(pid) == namespace and started(pid)]
    return found if any(_is_marked(pid, marker) for pid in found) else []


def in_session(leader: int, marker: str) -> list[int]:
    """What the leader of a session left behind, if `marker` is in its environment; nothing while the leader lives."""
    if started(leader):
        return []
    return [pid for pid in _pids() if _session(pid) == leader and _is_marked(pid, marker)]


def kill(pids: list[int]) -> None:
    """SIGKILL; those that have gone meanwhile are fine."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def wait(condition: Callable[[], bool], seconds: float) -> bool:
    """Whether the condition came true in time."""
    deadline = time.monotonic() + seconds
    while not (met := condition()) and time.monotonic() < deadline:
        time.sleep(0.05)
    return met


def _pids() -> list[int]:
    return [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]


def _read(pid: int, file: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{file}").read_bytes()
    except OSError:
        return b""


def _is_marked(pid: int, marker: str) -> bool:
    return marker.encode() in _read(pid, "environ").split(b"\0")


def _session(pid: int) -> int | None:
    fields = _read(pid, "stat").rpartition(b")")[2].split()
    return int(fields[3]) if fields and fields[0] != b"Z" else None


def _user_namespace(pid: int) -> str | None:
    try:
        return os.readlink(f"/proc/{pid}/ns/user")
    except OSError:
        return None


def _name(pid: int) -> str:
    words = _read(pid, "cmdline").decode(errors="replace").rstrip("\0").split("\0")
    program = Path(words[0]).name
    return words[words.index("-m") + 1] if program.startswith("python") and "-m" in words[:-1] else program
