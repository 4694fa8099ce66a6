"""Signals on their way to an engine that runs."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def go_to(process: subprocess.Popen[bytes], notice: Callable[[str], None]) -> Iterator[list[int]]:
    """While an engine runs, signals to us go to it: the first as a request, the second as an
    end."""
    got: list[int] = []

    def pass_on(number: int, _: object) -> None:
        got.append(number)
        if len(got) == 1:
            notice("stopping: the engine finishes what it has begun (again to kill it)")
            process.send_signal(signal.SIGINT)
        else:
            notice("killing the engine")
            os.killpg(process.pid, signal.SIGKILL)

    before = {number: signal.signal(number, pass_on) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield got
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def cancel_with_parent() -> None:
    """In the engine's own process: it finishes what it has begun when we end (prctl, PR_SET_PDEATHSIG)."""
    ctypes.CDLL(None).prctl(1, signal.SIGINT)
