"""The jobs of a stack: those that are entries of its stack file, and those that are files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trainyard.derive.after import chained
from trainyard.derive.commands import command_of
from trainyard.derive.job_files import config_map
from trainyard.derive.job_site import JobSite
from trainyard.derive.jobs import job_plan
from trainyard.derive.model_memory.fit import Fit, fit_of
from trainyard.derive.schedule import labelled, scheduled
from trainyard.derive.scripts import script_of
from trainyard.derive.sweep import at_once, in_turn
from trainyard.plans.jobs import EXPECTED, Expected, JobPlan
from trainyard.problems import At, InputError, InputWarning
from trainyard.rules.after import after_errors
from trainyard.rules.job_files import NO_FILE, file_errors
from trainyard.rules.model_memory import fit_problems, model_errors
from trainyard.rules.mounts import torchrun_script_errors
from trainyard.rules.python_files import python_warnings
from trainyard.rules.saves import keep_warnings, lost_warnings, place_warnings
from trainyard.rules.schedule import run_name_errors, schedule_problems, team_schedule_errors
from trainyard.rules.sweep import sweep_problems
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.job import AnyJob, JobConfig, manifests, typed
from trainyard.settings.reading.files import is_inside, text_of

if TYPE_CHECKING:
    from trainyard.manifests.admission import Manifest


@dataclass(frozen=True, kw_only=True)
class StackJobs:
    """The jobs of a stack, together with the files that they bring or are."""

    jobs: Mapping[str, AnyJob]
    folder: Path
    """Folder of their files."""
    read: Mapping[str, Manifest]
    """The jobs that are files themselves."""
    errors: tuple[InputError, ...]
    """Errors about the files and the models."""

    fits: Mapping[str, Fit]
    """Memory of the model that each job trains, where settings or script say it."""

    path: str
    """Path of the jobs in the stack file."""

    @property
    def warnings(self) -> tuple[InputWarning, ...]:
        """Warnings about jobs that are files themselves, and about files that other jobs bring."""
        found = [warning for manifest in self.read.values() for warning in manifest.warnings]
        for name, job in typed(self.jobs).items():
            found += lost_warnings(f"{self.path}.{name}", job)
            found += keep_warnings(f"{self.path}.{name}", job, self.folder)
            found += place_warnings(f"{self.path}.{name}", job, self.folder)
            found += python_warnings(f"{self.path}.{name}", job, self.folder)
        problems = (
            *_fit_problems(self.path, self.fits),
            *sweep_problems(self.path, self.jobs),
            *schedule_problems(self.path, self.jobs),
        )
        found += [each for each in problems if isinstance(each, InputWarning)]
        return tuple(found)

    def planned(self, site: JobSite, notes: Mapping[str, Mapping[str, str]]) -> dict[str, JobPlan]:
        """Every job, decided, in the order of the stack file, but behind those that it comes after. `notes`:
        name → annotations of the job."""
        plans = {
            name: self.read[name].plan(job, site.namespace, site.runtimes)
            for name, job in manifests(self.jobs).items()
        }
        plans |= {
            name: job_plan(
                name,
                labelled(name, job),
                site,
                config_map(name, job, self.folder),
                notes.get(name, {}),
            )
            for name, job in typed(self.jobs).items()
        }
        named = {
            name: replace(
                plans[name], annotations={**_expected(plans[name], site), **plans[name].annotations}
            )
            for name in self.jobs
        }
        ordered = in_turn(chained(named, self.jobs), self.jobs)
        return scheduled(ordered, self.jobs, site.starter)

    def described(self) -> dict[str, JobConfig]:
        """Every job in the words of settings, as far as capacity goes."""
        return typed(self.jobs) | {
            name: self.read[name].stand_in(job)
            for name, job in manifests(self.jobs).items()
            if name in self.read
        }

    def at_once(self) -> dict[str, JobConfig]:
        """Jobs of `described` that can run at the same time."""
        return at_once(self.described())


def read_jobs(
    path: str,
    jobs: Mapping[str, AnyJob],
    environment: EnvironmentConfig,
    namespace: str,
    folder: Path,
) -> StackJobs:
    """Read the files of a stack's jobs. `path`: of the jobs in the stack file."""
    errors = (
        *_file_errors(path, jobs, folder),
        *after_errors(path, jobs),
        *team_schedule_errors(path, jobs, environment, namespace),
        *run_name_errors(path, jobs, environment),
    )
    files = manifests(jobs)
    fits = _fits(jobs, environment, folder)
    if not files:
        return StackJobs(
            jobs=jobs,
            folder=folder,
            path=path,
            read={},
            fits=fits,
            errors=(*errors, *_too_large(path, fits)),
        )
    # Only here: most stacks have no job that is a file, and are checked a tenth faster without it.
    from trainyard.manifests.admission import read_manifests
    from trainyard.manifests.document import of_body

    read, wrong = read_manifests(path, files, environment, namespace, folder)
    wrong += _same_names(path, jobs, read)
    for name, manifest in read.items():
        scripts = [each.script for body in manifest.objects for each in of_body(body).containers]
        text = partial(_beside, manifest.objects, (folder / files[name].manifest).parent)
        fits |= _named(name, fit_of(manifest.stand_in(files[name]), environment, scripts, text))
    return StackJobs(
        jobs=jobs,
        folder=folder,
        path=path,
        read=read,
        fits=fits,
        errors=(*errors, *_too_large(path, fits), *wrong),
    )


