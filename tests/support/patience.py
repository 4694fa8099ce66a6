"""One way to wait for what must come."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from rehearsal import processes

T = TypeVar("T")
PATIENCE = 300
"""Seconds. A sound test never waits as long, however slow its machine is."""


def until(
    seen: Callable[[], T],
    told: Callable[[], str] = str,
    *,
    every: float = 0.1,
    seconds: float = PATIENCE,
) -> T:
    """Wait until `seen` returns something true, and return it. `seconds`: other than PATIENCE, where a
    part below may take longer.

    Raises AssertionError with what `told` says where the time is up.
    """
    word = processes.wait(seen, seconds, every)
    assert word, f"{seconds:.0f} s have passed. {told()}"
    return word
