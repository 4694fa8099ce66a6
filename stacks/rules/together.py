"""What jobs cannot have together: a directory for checkpoints, a namespace, the nodes of a pool."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from stacks.derive.capacity import TYPES, largest_gang
from stacks.rules.teams import listing_errors
from stacks.settings.environment import EnvironmentConfig, PoolConfig, TeamConfig
from stacks.settings.job import JobConfig, typed
from stacks.settings.problems import InputError, InputWarning


@dataclass(frozen=True, kw_only=True)
class Saved:
    """A directory into which a job saves checkpoints."""

    job: str
    """What messages call the job."""
    path: str
    """Of the setting."""
    store: str
    directory: PurePosixPath

    def overlaps(self, other: Saved) -> bool:
        """Whether one of the two directories is the other or inside it."""
        apart = self.directory not in (other.directory, *other.directory.parents)
        return self.store == other.store and not (
            apart and other.directory not in self.directory.parents
        )


def team_errors_together(
    team: TeamConfig, environment: EnvironmentConfig, others: Mapping[str, TeamConfig]
) -> Iterator[InputError]:
    """What a team cannot share with its environment and its other teams. `others`: by the name of
    the stack."""
    yield from listing_errors(team, environment, others)
    yield from shared_namespace_errors(team, others)
    elsewhere = saved("environment.jobs", typed(environment.jobs), team.environment)
    for stack, other in others.items():
        elsewhere += saved("team.jobs", typed(other.jobs), stack)
    yield from shared_directory_errors(saved("team.jobs", typed(team.jobs)), elsewhere)


def beside(stack: str, environment: EnvironmentConfig) -> dict[str, JobConfig]:
    """The jobs of an environment, as messages about a team call them."""
    return {f"{name} of {stack}": job for name, job in typed(environment.jobs).items()}


def saved(path: str, jobs: Mapping[str, JobConfig], stack: str = "") -> list[Saved]:
    """Where the jobs of a stack save. `path`: that holds the jobs. `stack`: another than the one
    that is checked."""
    return [
        Saved(
            job=f"{name} of {stack}" if stack else name,
            path=f"{path}.{name}.checkpoints.directory",
            store=job.checkpoints.store,
            directory=PurePosixPath(job.checkpoints.directory),
        )
        for name, job in jobs.items()
        if job.checkpoints
    ]


def shared_directory_errors(
    own: Sequence[Saved], others: Sequence[Saved] = ()
) -> Iterator[InputError]:
    """Jobs that save where another job saves, of the same stack or of `others`. Each would resume
    from the other's checkpoints, and delete them."""
    for number, save in enumerate(own):
        first = next((other for other in (*others, *own[:number]) if save.overlaps(other)), None)
        if first is None:
            continue
        free = save.path.split(".")[-3]
        yield InputError(
            path=save.path,
            must=f"be apart from the directory of job {first.job}, {first.directory}",
            got=str(save.directory),
            fix=f"write a directory of the job's own, such as {free}",
        )


def shared_namespace_errors(
    team: TeamConfig, others: Mapping[str, TeamConfig]
) -> Iterator[InputError]:
    """Teams of one environment in one namespace. `others`: by the name of the stack."""
    for stack, other in others.items():
        if team.namespace and other.namespace == team.namespace:
            yield InputError(
                path="team.namespace",
                must=f"not be the namespace of another team, which Pulumi.{stack}.yaml has",
                got=team.namespace,
                fix="write a name that no other team of the environment has",
            )


def gang_warnings(
    path: str, jobs: Mapping[str, JobConfig], environment: EnvironmentConfig
) -> Iterator[InputWarning]:
    """Jobs of several nodes that do not fit their pool together. `path`: that holds the jobs."""
    for name, pool in environment.pools.items():
        if not pool.instance_types or not set(pool.instance_types) <= set(TYPES):
            continue
        gangs = {
            job: _nodes(wanted, pool)
            for job, wanted in jobs.items()
            if wanted.pool == name and wanted.nodes > 1
        }
        most, needed = largest_gang(pool), sum(gangs.values())
        if len(gangs) > 1 and needed > most and max(gangs.values()) <= most:
            listed = ", ".join(f"{job} {nodes}" for job, nodes in gangs.items())
            yield InputWarning(
                path=path,
                text=(
                    f"jobs need {needed} nodes of pool {name} together ({listed}), and it has at"
                    f" most {most}: when they start at the same time, each may get a part of its"
                    " nodes and wait for the rest. Start them one after the other, or enlarge the"
                    " pool"
                ),
            )


def _nodes(job: JobConfig, pool: PoolConfig) -> int:
    """Nodes that the job takes; with gpus_per_node several of its pods share one."""
    least = min(TYPES[name].gpus for name in pool.instance_types)
    pods_per_node = max(1, least // job.gpus_per_node) if job.gpus_per_node else 1
    return -(-job.nodes // pods_per_node)
