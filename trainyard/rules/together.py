"""Errors about what jobs cannot have together: a directory for checkpoints, a namespace, the nodes
of a pool."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from itertools import count
from pathlib import PurePosixPath

from trainyard.catalog.limits import LONGEST_IMAGE_BACKOFF_SECONDS
from trainyard.catalog.upstream.public_registries import (
    ECR_PUBLIC,
    HOURS,
    PATIENT_SECONDS,
    PULLS,
    PULLS_A_SECOND,
    is_on_docker_hub,
    is_on_ecr_public,
)
from trainyard.catalog.versions import TRAINING_OPERATOR_IMAGES
from trainyard.derive.after import side_by_side
from trainyard.derive.pod_resources import pods_per_node
from trainyard.derive.pools import TYPES, gpus_of, largest_gang
from trainyard.derive.queues import queued_pools
from trainyard.derive.teams import Share
from trainyard.parts.parts import wanted_parts
from trainyard.plans.directories import path_of
from trainyard.problems import At, InputError, InputWarning, few
from trainyard.rules.preemption import stopped_warnings
from trainyard.rules.queues import image_warnings, parted_warnings
from trainyard.rules.schedule import kept_run_warnings
from trainyard.rules.teams import listing_errors
from trainyard.settings.environment import EnvironmentConfig, TeamConfig
from trainyard.settings.job import JobConfig, typed
from trainyard.settings.pools import PoolConfig

Place = tuple[str, PurePosixPath]
"""A store, and a directory in it."""


@dataclass(frozen=True, kw_only=True)
class Saved:
    """A directory into which a job saves checkpoints."""

    job: str
    """Name of the job in messages."""
    path: str
    """Path of the setting."""
    store: str
    directory: PurePosixPath
    part: PurePosixPath = PurePosixPath()
    """Part of the store that the job's namespace sees: all of it, or the directory of its team."""

    @property
    def places(self) -> list[Place]:
        """The directory, and those that it is in, each with its store."""
        whole = self.part / self.directory
        return [(self.store, each) for each in (whole, *whole.parents)]


def team_errors_together(
    team: TeamConfig, environment: EnvironmentConfig, others: Mapping[str, TeamConfig]
) -> Iterator[InputError]:
    """Errors about what a team cannot share with its environment and its other teams. `others`: by
    the name of the stack."""
    yield from listing_errors(team, environment, others)
    yield from shared_namespace_errors(team, others)
    elsewhere = saved("environment.jobs", typed(environment.jobs), team.environment)
    for stack, other in others.items():
        elsewhere += _saved_by_team(other, environment, stack)
    yield from shared_directory_errors(_saved_by_team(team, environment), elsewhere)


def _saved_by_team(
    team: TeamConfig, environment: EnvironmentConfig, stack: str = ""
) -> list[Saved]:
    """Where the jobs of a team save, each in the team's part of its store."""
    found = saved("team.jobs", typed(team.jobs), stack)
    apart = {name for name, store in environment.storage.items() if store.teams == "apart"}
    if team.name is None:
        return found
    own = PurePosixPath(path_of(team.name))
    return [replace(each, part=own) if each.store in apart else each for each in found]


def beside(stack: str, environment: EnvironmentConfig) -> dict[str, JobConfig]:
    """The jobs of an environment, as messages about a team call them."""
    return {
        f"{name} of {stack}": replace(job, after=tuple(f"{each} of {stack}" for each in job.after))
        for name, job in typed(environment.jobs).items()
    }


def saved(path: str, jobs: Mapping[str, JobConfig], stack: str = "") -> list[Saved]:
    """Places where the jobs of a stack save. `path`: that holds the jobs. `stack`: another than the
    one that is checked."""
    return [
        Saved(
            job=f"{name} of {stack}" if stack else name,
            path=f"{path}.{name}.checkpoints.directory",
            store=job.checkpoints.store,
            directory=PurePosixPath(job.in_run(job.checkpoints.directory)),
        )
        for name, job in jobs.items()
        if job.checkpoints
    ]


def shared_directory_errors(
    own: Sequence[Saved], others: Sequence[Saved] = ()
) -> Iterator[InputError]:
    """Jobs that save where another job saves, of the same stack or of `others`. Each would resume
    from the other's checkpoints, and delete them."""
    every = (*others, *own)
    whole, around = {save.places[0] for save in every}, {at for save in every for at in save.places}
    for save, first in zip(own, _overlaps(every)[len(others) :], strict=True):
        if first is None:
            continue
        yield At(save.path).must(
            f"be apart from {first.directory}, the directory of job {first.job}",
            got=save.directory,
            fix=f"write a directory of the job's own, such as {_free(save, whole, around)}",
        )


