"""On PYTHONPATH it makes a slow disk: flushing the file that STALL_AT names takes a minute, once:
time for a kill."""

import os
import time
from pathlib import Path

flush = os.fsync


def slow(descriptor: int) -> None:
    file = Path(os.readlink(f"/proc/self/fd/{descriptor}"))
    marker = file.with_name("stalled")
    if file.name == f"{os.environ['STALL_AT']}.new" and not marker.exists():
        marker.touch()
        time.sleep(60)
    flush(descriptor)


if "STALL_AT" in os.environ:
    os.fsync = slow
