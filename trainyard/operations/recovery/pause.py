"""The pause of a repair that waits for AWS, between two looks."""

from __future__ import annotations

import time

from trainyard.operations.reach.pulumi import PulumiError


def pause(names: str, what: str, over: str, deadline: float) -> None:
    """Say what is waited for, and sleep until the next look. `what`: what happens to the objects of these names.
    PulumiError with `over` once the deadline, in seconds of time.monotonic, is past."""
    if time.monotonic() > deadline:
        raise PulumiError(over)
    print(f"waiting for {names}, which {what}", flush=True)
    time.sleep(5)
