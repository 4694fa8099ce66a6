"""The order of the jobs of a stack: `after` of an entry names those that must be complete before it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from graphlib import TopologicalSorter

from trainyard.plans.identity import digest
from trainyard.plans.jobs import JobPlan
from trainyard.settings.job import AnyJob


def chained(plans: Mapping[str, JobPlan], jobs: Mapping[str, AnyJob]) -> dict[str, JobPlan]:
    """The plans of jobs with what they come after, which stand before them. A run is another one where one
    before it is: what it was made from is no longer there. The identity of a job without `after` stays."""
    found: dict[str, JobPlan] = {}
    for name in TopologicalSorter({name: job.after for name, job in jobs.items()}).static_order():
        found[name] = plans[name]
        if after := tuple(dict.fromkeys(jobs[name].after)):
            own, _, count = plans[name].run.rpartition("-")
            asked = digest([own, sorted(found[each].run for each in after)])[:12]
            found[name] = replace(plans[name], after=after, run=f"{asked}-{count}")
    return found


def diagram(plans: Mapping[str, JobPlan]) -> list[str]:
    """A diagram of the order: each job once, below the first of those that it comes after. Empty where none
    comes after another."""
    first = [name for name, plan in plans.items() if not plan.after and _next(name, plans)]
    lines = [line for name in first for line in _drawn(name, plans, 0)]
    return ["order", *(f"  {line}" for line in lines)] if lines else []


def _drawn(name: str, plans: Mapping[str, JobPlan], depth: int) -> Iterator[str]:
    others = plans[name].after[1:]
    also = f" (also after {', '.join(others)})" if others else ""
    yield f"{'   ' * (depth - 1)}{'└─ ' if depth else ''}{name}{also}"
    for each in _next(name, plans):
        yield from _drawn(each, plans, depth + 1)


def _next(name: str, plans: Mapping[str, JobPlan]) -> list[str]:
    """The jobs that are drawn below one."""
    return [other for other, plan in plans.items() if plan.after[:1] == (name,)]
