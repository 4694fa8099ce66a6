"""`trainyard again JOB`: increase `run` of a job in the stack file, so that the next update starts the same
job again.

Only that number changes in the file; comments and layout stay.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from trainyard.derive.next_run import next_run
from trainyard.derive.sweep import sweep_entry, unfolded
from trainyard.objects.jobs.schedule import starts_now
from trainyard.operations.reach.consent import ask
from trainyard.operations.reach.stack_lines import Change, job_entry, scalar_of_job, values_of_jobs
from trainyard.operations.reach.target import forget_command, update_command
from trainyard.problems import by_option
from trainyard.settings.environment import EnvironmentConfig, TeamConfig
from trainyard.settings.job import JobConfig, ManifestConfig
from trainyard.settings.reading.reader import read_file

NOTHING = "Nothing was changed."


class CannotCount(RuntimeError):
    """The stack file does not let this program increase the number; the message says what to
    write."""


def main(options: argparse.Namespace) -> int:
    """Return 0 where the number was increased, 1 where it was not, 2 where there is no terminal to
    ask."""
    file = Path(f"Pulumi.{options.stack}.yaml")
    try:
        job = job_of(options.stack, options.job, live=options.live)
        number = job.run
        text = file.read_text()
        change = counted_up(text, options.job, number + 1)
        changed = change.applied(text)
        runs = values_of_jobs(text, "run", 1)
        if values_of_jobs(changed, "run", 1) != {**runs, options.job: number + 1}:
            raise CannotCount(
                f"{file}:{change.line} is a line of other jobs, too (an anchor of YAML). Fix: write"
                f" run: {number + 1} into lines that only {options.job} has, for example behind"
                " `<<: *<anchor>`"
            )
    except (CannotCount, FileNotFoundError) as error:
        print(f"{error}\n{NOTHING}", file=sys.stderr)
        return 1
    print(f"{file}:{change.line}: {change.text.strip()}, it is {number} now")
    for line in _beginnings(job):
        print(line)
    if code := ask("Change the file?", yes=options.yes, otherwise=NOTHING):
        return code
    file.write_text(changed)
    print(f"next: {update_command(options.stack, options.live)}")
    return 0


def _beginnings(job: JobConfig | ManifestConfig) -> Iterator[str]:
    """Lines about the checkpoint with which the next run begins, and how it begins otherwise."""
    after = next_run(job) if isinstance(job, JobConfig) else None
    if after is None:
        return
    number = job.run + 1
    if after.goes_on.directory is None:
        yield (
            f"run {number} goes on from the checkpoint in {after.goes_on.at}, and ends at once where the"
            " run before it has finished"
        )
        yield (
            "to begin afresh instead: write another checkpoints.directory, such as"
            f" {after.afresh.directory}"
        )
        return
    yield f"run {number} begins afresh in {after.afresh.at}"
    yield (
        f"to go on from the checkpoint in {after.goes_on.at} instead: write checkpoints.directory:"
        f" {after.goes_on.directory}"
    )


def sweep_with(stack: str, name: str) -> str | None:
    """Entry of the stack file whose sweep has a run of this name; None where no sweep has one, or there is no such
    file."""
    return sweep_entry((_runs_of(stack) or {}).get(name))


def is_gone(stack: str, name: str) -> bool:
    """True where the stack file is there, can be read, and has no such job any more."""
    found = _runs_of(stack)
    return found is not None and name not in found


def _runs_of(stack: str) -> Mapping[str, JobConfig | ManifestConfig] | None:
    """Jobs of the stack file, with each run of a sweep as one; None where it is that of another checkout, or cannot
    be read."""
    try:
        section = _section(stack)
    except FileNotFoundError:
        return None
    return unfolded(section).jobs if section else None


def _section(stack: str) -> EnvironmentConfig | TeamConfig | None:
    config = read_file(stack).config
    return (config.environment or config.team) if config else None


def job_of(stack: str, name: str, *, live: bool = False) -> JobConfig | ManifestConfig:
    """The entry of a job. Raises CannotCount where the stack file has none of this name. `live`: on an AWS
    account."""
    section = _section(stack)
    found = section.jobs if section else {}
    if name not in found:
        run = unfolded(section).jobs.get(name) if section else None
        if isinstance(run, JobConfig) and (sweep := sweep_entry(run)):
            alone = forget_command(run.kind, name, stack, live)
            raise CannotCount(
                f"{name} is a run of the sweep {sweep}, and has no number of its own. Fix: --job"
                f" {sweep}, which repeats all its runs; or for {name} alone, where it was stopped: {alone}, then"
                f" {update_command(stack, live)}"
            )
        fix = by_option("--job", found, "a job")
        raise CannotCount(f"Pulumi.{stack}.yaml has no job {name}. Fix: {fix}")
    job = found[name]
    if isinstance(job, JobConfig) and job.schedule:
        raise CannotCount(
            f"{name} has a schedule, and each time is a run of its own. Fix: `{starts_now('kubectl', name)}`, in its"
            " namespace, starts a run now"
        )
    return job


def counted_up(text: str, name: str, number: int) -> Change:
    """Change that makes `number` the run of a job. Raises CannotCount for an entry in braces."""
    entry = job_entry(text, name)
    if entry is None or entry.flow_style or not entry.value:
        raise CannotCount(
            f"the entry of {name} is no block of lines. Fix: write run: {number} into it"
        )
    if change := scalar_of_job(text, name, "run", str(number)):
        return change
    first = entry.value[0][0].start_mark
    return Change(line=first.line + 1, text=f"{' ' * first.column}run: {number}", replaces=False)
