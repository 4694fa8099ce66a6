"""Pace at which a program of many resources makes them.

The SDK sends resource requests only when the program yields, and keeps all of them until the engine
answers. Declaring 100 teams without a pause takes 70 MiB more while the engine idles, so the program
yields after each team.
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
