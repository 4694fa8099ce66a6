"""The runs of a sweep: entries that are derived from one entry, each with its values in the place of their names.

Every rule, plan and report sees these entries. The name of a run follows from its values alone, so that another
value in the list starts one run, and ends none.
"""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, TypeVar

from trainyard.plans.identity import digest
from trainyard.plans.jobs import SWEEP, JobPlan, SweepPlan
from trainyard.settings.environment import EnvironmentConfig, StackConfig, TeamConfig
from trainyard.settings.job import RUN_NUMBER, AnyJob, JobConfig
from trainyard.settings.reading.derived import Derived
from trainyard.settings.training.sweep import SweepConfig, Value

MOST_RUNS = 100
"""Runs of a sweep. Each is an object in the cluster, a resource of the engine and an entry for every rule."""
LONGEST = 32
"""Characters of a run's name, as of every entry: trainyard/settings/section.py."""
NAME = re.compile(r"[A-Za-z_][-\w]*")
"""A name of `over`."""
S = TypeVar("S", bound=EnvironmentConfig | TeamConfig)


@dataclass(frozen=True, kw_only=True)
class SweepRun(SweepConfig):
    """The sweep of a derived entry: it is one run."""

    entry: str
    values: Mapping[str, str]
    """Name → value of this run; empty where the sweep cannot be."""
    written: JobConfig
    """The entry as the stack file has it."""


def unfolded(section: S) -> S:
    """The environment or the team with an entry for each run of its sweeps, in their places. A sweep that cannot
    be stays one entry, so that the rest of it is judged. A job after a sweep comes after all of its runs."""
    found = _by_entry(section.jobs)
    if not found:
        return section
    jobs: dict[str, AnyJob] = {}
    for name, job in section.jobs.items():
        for run, one in (found.get(name) or {name: job}).items():
            after = [each for before in job.after for each in found.get(before) or (before,)]
            jobs[run] = replace(one, after=tuple(after))
    return replace(section, jobs=jobs)


def _by_entry(jobs: Mapping[str, AnyJob]) -> dict[str, dict[str, JobConfig]]:
    """Entry with a sweep → its runs, none of which has the name of a run of another sweep."""
    found: dict[str, dict[str, JobConfig]] = {}
    for name, job in jobs.items():
        if isinstance(job, JobConfig) and job.sweep:
            taken = {*jobs, *(run for runs in found.values() for run in runs)}
            found[name] = _runs(name, job, job.sweep, taken)
    return found


def _runs(
    entry: str, job: JobConfig, sweep: SweepConfig, taken: Collection[str]
) -> dict[str, JobConfig]:
    """The derived entries of a sweep, by name. `taken`: the names of entries, and of runs of other sweeps."""
    points = points_of(sweep)
    named = {run_name(entry, point): point for point in points}
    if not points or len(named) != len(points) or {*named} & {*taken}:
        themselves = {name: name for name in sweep.over}
        return {entry: _run(entry, job, sweep, {}, themselves)}
    return {name: _run(entry, job, sweep, point, point) for name, point in named.items()}


def _run(
    entry: str,
    job: JobConfig,
    sweep: SweepConfig,
    values: Mapping[str, str],
    texts: Mapping[str, str],
) -> JobConfig:
    """One derived entry. `texts`: name → what stands in its place."""
    plain, saved = replace(job, sweep=None), job.checkpoints
    if saved and not distinct(saved.directory, sweep):  # refused, and judged all the same
        own = replace(saved, directory=with_places(saved.directory, sweep))
        plain = replace(plain, checkpoints=own)
    run = SweepRun(**vars(sweep), entry=entry, values=values, written=job)
    return replace(_filled(plain, texts), sweep=run)


def points_of(sweep: SweepConfig) -> list[dict[str, str]]:
    """Every combination of values, the last name changing fastest; none where a list is empty, where one has a
    value twice, or where there are too many. The names are in their order and not in that of the file, which the
    engine does not keep: every word of the tool and the update must call a run alike."""
    names = sorted(sweep.over)
    lists = [[text_of(value) for value in sweep.over[name]] for name in names]
    if not lists or size_of(sweep) > MOST_RUNS or any(len({*each}) != len(each) for each in lists):
        return []
    return [dict(zip(names, values, strict=True)) for values in itertools.product(*lists)]


def size_of(sweep: SweepConfig) -> int:
    """Number of runs that a sweep asks for."""
    return math.prod(map(len, sweep.over.values()))


def text_of(value: Value) -> str:
    """A value as arguments have it. The engine hands 1.0 over as 1, and a file has what somebody wrote."""
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)


def run_name(entry: str, point: Mapping[str, str]) -> str:
    """Name of a run: the entry and its values; a digest of them where that is too long."""
    values = [re.sub(r"^-(?=[\d.])", "minus", value) for value in point.values()]
    said = re.sub("[^a-z0-9]+", "-", "-".join(values).lower()).strip("-")
    name = f"{entry}-{said}"
    if said and len(name) <= LONGEST:
        return name
    return f"{entry[: LONGEST - 9].rstrip('-')}-{digest([*point.values()])[:8]}"


def place_of(name: str) -> str:
    """A name of `over` as texts have it."""
    return f"{{{name}}}"