def _free(save: Saved, whole: Set[Place], around: Set[Place]) -> str:
    """A directory that is apart from all others: the name of the job, with a number where that is taken.
    Where a job has all of the store there is none, and the name stands for it. `whole`: every directory. `around`:
    every directory, and those that it is in."""
    name = save.path.split(".")[-3]
    first, *above = replace(save, directory=PurePosixPath(name)).places
    if first not in around or not whole.isdisjoint(above):
        return name
    store, at = first
    numbered = (f"{name}-{number}" for number in count(2))
    return next(each for each in numbered if (store, at.with_name(each)) not in around)


def _overlaps(saves: Sequence[Saved]) -> list[Saved | None]:
    """For each directory the first one before it that is the same, inside it or around it. Not pair by
    pair: a thousand jobs would be half a million pairs."""
    here: dict[Place, int] = {}
    inside: dict[Place, int] = {}
    found: list[Saved | None] = []
    for number, save in enumerate(saves):
        place = save.places[0]
        before = [here[each] for each in save.places if each in here]
        before += [inside[place]] if place in inside else []
        found.append(saves[min(before)] if before else None)
        here.setdefault(place, number)
        for around in save.places:
            inside.setdefault(around, number)
    return found


def shared_namespace_errors(
    team: TeamConfig, others: Mapping[str, TeamConfig]
) -> Iterator[InputError]:
    """Teams of one environment in one namespace. `others`: by the name of the stack."""
    for stack, other in others.items():
        if team.namespace and other.namespace == team.namespace:
            yield At("team.namespace").must(
                f"not be the namespace of another team, which Pulumi.{stack}.yaml has",
                got=team.namespace,
                fix="write a name that no other team of the environment has",
            )


def gang_warnings(
    path: str, jobs: Mapping[str, JobConfig], environment: EnvironmentConfig
) -> Iterator[InputWarning]:
    """Jobs of several nodes that do not fit their pool together. `path`: that holds the jobs. A queue gives a job all
    its nodes or none, so jobs on its pools only wait."""
    queued = set(queued_pools(environment)) if environment.queues else set()
    for name, pool in _known_pools(environment).items():
        if name in queued:
            continue
        gangs = {
            job: _nodes(wanted, pool)
            for job, wanted in jobs.items()
            if wanted.pool == name and wanted.nodes > 1
        }
        gangs = side_by_side(gangs, jobs)
        most, needed = largest_gang(pool), sum(gangs.values())
        if len(gangs) > 1 and needed > most and max(gangs.values()) <= most:
            listed = few([f"{job} {nodes}" for job, nodes in gangs.items()])
            yield At(path).warning(
                f"jobs need {needed} nodes of pool {name} together ({listed}), and it has at"
                f" most {most}: when they start at the same time, each may get a part of its"
                " nodes and wait for the rest. Start them one after the other, or enlarge the"
                " pool"
            )


def team_warnings_together(
    share: Share,
    own: Mapping[str, JobConfig],
    together: Mapping[str, JobConfig],
    environment: EnvironmentConfig,
    entries: Mapping[str, JobConfig],
) -> Iterator[InputWarning]:
    """Warnings about the jobs of a team, alone and beside those of the environment. `together`:
    both. `entries`: those of the team that its stack file describes."""
    yield from kept_run_warnings(share.entry, entries)
    yield from stopped_warnings(share, entries, own, environment)
    yield from parted_warnings(share, own, environment)
    yield from image_warnings(share, own, environment)
    yield from gang_warnings("team.jobs", together, environment)
    yield from docker_hub_warnings("team.jobs", together, environment)
    yield from ecr_public_warnings("team.jobs", together, environment)
    gpus = {name: gpus_of(job, environment) for name, job in own.items()}
    needed, most = sum(gpus.values()), share.max_gpus
    if most and share.queue is None and needed > most and max(gpus.values()) <= most:
        yield At("team.jobs").warning(
            f"jobs need {needed} GPUs together ({few([f'{job} {n}' for job, n in gpus.items()])}),"
            f" and {share.limit} is {most}: when they start at the same time, one gets a part of"
            " its pods and waits for the rest. Start them one after the other, or raise"
            f" {share.limit}"
        )


