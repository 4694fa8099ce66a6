"""A run begins when those are complete that it comes after; where one of them fails, it does not begin.

The engine waits, by a hook before the run is made. An `up` that is killed starts nothing more, and the next one
goes on: it finds complete what is complete. No GPU of a run is asked for before it is made.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pulumi

from components.jobs import wait_for_job
from trainyard.plans.jobs import JobPlan

_THREADS = ThreadPoolExecutor(64, thread_name_prefix="after")
"""Threads for these waits alone, which can be days."""


class NotBegun(RuntimeError):
    """A run does not begin because one before it is not complete; the message says which, and why."""


def after(
    name: str, before: Sequence[JobPlan], kubeconfig: pulumi.Output[str]
) -> pulumi.ResourceHook:
    """A hook that is over when all of `before` are complete. A preview waits for nothing."""

    async def wait(_: pulumi.ResourceHookArgs) -> None:
        config = await kubeconfig.future()
        if config:
            pulumi.info(f"{name} begins when {', '.join(each.name for each in before)} is complete")
            loop = asyncio.get_running_loop()
            looks = [partial(_complete, name, config, each) for each in before]
            await asyncio.gather(*(loop.run_in_executor(_THREADS, look) for look in looks))

    return pulumi.ResourceHook(f"{name}-after", wait)


def _complete(name: str, kubeconfig: str, plan: JobPlan) -> None:
    """Return when a run is complete. Raises NotBegun where it fails or is gone."""
    try:
        wait_for_job.wait(
            kubeconfig, plan.kind, plan.namespace, plan.name, until="complete", minutes=math.inf
        )
    except wait_for_job.RunFailed as failure:
        raise NotBegun(f"{name} does not begin, because it comes after this: {failure}") from None
