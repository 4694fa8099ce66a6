"""Faults of a machine, on PYTHONPATH. STALL_AT is a slow disk: flushing the file that it names takes a
minute, once: time for a kill. SLOW_NODE is the host name of a slow node: it multiplies matrices eight
times, so that it is slow on any machine, however busy. STEP_SECONDS makes each step as long as one of a larger
model: time for nodes to leave and to come back."""

import os
import time
from importlib import import_module
from pathlib import Path
from typing import Any

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

if os.environ.get("SLOW_NODE", "-") == os.environ.get("HOSTNAME"):
    tensor: Any = import_module("torch").Tensor
    once = tensor.__matmul__

    def eight_times(a: Any, b: Any) -> Any:
        for _ in range(7):
            once(a, b)
        return once(a, b)

    tensor.__matmul__ = eight_times

if "STEP_SECONDS" in os.environ:
    optimizers: Any = import_module("torch.optim.optimizer")
    optimizers.register_optimizer_step_post_hook(
        lambda *_: time.sleep(float(os.environ["STEP_SECONDS"]))
    )
