"""Builds the programs the rehearsal runs and links them into paths.BIN.

`ensure()` is all a caller needs; what there is to build is in programs.py, which Go builds it in
go.py. Set TRAINYARD_GO_CACHE=keep to keep the compiler's cache (about 8 GB) after everything is
built.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rehearsal import paths
from rehearsal.processes import heartbeat
from rehearsal.toolchain import go
from rehearsal.toolchain.build import duration, side_by_side
from rehearsal.toolchain.go import Report, ToolchainError
from rehearsal.toolchain.programs import BY_NAME, NEEDED, Program

__all__ = ["BY_NAME", "DEFAULT", "NEEDED", "ToolchainError", "ensure"]

DEFAULT = tuple(name for name, program in BY_NAME.items() if not program.lazy)


def ensure(programs: Iterable[str] = DEFAULT, report: Report = print) -> None:
    """Have these programs in paths.BIN, building what is missing; at once where nothing is.

    May be interrupted at any time: the next call goes on where this one stopped.
    """
    wanted = [BY_NAME[name] for name in programs]
    if any(not program.built.exists() for program in wanted):
        with locked(report):
            _build_all([program for program in wanted if not program.built.exists()], report)
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
def locked(report: Report) -> Iterator[None]:
    """Only one process builds; the others wait and say so."""
    paths.CACHE.mkdir(parents=True, exist_ok=True)
    with (paths.CACHE / "toolchain.lock").open("w") as file:
        with heartbeat(
            lambda seconds: report(
                f"waiting for another build of the toolchain … {duration(seconds)}"
            )
        ):
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _build_all(missing: list[Program], report: Report) -> None:
    if not missing:  # another process built them, while this one waited
        return
    names = ", ".join(program.name for program in missing)
    seconds = sum(program.seconds for program in missing)
    report(f"building once from pinned sources: {names}; about {duration(seconds)} on two cores")
    side_by_side(missing, report)
    if os.environ.get("TRAINYARD_GO_CACHE") != "keep":
        report("removing the compiler's cache (TRAINYARD_GO_CACHE=keep keeps it)")
        clean = [go.executable(report), "clean", "-cache"]
        subprocess.run(clean, env=go.environment(), check=False)
