"""A run begins when those are complete that it comes after; where one of them fails, it does not begin. A run of a
sweep begins when fewer than `at_most` of the others go on, however those end.

The engine waits, by a hook before the run is made. An `up` that is killed starts nothing more, and the next one
goes on: it finds complete what is complete. No GPU of a run is asked for before it is made.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from threading import Lock
from typing import Any

import pulumi

from components.jobs import wait_for_job
from components.jobs.unanswered import Answers, NotAnswered
from trainyard.catalog.job_kinds import SUCCEEDED, outcome
from trainyard.plans.jobs import RUN, JobPlan, SweepPlan, entry_of_sweep
from trainyard.problems import few

_THREADS = ThreadPoolExecutor(64, thread_name_prefix="after")
"""Threads for these waits alone, which can be days."""
MADE_SECONDS = 60.0
"""Longer than the engine takes to make a run whose hooks are over."""
_LOCK = Lock()
_BEGUN: dict[tuple[str, str], float] = {}
"""Namespace and name of a run of a sweep whose turn it was → when. It may not be in the cluster yet while another one
looks."""


class NotBegun(RuntimeError):
    """A run does not begin because one before it is not complete; the message says which, and why."""


def hooks(
    key: str, plans: Mapping[str, JobPlan], kubeconfig: pulumi.Output[str]
) -> list[pulumi.ResourceHook]:
    """The hooks that hold a run until it may begin. `plans`: of all jobs, by key."""
    plan, found = plans[key], []
    if plan.after:
        found.append(after(key, [plans[each] for each in plan.after], kubeconfig))
    if plan.sweep and plan.sweep.others:
        found.append(turn(key, plans, plan.sweep, kubeconfig))
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
    key: str, plans: Mapping[str, JobPlan], sweep: SweepPlan, kubeconfig: pulumi.Output[str]
) -> pulumi.ResourceHook:
    """A hook that is over when fewer runs of the sweep go on than may. A preview waits for nothing."""
    earlier = [plans[each].name for each in sweep.earlier]
    others = {plans[each].name: plans[each].run for each in sweep.others}
    most = sweep.at_most or 1

    async def wait(_: pulumi.ResourceHookArgs) -> None:
        config = await kubeconfig.future()
        if config:
            if earlier:
                pulumi.info(f"{key} begins {_turn_in_words(earlier, most)}")
            look = partial(_wait_for_turn, config, plans[key], others, most)
            await asyncio.get_running_loop().run_in_executor(_THREADS, look)

    return pulumi.ResourceHook(f"{key}-turn", wait)


def _turn_in_words(earlier: Sequence[str], most: int) -> str:
    """The moment at which fewer than `most` of the earlier runs go on."""
    names = few(earlier)
    if most > 1 and len(earlier) == most:
        return f"after one of {names} has ended"
    if most > 1:
        return f"after all but {most - 1} of the {len(earlier)} runs before it in its sweep have ended: {names}"
    return f"after {names} {'has' if len(earlier) == 1 else 'have'} ended"


def _wait_for_turn(kubeconfig: str, plan: JobPlan, others: Mapping[str, str], most: int) -> None:
    """Return when fewer than `most` of the other runs go on. `others`: name → identity of each. Raises NotBegun
    where nobody has answered for long."""
    with wait_for_job.kubectl_of(kubeconfig, plan.namespace) as kubectl:
        why = partial(wait_for_job.silence, kubectl, plan.kind.lower())
        answers = Answers(f"the turn of {plan.name}", why, pulumi.info, ends=True)
        while not (begins := _may_begin(kubectl, plan, others, most)):
            try:
                answers.look(answered=begins is not None)
            except NotAnswered as failure:
                raise NotBegun(f"{plan.name} does not begin: {failure}") from None
            time.sleep(wait_for_job.POLL_SECONDS)


def _may_begin(
    kubectl: wait_for_job.Kubectl, plan: JobPlan, others: Mapping[str, str], most: int
) -> bool | None:
    """True where fewer than `most` others go on, and the run begins now; None where nobody answers.

    A run that this update replaces goes on for nobody: it has another identity. One that this update deletes goes on
    until its end, which is behind this wait.
    """
    found = wait_for_job.listed(kubectl, plan.kind.lower())
    if found is None:
        return None
    there = {
        each["metadata"]["name"]: not outcome(each)
        for each in found
        if others.get(each["metadata"]["name"])
        == (each["metadata"].get("annotations") or {}).get(RUN, "")
    }
    there |= dict.fromkeys(_left(found, plan, others), True)
    now = time.monotonic()
    with _LOCK:
        late = now - MADE_SECONDS
        begun = {name for name in others if _BEGUN.get((plan.namespace, name), late) > late}
        going = {name for name, goes in there.items() if goes} | (begun - {*there})
        if len(going) < most:
            _BEGUN[plan.namespace, plan.name] = now
        return len(going) < most


def _left(found: Sequence[Any], plan: JobPlan, others: Mapping[str, str]) -> list[str]:
    """Runs of the sweep that go on and that the stack file does not have any more."""
    left = [
        each["metadata"]["name"]
        for each in found
        if plan.sweep and entry_of_sweep(each) == plan.sweep.entry and not outcome(each)
    ]
    gone = sorted({*left} - {plan.name, *others})
    if gone:
        _say_once(
            "the stack file does not have these runs of the sweep any more, and `at_most` counts them while they go on:"
            f" {few(gone)}. `trainyard stop {gone[0]}` ends the first one"
        )
    return gone


@cache
def _say_once(line: str) -> None:
    pulumi.info(line)


def _complete(name: str, kubeconfig: str, plan: JobPlan) -> None:
    """Return when a run is complete. Raises NotBegun where it fails or is gone, or nobody has answered for long."""
    why = (
        f"{plan.kind} {plan.namespace}/{plan.name} is not on the cluster: it was stopped or deleted"
    )
    try:
        end = wait_for_job.wait(
            kubeconfig, plan.kind, plan.namespace, plan.name, until="complete", minutes=math.inf
        )
    except wait_for_job.RunFailed as failure:
        end, why = "", str(failure)
    except NotAnswered as failure:
        end, why = "", f"{plan.kind} {plan.namespace}/{plan.name}, and {failure}"
    if end not in SUCCEEDED:
        raise NotBegun(f"{name} does not begin, because it comes after this: {why}")
