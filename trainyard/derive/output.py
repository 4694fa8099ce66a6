"""The variable by which the lines of a Python program reach the log of its pod when it prints them."""

from __future__ import annotations

from trainyard.settings.environment import OwnRuntimeConfig
from trainyard.settings.job import JobConfig

VARIABLE = "PYTHONUNBUFFERED"
"""Python keeps up to 8 KiB of what it prints into a pipe, which the output of a container is, and loses them where it
is killed (Python 3.13, Command line and environment; io, DEFAULT_BUFFER_SIZE). A rank that prints little then looks
like one that hangs. Of images AWS's set the variable, and pytorch/pytorch (its Dockerfile) does not."""


def unbuffered(job: JobConfig, own: OwnRuntimeConfig | None) -> dict[str, str]:
    """The variable; what the job or its own runtime says wins."""
    said = {*job.env, *job.secrets, *(own.env if own else ())}
    return {} if VARIABLE in said else {VARIABLE: "1"}