def _same_names(
    path: str, jobs: Mapping[str, AnyJob], read: Mapping[str, Manifest]
) -> Iterator[InputError]:
    """Objects that two entries would make, of which the API server takes the first one."""
    makers = {(job.kind, name): name for name, job in typed(jobs).items()}
    for name, manifest in read.items():
        for made in manifest.objects:
            kind, called = made["kind"], made["metadata"].get("name")
            other = makers.setdefault((kind, str(called)), name)
            if called and other != name:
                yield At(f"{path}.{name}.manifest").must(
                    f"be a file whose objects have names of their own: job {other} makes {kind} {called}, too",
                    got=manifests(jobs)[name].manifest,
                    fix=f"write another metadata.name in {manifests(jobs)[name].manifest}",
                )


def _expected(job: JobPlan, site: JobSite) -> dict[str, str]:
    """Annotation with what the plan counts for the run; nothing without `expected_hours`."""
    if job.expected_hours is None:
        return {}
    pool = site.pools[job.pool]
    expected = Expected(
        hours=job.expected_hours,
        nodes=job.nodes,
        instance_type=pool.instance_types[0],
        capacity=pool.capacity,
    )
    return {EXPECTED: expected.note()}


def _fits(
    jobs: Mapping[str, AnyJob], environment: EnvironmentConfig, folder: Path
) -> dict[str, Fit]:
    """Memory of each job that is described in the stack file."""
    fits: dict[str, Fit] = {}
    for name, job in typed(jobs).items():
        script = job.script or script_of((*command_of(job), *(job.arguments or ())))
        fits |= _named(name, fit_of(job, environment, [script], partial(_source, job, folder)))
    return fits


def _named(name: str, fit: Fit | None) -> dict[str, Fit]:
    return {name: fit} if fit else {}


def _source(job: JobConfig, folder: Path, name: str) -> str | None:
    """Text of a file that an entry brings; None where it brings none of this name."""
    sources = job.files.sources if job.files else ()
    found = next((source for source in sources if Path(source).name == name), "")
    if not found or not is_inside(folder, found):
        return None
    return text_of(folder / found)


def _beside(objects: Sequence[Mapping[str, Any]], folder: Path, name: str) -> str | None:
    """Text of a file that a job file brings in a ConfigMap, or that stands beside it."""
    for each in objects:
        data = each.get("data") if each.get("kind") == "ConfigMap" else None
        if isinstance(data, Mapping) and name in data:
            return str(data[name])
    if not is_inside(folder, name):
        return None
    return text_of(folder / name)


def _fit_problems(path: str, fits: Mapping[str, Fit]) -> Iterator[InputError | InputWarning]:
    for name, fit in fits.items():
        yield from fit_problems(f"{path}.{name}", fit)


def _too_large(path: str, fits: Mapping[str, Fit]) -> Iterator[InputError]:
    problems = _fit_problems(path, fits)
    yield from (each for each in problems if isinstance(each, InputError))


def _file_errors(path: str, jobs: Mapping[str, AnyJob], folder: Path) -> Iterator[InputError]:
    problems = (*sweep_problems(path, jobs), *schedule_problems(path, jobs))
    yield from (each for each in problems if isinstance(each, InputError))
    for name, job in typed(jobs).items():
        found = [*file_errors(f"{path}.{name}", job, folder)]
        yield from found
        if not any(each.must == NO_FILE for each in found):  # else it is one fault
            yield from torchrun_script_errors(f"{path}.{name}", job)
        yield from model_errors(f"{path}.{name}", job)
