"""Errors about the order of jobs: a job after itself, after none that there is, or after one that nobody can see
the end of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter

from trainyard.problems import At, InputError, write_one_of
from trainyard.settings.job import AnyJob, JobConfig


def after_errors(path: str, jobs: Mapping[str, AnyJob]) -> Iterator[InputError]:
    """Every error of `after`. `path`: that holds the jobs."""
    for name, job in jobs.items():
        at = At(f"{path}.{name}.after")
        for each in job.after:
            if each not in jobs:
                others = [other for other in jobs if other != name]
                yield at.must(
                    "name jobs of this stack", got=each, fix=write_one_of(others, "delete it")
                )
            elif _goes(jobs[each]):
                yield at.must(
                    "name jobs that stay when they have ended: one that is gone is not seen to be complete",
                    got=each,
                    fix=f"delete keep_finished_minutes of {each}",
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


def _goes(job: AnyJob) -> bool:
    """True for a PyTorchJob that is deleted some time after its end."""
    operator = job.pytorch_job if isinstance(job, JobConfig) else None
    return operator is not None and operator.keep_finished_minutes is not None
