"""Finds processes by what cannot lie after a kill -9: pid with start time, and the user namespace
they live in."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
HEARTBEAT_SECONDS = 8.0
"""No wait is silent for longer."""


@dataclass(frozen=True, kw_only=True)
class Process:
    """One process as `status` shows it."""

    pid: int
    name: str
    """The Python module or the program: rehearsal.aws, kube-apiserver."""
    rss_mib: float


def look(pid: int) -> Process:
    """Description of a process; empty values where it has just gone."""
    words = command(pid)
    program = Path(words[0]).name
    name = (
        words[words.index("-m") + 1]
        if program.startswith("python") and "-m" in words[:-1]
        else program
    )
    resident = (_read(pid, "statm").split() or [b"0", b"0"])[1]
    return Process(pid=pid, name=name, rss_mib=int(resident) * os.sysconf("SC_PAGE_SIZE") / 2**20)


def command(pid: int) -> list[str]:
    """The words of its command line; one empty word where it has just gone."""
    return _read(pid, "cmdline").decode(errors="replace").rstrip("\0").split("\0")


def started(pid: int) -> str | None:
    """Clock ticks since boot: with the pid it names one process for good. None where it is gone, or
    only a zombie."""
    state, *fields = _read(pid, "stat").rpartition(b")")[2].split() or [b"Z"]
    return None if state == b"Z" else fields[18].decode()


def recorded(file: Path) -> int | None:
    """The process whose pid and start time a file has, if it still lives."""
    words = file.read_text().split() if file.exists() else []
    return int(words[0]) if len(words) == 2 and started(int(words[0])) == words[1] else None


def children(pid: int) -> list[int]:
    """Child processes of a process with one thread."""
    return [int(word) for word in _read(pid, f"task/{pid}/children").split()]


def processes_in_namespace(pid: int) -> list[int]:
    """Everything in the user namespace of a process that lives."""
    namespace = _user_namespace(pid)
    return [
        other
        for other in _pids()
        if namespace and _user_namespace(other) == namespace and started(other)
    ]


def marked(marker: str) -> list[int]:
    """Everything with `marker` in its environment."""
    return [pid for pid in _pids() if marker.encode() in _read(pid, "environ").split(b"\0")]


def in_session(leader: int, marker: str) -> list[int]:
    """Processes that the leader of a session left behind, if `marker` is in their environment; none
    while the leader lives."""
    if started(leader):
        return []
    return [pid for pid in marked(marker) if started(pid) and os.getsid(pid) == leader]


def kill(pids: list[int]) -> None:
    """SIGKILL; those that have gone meanwhile are fine."""
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def wait(condition: Callable[[], T], seconds: float, every: float = 0.05) -> T:
    """Value of the condition once it is true; its last value where the time is up."""
    deadline = time.monotonic() + seconds
    while not (met := condition()) and time.monotonic() < deadline:
        time.sleep(every)
    return met


@contextmanager
def heartbeat(say: Callable[[float], None]) -> Iterator[None]:
    """While the block runs, say how many seconds it has taken so far."""
    began, done = time.monotonic(), threading.Event()

    def beat() -> None:
        while not done.wait(HEARTBEAT_SECONDS):
            say(time.monotonic() - began)

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _pids() -> list[int]:
    return [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]


def _read(pid: int, file: str) -> bytes:
    try:
        return Path(f"/proc/{pid}/{file}").read_bytes()
    except OSError:
        return b""


def _user_namespace(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/ns/user")
    except OSError:
        return ""