def docker_hub_warnings(
    path: str, jobs: Mapping[str, JobConfig], environment: EnvironmentConfig
) -> Iterator[InputWarning]:
    """Jobs whose new nodes pull more images from Docker Hub than it gives to one address: all nodes
    have that of the NAT gateway. A job with pull_secrets has an account, and other limits; copies
    (artifacts.images) are in ECR. `path`: that holds the jobs."""
    if environment.artifacts and environment.artifacts.images:
        return
    pools = _known_pools(environment)
    pulls = {
        name: _nodes(job, pools[job.pool])
        for name, job in jobs.items()
        if job.pool in pools and is_on_docker_hub(job.image) and not job.pull_secrets
    }
    if sum(pulls.values()) > PULLS:
        listed = few([f"{name} {nodes}" for name, nodes in pulls.items()])
        yield At(path).warning(
            f"{sum(pulls.values())} new nodes pull images from Docker Hub ({listed}), all through"
            f" the address of the NAT gateway. Docker Hub gives an address {PULLS} pulls in"
            f" {HOURS} hours without an account; the other nodes of a gang then wait in"
            " ImagePullBackOff. Push the image to a registry of the environment (registries),"
            " name its copy in a pull-through cache of ECR, or set pull_secrets of a paid account"
        )
    yield from _waiting_image_warnings(path, jobs, environment)


def ecr_public_warnings(
    path: str, jobs: Mapping[str, JobConfig], environment: EnvironmentConfig
) -> Iterator[InputWarning]:
    """Jobs whose new nodes pull more images from ECR Public than it gives them in a minute: their own,
    and those of parts that have a pod on each node. `path`: that holds the jobs."""
    if environment.artifacts and environment.artifacts.images:
        return
    pools = _known_pools(environment)
    pulls: dict[str, int] = {}
    for name, job in jobs.items():
        if job.pool in pools:
            found = _node_images(environment, pools[job.pool])
            images = found if job.pull_secrets else [*found, job.image]
            each = sum(map(is_on_ecr_public, images))
            pulls[name] = _nodes(job, pools[job.pool]) * each
    if sum(pulls.values()) > PULLS_A_SECOND * PATIENT_SECONDS:
        listed = few([f"{name} {images}" for name, images in pulls.items() if images])
        yield At(path).warning(
            f"new nodes pull {sum(pulls.values())} images from {ECR_PUBLIC} ({listed}), all through the"
            f" address of the NAT gateway. Without a login it gives {PULLS_A_SECOND} image a second; the"
            " others fail with toomanyrequests, and kubelet pulls them again after up to"
            f" {LONGEST_IMAGE_BACKOFF_SECONDS // 60} minutes, while their gangs wait. Push the image to"
            " a registry of the environment (registries), name its copy in a pull-through cache of ECR,"
            " or copy all images (artifacts.images)"
        )


def _node_images(environment: EnvironmentConfig, pool: PoolConfig) -> list[str]:
    """Images that each node of a pool pulls for parts of the environment."""
    efa = bool(TYPES[pool.instance_types[0]].efa)
    found = [part.node_images(its, efa=efa) for part, its in wanted_parts(environment)]
    return [image for images in found for image in images]


def _waiting_image_warnings(
    path: str, jobs: Mapping[str, JobConfig], environment: EnvironmentConfig
) -> Iterator[InputWarning]:
    """PyTorchJobs whose Workers pull the operator's image from Docker Hub, in front of their own."""
    pools = _known_pools(environment)
    workers = {
        name: _nodes(replace(job, nodes=job.nodes - 1), pools[job.pool])
        for name, job in jobs.items()
        if job.pool in pools and job.pytorch_job and not job.elastic and job.nodes > 1
    }
    waits = _waiting_image(environment)
    if is_on_docker_hub(waits) and sum(workers.values()) > PULLS:
        listed = few([f"{name} {nodes}" for name, nodes in workers.items()])
        yield At(path).warning(
            f"{sum(workers.values())} new nodes pull {waits} from Docker Hub ({listed}): the"
            " training-operator puts it in front of every Worker, whatever the image of the job. Docker"
            f" Hub gives the address of the NAT gateway {PULLS} pulls in {HOURS} hours without an"
            " account. Set artifacts.images, and the copy in ECR is pulled; or write a TrainJob"
        )


def _waiting_image(environment: EnvironmentConfig) -> str:
    """Image of the container that waits for a Master; empty where there is no operator."""
    operator = environment.training_operator
    _, waits = TRAINING_OPERATOR_IMAGES.get(operator.version if operator else "", ("", ""))
    return waits


def _known_pools(environment: EnvironmentConfig) -> dict[str, PoolConfig]:
    """The pools whose instance types are all in the catalogue."""
    return {
        name: pool
        for name, pool in environment.pools.items()
        if pool.instance_types and set(pool.instance_types) <= set(TYPES)
    }


def _nodes(job: JobConfig, pool: PoolConfig) -> int:
    """Nodes that the job takes: several of its pods share one where its GPUs, EFA devices, vCPUs and memory are
    enough for them."""
    on_a_node = min(pods_per_node(job, TYPES[name]) for name in pool.instance_types)
    return -(-job.nodes // max(1, on_a_node))
