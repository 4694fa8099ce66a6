"""Fresh processes, taken in turns, so that a busy machine is busy for all of them."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent
START_AND_MEASURE = """
import os, sys, time
quiet = [(os.POSIX_SPAWN_OPEN, of, os.devnull, os.O_WRONLY, 0) for of in (1, 2)]
began = time.perf_counter()
child = os.posix_spawn(sys.argv[1], sys.argv[1:], os.environ, file_actions=quiet)
_, status, used = os.wait4(child, 0)
seconds = time.perf_counter() - began
print(os.waitstatus_to_exitcode(status), seconds, used.ru_utime + used.ru_stime, used.ru_maxrss)
"""
"""A program of 9 MiB that starts another one. Linux counts the memory of who starts a process as the
process's own (`setmax_mm_hiwater_rss` in fs/exec.c), and a benchmark is larger than `trainyard check`."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """Time and memory of one process."""

    seconds: float
    """By the wall."""
    cpu_seconds: float
    rss_mib: float
    """At its largest."""


def in_turns(commands: Mapping[str, Sequence[str]], rounds: int = 5) -> dict[str, Run]:
    """Run every Python command `rounds` times, one of each after the other; medians by name. Each
    has run before: Python keeps what it has compiled, of the SDK since it was installed, of a
    checkout since its first run."""
    runs: dict[str, list[Run]] = {name: [] for name in commands}
    for arguments in commands.values():
        _run(arguments)
    for _ in range(rounds):
        for name, arguments in commands.items():
            runs[name].append(_run(arguments))
    return {
        name: Run(
            seconds=statistics.median(r.seconds for r in taken),
            cpu_seconds=statistics.median(r.cpu_seconds for r in taken),
            rss_mib=statistics.median(r.rss_mib for r in taken),
        )
        for name, taken in runs.items()
    }


def table(runs: Mapping[str, Run], base: str) -> str:
    """Medians as text, with their ratio to one of them."""
    lines = [
        f"  {'':24}{'wall s':>8}{'cpu s':>8}{'RSS MiB':>9}{'x wall':>8}{'x cpu':>7}{'x RSS':>7}"
    ]
    for name, run in runs.items():
        lines.append(
            f"  {name:24}{run.seconds:8.2f}{run.cpu_seconds:8.2f}{run.rss_mib:9.0f}"
            f"{run.seconds / runs[base].seconds:8.2f}"
            f"{run.cpu_seconds / runs[base].cpu_seconds:7.2f}{run.rss_mib / runs[base].rss_mib:7.2f}"
        )
    return "\n".join(lines)


def _run(arguments: Sequence[str]) -> Run:
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    starter = [sys.executable, "-I", "-S", "-c", START_AND_MEASURE]
    told = subprocess.run(
        [*starter, sys.executable, "-W", "ignore", *arguments],
        cwd=CHECKOUT,
        env=kept,
        stdout=subprocess.PIPE,
        check=True,
    )
    code, seconds, cpu_seconds, rss_kib = map(float, told.stdout.split())
    if code:
        raise RuntimeError(f"{' '.join(arguments)} ended with {code:.0f}")
    return Run(seconds=seconds, cpu_seconds=cpu_seconds, rss_mib=rss_kib / 1024)
