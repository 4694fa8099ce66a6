"""The order of the jobs of a stack: `after` of an entry names those that must be complete before it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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


def earlier(name: str, jobs: Mapping[str, AnyJob]) -> set[str]:
    """Jobs that must be complete before a job, through any number of others."""
    found: set[str] = set()
    ahead = [name]
    while ahead:
        job = jobs.get(ahead.pop())
        new = set(job.after) - found if job else set[str]()
        found |= new
        ahead += new
    return found


def side_by_side(wanted: Mapping[str, int], jobs: Mapping[str, AnyJob]) -> dict[str, int]:
    """The neediest jobs that can run at the same time: none of them comes after another one. Jobs that
    come after the same ones and before the same ones are one group, as the runs of a sweep. `wanted`: job → its need.
    Each group is asked once, and the neediest that go with it are added, so a greater sum may be overlooked, and none
    is said that cannot be."""
    before = {name: frozenset(earlier(name, jobs)) for name in wanted}
    ranked = sorted(_alike(before), key=lambda names: -_need(names, wanted))
    best: list[str] = []
    for first in ranked:
        chosen = [first]
        for other in ranked:
            if other is not first and not any(_in_order(other, each, before) for each in chosen):
                chosen.append(other)
        best = max(
            best, [name for group in chosen for name in group], key=lambda e: _need(e, wanted)
        )
    return {name: need for name, need in wanted.items() if name in {*best}}


def _need(names: Sequence[str], wanted: Mapping[str, int]) -> int:
    return sum(wanted[name] for name in names)


def _alike(before: Mapping[str, frozenset[str]]) -> list[list[str]]:
    """Groups of jobs that come after the same ones and before the same ones."""
    then: dict[str, set[str]] = {}
    for name, those in before.items():
        for each in those:
            then.setdefault(each, set()).add(name)
    groups: dict[tuple[frozenset[str], frozenset[str]], list[str]] = {}
    for name, those in before.items():
        groups.setdefault((those, frozenset(then.get(name, ()))), []).append(name)
    return [*groups.values()]


def _in_order(
    one: Sequence[str], other: Sequence[str], before: Mapping[str, frozenset[str]]
) -> bool:
    """True where one of two groups comes after the other."""
    return one[0] in before[other[0]] or other[0] in before[one[0]]


def diagram(plans: Mapping[str, JobPlan]) -> list[str]:
    """A diagram of the order: each job once, below the first of those that it comes after; a sweep is one line.
    Empty where none comes after another."""
    drawn = _Drawn(plans)
    first = [entry for entry in drawn.after if not drawn.after[entry] and drawn.below(entry)]
    lines = [line for entry in first for line in drawn.lines(entry, 0)]
    return ["order", *(f"  {line}" for line in lines)] if lines else []


class _Drawn:
    """The entries of the stack file in the diagram."""

    def __init__(self, plans: Mapping[str, JobPlan]) -> None:
        entries = {name: plan.sweep.entry if plan.sweep else name for name, plan in plans.items()}
        self._plans: dict[str, list[JobPlan]] = {}
        for name, plan in plans.items():
            self._plans.setdefault(entries[name], []).append(plan)
        self.after = {
            entry: list(dict.fromkeys(entries[name] for name in runs[0].after))
            for entry, runs in self._plans.items()
        }
        """Entry → those that it comes after."""

    def lines(self, entry: str, depth: int) -> Iterator[str]:
        """The line of an entry, and of all that is drawn below it."""
        others = self.after[entry][1:]
        also = f" (also after {', '.join(others)})" if others else ""
        indent = f"{'   ' * (depth - 1)}{'└─ ' if depth else ''}"
        yield f"{indent}{entry}{self._runs(entry)}{also}"
        for each in self.below(entry):
            yield from self.lines(each, depth + 1)

    def below(self, entry: str) -> list[str]:
        """The entries that are drawn below one."""
        return [other for other, before in self.after.items() if before[:1] == [entry]]

    def _runs(self, entry: str) -> str:
        """Words about the runs of a sweep; empty for another job."""
        runs = self._plans[entry]
        if (sweep := runs[0].sweep) is None:
            return ""
        at_once = "all" if sweep.at_most is None else f"at most {sweep.at_most}"
        return f": {len(runs)} runs, {at_once} at once"