def _filled(value: Any, point: Mapping[str, str]) -> Any:
    """A setting with the values of a run in all its texts."""
    if isinstance(value, str):
        return _text_with(value, point)
    if isinstance(value, tuple):
        return tuple(_filled(each, point) for each in value)
    if isinstance(value, Mapping):
        return {key: _filled(each, point) for key, each in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        changed = {each.name: _filled(getattr(value, each.name), point) for each in fields(value)}
        return replace(value, **changed)
    return value


def _text_with(text: str, point: Mapping[str, str]) -> str:
    """A text with values in the place of their names. `${lr}` is a variable of a shell, and stays."""
    if "{" not in text:
        return text
    names = "|".join(map(re.escape, point)) or "(?!)"
    return re.sub(rf"(?<!\$)\{{({names})\}}", lambda found: point[found[1]], text)


def texts_of(value: Any) -> Iterator[str]:
    """Every text of an entry."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | tuple):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from texts_of(each)
    elif is_dataclass(value) and not isinstance(value, SweepConfig | type):
        for each in fields(value):
            yield from texts_of(getattr(value, each.name))


def distinct(directory: str, sweep: SweepConfig) -> bool:
    """True where a directory is another one for each run."""
    points = points_of(sweep)
    return len({_text_with(directory, point) for point in points}) == len(points)


def with_places(directory: str, sweep: SweepConfig) -> str:
    """The directory with a part for each run, as a fix writes it."""
    missing = [place_of(name) for name in sweep.over if place_of(name) not in directory]
    before, number, after = directory.partition(RUN_NUMBER)
    own = "-".join(missing)
    return f"{before}{own}/{number}{after}" if number else f"{directory}/{own}"


def paths_of_runs(configs: Iterable[StackConfig]) -> dict[str, Derived]:
    """Path of each run of a sweep → its entry, which the stack file has."""
    return {
        f"{kind}.jobs.{name}": Derived(
            path=f"{kind}.jobs.{job.sweep.entry}",
            texts=_written_texts(job.sweep),
            values=_names(name, job.sweep),
        )
        for config in configs
        for kind, section in (("environment", config.environment), ("team", config.team))
        for name, job in (unfolded(section).jobs if section else {}).items()
        if isinstance(job, JobConfig) and isinstance(job.sweep, SweepRun)
    }


def _written_texts(run: SweepRun) -> dict[str, str]:
    """Text of a run with its values → the text of the entry with their names. A value alone is no such text: it may
    stand anywhere."""
    return {
        filled: text
        for text in texts_of(run.written)
        if (filled := _text_with(text, run.values)) != text and filled not in run.values.values()
    }


def _names(name: str, run: SweepRun) -> dict[str, str]:
    """Value of a run → its name in the file, and name of the run → its entry. Of two names with one value nobody
    knows which is meant."""
    values = [*run.values.values()]
    return {
        **{text: place_of(of) for of, text in run.values.items() if values.count(text) == 1},
        name: run.entry,
    }


def sweep_entry(job: AnyJob | None) -> str | None:
    """Entry of the stack file that a job is a run of; None for a job of no sweep."""
    return (
        job.sweep.entry if isinstance(job, JobConfig) and isinstance(job.sweep, SweepRun) else None
    )


def at_once(jobs: Mapping[str, JobConfig]) -> dict[str, JobConfig]:
    """The jobs that can run at the same time: of a sweep as many as it says."""
    found: dict[str, JobConfig] = {}
    runs: dict[str, int] = {}
    for name, job in jobs.items():
        if isinstance(job.sweep, SweepRun):
            runs[job.sweep.entry] = runs.get(job.sweep.entry, 0) + 1
            if job.sweep.at_most and runs[job.sweep.entry] > job.sweep.at_most:
                continue
        found[name] = job
    return found


def in_turn(plans: Mapping[str, JobPlan], jobs: Mapping[str, AnyJob]) -> dict[str, JobPlan]:
    """The plans of jobs with their places in sweeps."""
    sweeps = {
        name: job.sweep
        for name, job in jobs.items()
        if isinstance(job, JobConfig) and isinstance(job.sweep, SweepRun)
    }
    runs: dict[str, list[str]] = {}
    for name in plans:
        if name in sweeps:
            runs.setdefault(sweeps[name].entry, []).append(name)
    return {
        name: _placed(plan, name, sweeps[name], runs[sweeps[name].entry])
        if name in sweeps
        else plan
        for name, plan in plans.items()
    }


def _placed(plan: JobPlan, name: str, run: SweepRun, runs: Sequence[str]) -> JobPlan:
    """The plan of a run with its place. `runs`: of its sweep, in their order."""
    earlier, limit = runs[: runs.index(name)], run.at_most
    limited = limit is not None and len(runs) > limit
    return replace(
        plan,
        annotations={**plan.annotations, SWEEP: _note(run)},
        sweep=SweepPlan(
            entry=run.entry,
            at_most=limit,
            earlier=tuple(earlier) if limit is not None and len(earlier) >= limit else (),
            others=tuple(each for each in runs if each != name) if limited else (),
        ),
    )


def _note(run: SweepRun) -> str:
    metric = run.metric and {"name": run.metric.name, "goal": run.metric.goal}
    return json.dumps({"entry": run.entry, "values": dict(run.values), "metric": metric})
