"""Two ways in which the next run of a job can begin: from the checkpoint of the run before it, or afresh."""

from __future__ import annotations

from dataclasses import dataclass, replace

from trainyard.settings.job import JobConfig


@dataclass(frozen=True, kw_only=True)
class Way:
    """A way to begin the next run."""

    at: str
    """Place where the run looks for a checkpoint: store/directory, or words where only the plan knows it."""
    directory: str | None
    """The value for checkpoints.directory; None where it stays as it is."""
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
    then = later.in_run(saved.directory)
    if then == here:  # the directory has no number
        other, place = f"{here}-{job.run + 1}", f"{saved.store}/{here}"
        if saved.when_changed == "afresh":
            place = f"the job's own directory below {place}"
        return NextRun(
            goes_on=Way(at=place, directory=None, counts=True),
            afresh=Way(at=f"{saved.store}/{other}", directory=other, counts=False),
        )
    return NextRun(
        goes_on=Way(at=f"{saved.store}/{here}", directory=here, counts=True),
        afresh=Way(at=f"{saved.store}/{then}", directory=None, counts=True),
    )
