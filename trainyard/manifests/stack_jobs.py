"""The jobs of a stack: those that are entries of its stack file, and those that are files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trainyard.derive.job_files import config_map, file_errors
from trainyard.derive.job_site import JobSite
from trainyard.derive.jobs import job_plan
from trainyard.plans.jobs import JobPlan
from trainyard.problems import InputError, InputWarning
from trainyard.rules.stores import keep_warnings
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.job import AnyJob, JobConfig, manifests, typed

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
    """Errors about the files."""

    path: str
    """Path of the jobs in the stack file."""

    @property
    def warnings(self) -> tuple[InputWarning, ...]:
        """Warnings about jobs that are files themselves, and about files that other jobs bring."""
        found = [warning for manifest in self.read.values() for warning in manifest.warnings]
        for name, job in typed(self.jobs).items():
            found += keep_warnings(f"{self.path}.{name}", job, self.folder)
        return tuple(found)

    def planned(self, site: JobSite, notes: Mapping[str, Mapping[str, str]]) -> dict[str, JobPlan]:
        """Every job, decided, in the order of the stack file. `notes`: name → annotations of the job."""
        plans = {
            name: self.read[name].plan(job, site.namespace, site.runtimes)
            for name, job in manifests(self.jobs).items()
        }
        plans |= {
            name: job_plan(name, job, site, config_map(name, job, self.folder), notes.get(name, {}))
            for name, job in typed(self.jobs).items()
        }
        return {name: plans[name] for name in self.jobs}

    def described(self) -> dict[str, JobConfig]:
        """Every job in the words of settings, as far as capacity goes."""
        return typed(self.jobs) | {
            name: self.read[name].stand_in(job)
            for name, job in manifests(self.jobs).items()
            if name in self.read
        }


def read_jobs(
    path: str,
    jobs: Mapping[str, AnyJob],
    environment: EnvironmentConfig,
    namespace: str,
    folder: Path,
) -> StackJobs:
    """Read the files of a stack's jobs. `path`: of the jobs in the stack file."""
    errors = tuple(_file_errors(path, jobs, folder))
    files = manifests(jobs)
    if not files:
        return StackJobs(jobs=jobs, folder=folder, path=path, read={}, errors=errors)
    # Only here: most stacks have no job that is a file, and are checked a tenth faster without it.
    from trainyard.manifests.admission import read_manifests

    read, wrong = read_manifests(path, files, environment, namespace, folder)
    return StackJobs(jobs=jobs, folder=folder, path=path, read=read, errors=(*errors, *wrong))


def _file_errors(path: str, jobs: Mapping[str, AnyJob], folder: Path) -> Iterator[InputError]:
    for name, job in typed(jobs).items():
        yield from file_errors(f"{path}.{name}", job, folder)
