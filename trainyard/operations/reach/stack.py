"""A stack file without errors, with the environment that its jobs run in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from trainyard.catalog.aws.own_prices import LIST, OwnPrices
from trainyard.decide import plan_stack
from trainyard.plan import EnvironmentPlan, TeamPlan
from trainyard.plans.images import parts
from trainyard.problems import Refused
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.job import JobConfig, typed
from trainyard.settings.reading.reader import Reading, read_file
from trainyard.settings.reading.teams import environment_of


@dataclass(frozen=True, kw_only=True)
class Stack:
    """A stack file without errors, and its environment."""

    name: str
    reading: Reading
    environment: EnvironmentConfig
    """For a team: the one that it is on."""
    environment_stack: str
    """The stack of the environment."""
    jobs: Mapping[str, JobConfig]
    """Jobs that are described in the file."""
    taken: frozenset[str]
    """Names of all jobs."""

    @property
    def file(self) -> str:
        return f"Pulumi.{self.name}.yaml"

    @property
    def region(self) -> str:
        return self.reading.configs[0].region

    def pull_secrets(self, image: str) -> tuple[str, ...]:
        """Secrets with which jobs of the file pull from the registry of an image."""
        registry = parts(image).registry
        found = (job for job in self.jobs.values() if parts(job.image).registry == registry)
        return tuple(dict.fromkeys(secret for job in found for secret in job.pull_secrets))


def own_prices(name: str) -> OwnPrices:
    """Prices that the dollars of a stack are counted at. Those of AWS's list, where its stack file is not here
    or has errors."""
    plan = plan_of(name)
    return plan.prices if plan else LIST


def plan_of(name: str, folder: Path = Path()) -> EnvironmentPlan | TeamPlan | None:
    """The plan of a stack file; None where it is not in the folder or has errors."""
    try:
        return plan_stack(read_file(name, folder), folder).plan
    except FileNotFoundError:
        return None


def read_stack(name: str) -> Stack:
    """A stack file and its environment. Refused where one of them has errors."""
    reading = read_file(name)
    if reading.errors or len(reading.configs) != 1:
        raise Refused(reading.errors)
    [config] = reading.configs
    if config.team:
        base, error = environment_of(config.team, Path("."))
        if error or base.errors or not base.config or not base.config.environment:
            raise Refused([error] if error else base.errors)
        environment, jobs = base.config.environment, config.team.jobs
    else:
        environment = config.environment
        jobs = environment.jobs if environment else {}
    assert environment is not None  # a file without errors has one of the two
    return Stack(
        name=name,
        reading=reading,
        environment=environment,
        environment_stack=config.team.environment if config.team else name,
        jobs=typed(jobs),
        taken=frozenset(jobs),
    )
