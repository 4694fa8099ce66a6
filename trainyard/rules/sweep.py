"""Errors and warnings about sweeps: no run or too many, names that stand nowhere, runs that save in one place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from trainyard.derive.sweep import (
    MOST_RUNS,
    NAME,
    SweepRun,
    distinct,
    place_of,
    points_of,
    run_name,
    size_of,
    sweep_entry,
    text_of,
    texts_of,
    with_places,
)
from trainyard.problems import At, InputError, InputWarning, few
from trainyard.settings.job import RUN_NUMBER, AnyJob, JobConfig
from trainyard.settings.training.sweep import SweepConfig

_PLACE = re.compile(r"(?<![\${])\{([A-Za-z_][-\w]*)\}(?!\})")
"""Text in braces that looks like a name of `over`."""


def sweep_problems(path: str, jobs: Mapping[str, AnyJob]) -> Iterator[InputError | InputWarning]:
    """Every error and warning of sweeps. `path`: that holds the jobs. `jobs`: with the runs of sweeps."""
    found = {
        job.sweep.entry: job.sweep
        for job in jobs.values()
        if isinstance(job, JobConfig) and isinstance(job.sweep, SweepRun)
    }
    for entry, run in found.items():
        at = f"{path}.{entry}"
        yield from _value_errors(f"{at}.sweep.over", run)
        yield from _size_errors(f"{at}.sweep.over", run)
        yield from _name_errors(f"{at}.sweep.over", entry, run, jobs)
        yield from _place_errors(f"{at}.sweep.over", run, run.written)
        yield from _directory_problems(at, run, run.written)


def _value_errors(path: str, sweep: SweepConfig) -> Iterator[InputError]:
    if not sweep.over:
        yield At(path).must(
            "have a name with its values", got="nothing", fix="write {lr: [0.0001, 0.0003]}"
        )
    for name, values in sweep.over.items():
        texts, at = [text_of(value) for value in values], At(f"{path}.{name}")
        if not NAME.fullmatch(name) or place_of(name) == RUN_NUMBER:
            yield at.must(
                "be a name of letters, digits, _ and -, and not run, which is the number of a run",
                got=name,
                fix="write another name, such as lr",
            )
        if not texts:
            yield at.must("have values", got="[]", fix="write its values, such as [1, 2]")
        for text in sorted({text for text in texts if texts.count(text) > 1}):
            yield at.must("have each value once", got=f"{text} twice", fix=f"delete one {text}")


def _size_errors(path: str, sweep: SweepConfig) -> Iterator[InputError]:
    size = size_of(sweep)
    if size > MOST_RUNS:
        product = " x ".join(str(len(values)) for values in sweep.over.values())
        yield At(path).must(
            f"make at most {MOST_RUNS} runs",
            got=f"{size:,} ({product})" if len(sweep.over) > 1 else size,
            fix="write fewer values, or several sweeps one after the other (after)",
        )


def _name_errors(
    path: str, entry: str, sweep: SweepConfig, jobs: Mapping[str, AnyJob]
) -> Iterator[InputError]:
    """Runs that would have one name, or that of another job."""
    named: dict[str, str] = {}
    for point in points_of(sweep):
        name, said = run_name(entry, point), ", ".join(point.values())
        if name in named:
            yield At(path).must(
                "give each run a name of its own",
                got=f"{named[name]} and {said}, which are both {name}",
                fix="write values that differ in letters or digits",
            )
        named.setdefault(name, said)
    taken = [name for name in named if name in jobs and sweep_entry(jobs[name]) != entry]
    if taken:
        other = sweep_entry(jobs[taken[0]])
        yield At(path).must(
            "give each run a name that no other job has",
            got=f"{few(taken)}, as {other} has" if other else few(taken),
            fix="rename one of them",
        )


def _place_errors(path: str, sweep: SweepConfig, job: JobConfig) -> Iterator[InputError]:
    """Names that stand in no text, and what looks like a name and is none."""
    texts = [*texts_of(job)]
    for name in filter(NAME.fullmatch, sweep.over):
        place = place_of(name)
        if not any(re.search(rf"(?<!\$){re.escape(place)}", text) for text in texts):
            yield At(f"{path}.{name}").must(
                f"stand as {place} in a text of the job, such as its script or env: without it all runs are the same",
                got=f"${place}, which is a variable of a shell"
                if any(f"${place}" in text for text in texts)
                else f"no {place}",
                fix=f"write {place} where the value belongs, as in --{name}={place}",
            )
    places = few([place_of(name) for name in sweep.over]) or "its values"
    for name in sorted(_names_in(texts) - {*sweep.over, RUN_NUMBER.strip("{}")}):
        yield At(path).must(
            "have every name that the job's texts have in braces",
            got=f"{place_of(name)}, which is none",
            fix=f"write {places} instead, or {name}: […] under over",
        )


def _names_in(texts: Iterable[str]) -> set[str]:
    """Texts in braces that look like names of `over`. A text with spaces is a script, in which braces have
    other meanings."""
    words = [text for text in texts if not re.search(r"\s", text)]
    return {each for text in words for each in _PLACE.findall(text)}


def _directory_problems(
    path: str, sweep: SweepConfig, job: JobConfig
) -> Iterator[InputError | InputWarning]:
    """Runs that would save into one directory: each would resume from the other's checkpoints."""
    saved, drawn = job.checkpoints, job.tensorboard
    if saved and not distinct(saved.directory, sweep):
        own = with_places(saved.directory, sweep)
        yield At(f"{path}.checkpoints.directory").must(
            "be another one for each run of the sweep, which would resume from another run's checkpoint",
            got=saved.directory,
            write=own,
        )
    if drawn and not distinct(drawn.directory, sweep):
        yield At(f"{path}.tensorboard.directory").warning(
            "all runs of the sweep write their events here, and TensorBoard draws them as one run:"
            f" write {with_places(drawn.directory, sweep)}"
        )
