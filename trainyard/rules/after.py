"""Errors about the order of jobs: a job after itself, or after none that there is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter

from trainyard.derive.sweep import sweep_entry
from trainyard.problems import At, InputError, write_one_of
from trainyard.settings.job import AnyJob


def after_errors(path: str, jobs: Mapping[str, AnyJob]) -> Iterator[InputError]:
    """Every error of `after`. `path`: that holds the jobs."""
    entries = dict.fromkeys(sweep_entry(job) or name for name, job in jobs.items())
    for name, job in jobs.items():
        at = At(f"{path}.{name}.after")
        for each in job.after:
            if each not in jobs:
                others = [other for other in entries if other not in (name, sweep_entry(job))]
                yield at.must(
                    "name jobs of this stack", got=each, fix=write_one_of(others, "delete it", each)
                )
    known = {name: [each for each in job.after if each in jobs] for name, job in jobs.items()}
    try:
        TopologicalSorter(known).prepare()
    except CycleError as error:
        circle: list[str] = error.args[1]
        yield At(f"{path}.{circle[0]}.after").must(
            "not lead back to the job itself",
            got=" after ".join(circle),
            fix=f"delete one of these jobs from `after`, such as {circle[1]}",
        )
