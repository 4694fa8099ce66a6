"""The jobs of a stack: those that are entries of its stack file, and those that are files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from frozen import dataclass
from plans.parts import JobPlan
from stacks.derive.job_files import file_errors
from stacks.derive.jobs import job_plan, runtime_plans
from stacks.manifests.admission import Manifest, manifest_plan, read_manifests, stand_in
from stacks.settings.environment import EnvironmentConfig
from stacks.settings.job import AnyJob, JobConfig, manifests, typed
from stacks.settings.problems import InputError, InputWarning


@dataclass(frozen=True, kw_only=True)
class StackJobs:
    """The jobs of a stack, together with the files that they bring or are."""

    jobs: Mapping[str, AnyJob]
    folder: Path
    """Where their files lie."""
    read: Mapping[str, Manifest]
    """The jobs that are files themselves."""
    errors: tuple[InputError, ...]
    """What is wrong with the files."""

    @property
    def warnings(self) -> tuple[InputWarning, ...]:
        """Of the jobs that are files themselves."""
        return tuple(warning for manifest in self.read.values() for warning in manifest.warnings)

    def planned(self, environment: EnvironmentConfig, namespace: str) -> dict[str, JobPlan]:
        """Every job, decided, in the order of the stack file."""
        runtimes = {runtime.name: runtime for runtime in runtime_plans(environment)}
        plans = {
            name: manifest_plan(job, self.read[name], namespace, runtimes)
            for name, job in manifests(self.jobs).items()
        }
        plans |= {
            name: job_plan(name, job, environment, namespace, self.folder, runtimes)
            for name, job in typed(self.jobs).items()
        }
        return {name: plans[name] for name in self.jobs}

    def described(self) -> dict[str, JobConfig]:
        """Every job in the words of settings, as far as capacity goes."""
        return typed(self.jobs) | {
            name: stand_in(job, self.read[name])
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
    read, wrong = read_manifests(path, manifests(jobs), environment, namespace, folder)
    errors = (*_file_errors(path, jobs, folder), *wrong)
    return StackJobs(jobs=jobs, folder=folder, read=read, errors=errors)


def _file_errors(path: str, jobs: Mapping[str, AnyJob], folder: Path) -> Iterator[InputError]:
    for name, job in typed(jobs).items():
        yield from file_errors(f"{path}.{name}", job, folder)
