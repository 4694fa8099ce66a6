"""A run begins when those are complete that it comes after; where one of them fails, it does not begin. A run of a
sweep begins when fewer than `at_most` of those before it go on, however those end.

The engine waits, by a hook before the run is made. An `up` that is killed starts nothing more, and the next one
goes on: it finds complete what is complete. No GPU of a run is asked for before it is made.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pulumi

from components.jobs import wait_for_job
from trainyard.catalog.job_kinds import SUCCEEDED, outcome
from trainyard.plans.jobs import JobPlan
from trainyard.problems import few

_THREADS = ThreadPoolExecutor(64, thread_name_prefix="after")
"""Threads for these waits alone, which can be days."""


class NotBegun(RuntimeError):
    """A run does not begin because one before it is not complete; the message says which, and why."""


def hooks(
    key: str, plans: Mapping[str, JobPlan], kubeconfig: pulumi.Output[str]
) -> list[pulumi.ResourceHook]:
    """The hooks that hold a run until it may begin. `plans`: of all jobs, by key."""
    plan, found = plans[key], []
    if plan.after:
        found.append(after(key, [plans[each] for each in plan.after], kubeconfig))
    if plan.sweep and plan.sweep.earlier:
        found.append(turn(key, plan, [plans[each] for each in plan.sweep.earlier], kubeconfig))
    return found


def made_before(plan: JobPlan) -> Sequence[str]:
    """Keys of the runs that must be made, or replaced, before this one is looked at."""
    sweep = plan.sweep
    # Those before them in the sweep are made before them.
    return [*plan.after, *(sweep.earlier[-(sweep.at_most or 0) :] if sweep else ())]


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


def turn(
    name: str, plan: JobPlan, earlier: Sequence[JobPlan], kubeconfig: pulumi.Output[str]
) -> pulumi.ResourceHook:
    """A hook that is over when fewer runs of the sweep go on than may. A preview waits for nothing."""
    most, names = (plan.sweep and plan.sweep.at_most) or 1, [each.name for each in earlier]

    async def wait(_: pulumi.ResourceHookArgs) -> None:
        config = await kubeconfig.future()
        if config:
            pulumi.info(f"{name} begins {_turn_in_words(names, most)}")
            look = partial(_wait_for_turn, config, plan, names, most)
            await asyncio.get_running_loop().run_in_executor(_THREADS, look)

    return pulumi.ResourceHook(f"{name}-turn", wait)


def _turn_in_words(earlier: Sequence[str], most: int) -> str:
    """The moment at which fewer than `most` of the earlier runs go on."""
    names = few(earlier)
    if most > 1 and len(earlier) == most:
        return f"after one of {names} has ended"
    if most > 1:
        return f"after all but {most - 1} of the {len(earlier)} runs before it in its sweep have ended: {names}"
    return f"after {names} {'has' if len(earlier) == 1 else 'have'} ended"


def _wait_for_turn(kubeconfig: str, plan: JobPlan, earlier: Sequence[str], most: int) -> None:
    """Return when fewer than `most` of the earlier runs go on."""
    with wait_for_job.kubectl_of(kubeconfig, plan.namespace) as kubectl:
        going = [*earlier]
        while len(going := _going(kubectl, plan.kind, going, most)) >= most:
            time.sleep(wait_for_job.POLL_SECONDS)


def _going(kubectl: wait_for_job.Kubectl, kind: str, names: Sequence[str], most: int) -> list[str]:
    """The names without those of runs that have ended or are gone. Only as many are asked for as are needed to
    know that `most` go on; one of which the API server says nothing does."""
    found: list[str] = []
    for number, name in enumerate(names):
        if len(found) == most:
            return [*found, *names[number:]]
        answer = wait_for_job.jobs_named(kubectl, kind, name)
        if answer is None or not all(map(outcome, answer)):
            found.append(name)
    return found


def _complete(name: str, kubeconfig: str, plan: JobPlan) -> None:
    """Return when a run is complete. Raises NotBegun where it fails or is gone."""
    why = (
        f"{plan.kind} {plan.namespace}/{plan.name} is not on the cluster: it was stopped or deleted"
    )
    try:
        end = wait_for_job.wait(
            kubeconfig, plan.kind, plan.namespace, plan.name, until="complete", minutes=math.inf
        )
    except wait_for_job.RunFailed as failure:
        end, why = "", str(failure)
    if end not in SUCCEEDED:
        raise NotBegun(f"{name} does not begin, because it comes after this: {why}")
