"""Two ways in which the next run of a job can begin: from the checkpoint of the run before it, or afresh."""

from __future__ import annotations

from dataclasses import dataclass, replace

from trainyard.derive.sweep import SweepRun
from trainyard.settings.job import JobConfig


@dataclass(frozen=True, kw_only=True)
class Way:
    """A way to begin the next run."""

    at: str
    """Place where the run looks for a checkpoint: store/directory, or words where only the plan knows it."""
    directory: str | None
    """The value for checkpoints.directory of the entry; None where it stays as it is. Of a run of a sweep it keeps the
    names of the sweep."""
    counts: bool
    """The number of the run must be increased."""


@dataclass(frozen=True, kw_only=True)
class NextRun:
    """The next run of a job that saves checkpoints."""

    goes_on: Way
    afresh: Way


def next_run(job: JobConfig) -> NextRun | None:
    """The ways to begin the next run; None for a job that names no place for checkpoints."""
    saved = job.checkpoints
    if saved is None:
        return None
    here, later = job.in_run(saved.directory), replace(job, run=job.run + 1)
    then, written = later.in_run(saved.directory), job.in_run(_written(job))
    if then == here:  # the directory has no number
        other, place = f"{here}-{job.run + 1}", f"{saved.store}/{here}"
        if saved.when_changed == "afresh":
            place = f"the job's own directory below {place}"
        return NextRun(
            goes_on=Way(at=place, directory=None, counts=True),
            afresh=Way(
                at=f"{saved.store}/{other}", directory=f"{written}-{job.run + 1}", counts=False
            ),
        )
    return NextRun(
        goes_on=Way(at=f"{saved.store}/{here}", directory=written, counts=True),
        afresh=Way(at=f"{saved.store}/{then}", directory=None, counts=True),
    )


def _written(job: JobConfig) -> str:
    """The directory of a job's checkpoints as its entry has it."""
    own = job.checkpoints
    if isinstance(job.sweep, SweepRun) and job.sweep.values:
        own = job.sweep.written.checkpoints
    return own.directory if own else ""
