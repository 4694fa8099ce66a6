"""Builds the programs the rehearsal runs and links them into paths.BIN.

What there is to build: programs.py; which Go builds it: go.py. With TRAINYARD_GO_CACHE=keep the compiler's cache of
about 8 GB stays after everything is built.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from rehearsal import paths
from rehearsal.processes import heartbeat
from rehearsal.toolchain import go
from rehearsal.toolchain.build import LOOK_SECONDS, duration, side_by_side
from rehearsal.toolchain.go import Report, ToolchainError
from rehearsal.toolchain.programs import BY_NAME, NEEDED, Program

__all__ = ["BY_NAME", "DEFAULT", "NEEDED", "ToolchainError", "ensure"]

DEFAULT = tuple(name for name, program in BY_NAME.items() if not program.lazy)


def ensure(programs: Iterable[str] = DEFAULT, report: Report = print) -> None:
    """Have these programs in paths.BIN, building what is missing. After an interruption the next call goes on."""
    wanted = [BY_NAME[name] for name in programs]
    with locked(report, lambda: all(program.built.exists() for program in wanted)):
        if missing := [program for program in wanted if not program.built.exists()]:
            _build_all(missing, report)
    for program in wanted:
        link(paths.BIN / program.name, program.built)


def link(name: Path, target: Path) -> None:
    """Make `name` a link to `target` in one step, whatever it was before."""
    if name.is_symlink() and name.readlink() == target:
        return
    name.parent.mkdir(parents=True, exist_ok=True)
    fresh = name.with_name(f".{name.name}.{os.getpid()}")
    fresh.symlink_to(target)
    fresh.replace(name)


@contextmanager
def locked(report: Report, built: Callable[[], bool]) -> Iterator[None]:
    """Only one process builds; the others wait and say so, until it has `built` what they need."""
    paths.CACHE.mkdir(parents=True, exist_ok=True)
    with (paths.CACHE / "toolchain.lock").open("w") as file:
        with heartbeat(lambda s: report(f"waits for the build of another process … {duration(s)}")):
            while not built() and not _taken(file):
                time.sleep(LOOK_SECONDS)
        yield


def _taken(file: TextIO) -> bool:
    with suppress(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


def _build_all(missing: list[Program], report: Report) -> None:
    names = ", ".join(program.name for program in missing)
    seconds = sum(program.seconds for program in missing)
    report(f"building once from pinned sources: {names}; about {duration(seconds)} on two cores")
    side_by_side(missing, report)
    if os.environ.get("TRAINYARD_GO_CACHE") != "keep":
        report("removing the compiler's cache (TRAINYARD_GO_CACHE=keep keeps it)")
        clean = [go.executable(report), "clean", "-cache"]
        subprocess.run(clean, env=go.environment(), check=False)
