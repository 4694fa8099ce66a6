"""How fast a program of many resources makes them.

The SDK keeps all that it has asked the engine for until the engine answers, and asks for nothing
while a program runs: a hundred teams at once take 70 MiB more than one after the other, and the
engine has nothing to do meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib

import pulumi

PATIENCE = 0.2
"""Seconds. The engine answers at once for what exists. What AWS still makes is not waited for: teams are
made side by side."""


async def answered(made: pulumi.Resource) -> None:
    """Wait until the engine has answered for a resource, or long enough."""
    told = asyncio.Event()
    made.urn.apply(lambda _: told.set())
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(told.wait(), PATIENCE)
