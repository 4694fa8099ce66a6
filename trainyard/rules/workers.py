"""Errors about environments that cannot hand their jobs to others: what MultiKueue does not do, and
what a worker must have of the same name.

Sources: kueue.sigs.k8s.io, concepts/multikueue and tasks/manage/setup_multikueue: a worker has the
namespaces, queues and runtimes of the manager; the adapter for TrainJobs of Kueue 0.19.2 copies the job
and nothing beside it. The Trainer honours `managedBy` since 2.3.0 (trainer#3681); before it, both
clusters run the job.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from trainyard.catalog.versions import TRAINER_RELEASES
from trainyard.derive.jobs import runtime_plans
from trainyard.derive.pools import largest_gang
from trainyard.derive.queues import possible_nodes, queued_pools
from trainyard.derive.team_stores import stores_of
from trainyard.objects.programs.dispatch import MOST_WORKERS
from trainyard.objects.queues.queues import URGENCIES
from trainyard.plans.identity import digest
from trainyard.plans.images import ecr_region, images_in, in_region, parts
from trainyard.plans.jobs import JobPlan
from trainyard.problems import REMOVE, At, InputError, InputWarning
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.network import ExistingNetworkConfig
from trainyard.settings.queues import QueuesConfig
from trainyard.settings.reading.teams import environment_named
from trainyard.settings.reading.yaml_file import as_yaml
from trainyard.settings.team_entry import TeamEntryConfig
from trainyard.stores.kinds import claim_name

AT = "environment.queues.workers"
_FIRST_TRAINER = next(name for name, each in TRAINER_RELEASES.items() if each.dispatches)


def worker_errors(stack: str, wanted: EnvironmentConfig, folder: Path) -> Iterator[InputError]:
    """Every error of an environment that hands its jobs to others, or takes theirs. `stack`: its own.
    `folder`: with the stack files of the workers."""
    if wanted.queues is None or not (wanted.queues.workers or wanted.queues.manager):
        return
    yield from _release(wanted, wanted.queues)
    if not wanted.queues.workers:
        return
    yield from _manager(wanted, wanted.queues)
    yield from _names(stack, wanted.queues.workers)
    yield from _pools(wanted)
    yield from _guarantees(wanted, folder)
    for name in dict.fromkeys(wanted.queues.workers):
        if name != stack:
            yield from _worker(name, wanted, folder)


def _release(wanted: EnvironmentConfig, queues: QueuesConfig) -> Iterator[InputError]:
    version = wanted.trainer.version
    if not TRAINER_RELEASES[version].dispatches:
        yield InputError(
            path=AT if queues.workers else "environment.queues.manager",
            must=f"be set only with trainer.version {_FIRST_TRAINER} or newer: before it, two clusters"
            " run one job",
            got=f"trainer.version {version}",
            fix=f"set environment.trainer.version: {_FIRST_TRAINER}, or delete it",
            write=REMOVE,
        )


def _manager(wanted: EnvironmentConfig, queues: QueuesConfig) -> Iterator[InputError]:
    """Errors about settings that cannot stand beside `workers`."""
    beside: list[tuple[str, Any, str]] = [
        ("environment.queues.manager", queues.manager, "a job is handed on once"),
        ("environment.queues.topology", queues.topology, "the nodes are in other clusters"),
        (
            "environment.training_operator",
            wanted.training_operator and wanted.training_operator.version,
            "it runs a PyTorchJob in both clusters",
        ),
    ]
    for path, said, why in beside:
        if said:
            yield InputError(
                path=path,
                must=f"not be set beside {AT}: {why}",
                got=str(said),
                fix="delete one of the two",
                write=REMOVE,
            )


def _names(stack: str, workers: tuple[str, ...]) -> Iterator[InputError]:
    others = [each for each in dict.fromkeys(workers) if each != stack]
    if stack in workers:
        yield At(AT).must(
            "name other environments",
            got=f"{stack}, which is this one",
            fix=f"write {as_yaml(others)}" if others else "delete it",
            write=others or REMOVE,
        )
    elif len(others) < len(workers):
        yield At(AT).must(
            "name each environment once",
            got=", ".join(workers),
            fix=f"write {as_yaml(others)}",
            write=others,
        )
    if len(others) > MOST_WORKERS:
        yield At(AT).must(
            f"be at most {MOST_WORKERS} environments",
            got=len(others),
            fix=f"delete {len(others) - MOST_WORKERS} of them",
        )


def _pools(wanted: EnvironmentConfig) -> Iterator[InputError]:
    """Nodes that stand here, and that no job uses."""
    for name, pool in queued_pools(wanted).items():
        for setting in ("replicas", "reservation"):
            if getattr(pool, setting) is not None:
                yield InputError(
                    path=f"environment.pools.{name}.{setting}",
                    must=f"not be set beside {AT}: the jobs run in other clusters, and the nodes would"
                    " stand idle",
                    got=name,
                    fix="set it in the stack files of the workers, and max_nodes here",
                    write=REMOVE,
                )


def nodes_of_workers(
    wanted: EnvironmentConfig, folder: Path, team: str | None = None
) -> dict[str, list[int]]:
    """Pool → the nodes that jobs can have in each worker that has it. `team`: its jobs; by default those of all."""
    found: dict[str, list[int]] = {}
    for name in dict.fromkeys(wanted.queues.workers if wanted.queues else ()):
        if worker := environment_named(name, folder):
            whole = {pool: largest_gang(each) for pool, each in queued_pools(worker).items()}
            for pool, nodes in (possible_nodes(team, worker) if team else whole).items():
                found.setdefault(pool, []).append(nodes)
    return found


def _guarantees(wanted: EnvironmentConfig, folder: Path) -> Iterator[InputError]:
    """Quotas of nodes that exist nowhere."""
    nodes = nodes_of_workers(wanted, folder)
    for name, pool in queued_pools(wanted).items():
        if name in nodes and pool.max_nodes > (most := sum(nodes[name])):
            yield InputError(
                path=f"environment.pools.{name}.max_nodes",
                must=f"be at most {most}, which the workers have together",
                got=str(pool.max_nodes),
                fix=f"write {most}",
                write=most,
            )


def _worker(name: str, wanted: EnvironmentConfig, folder: Path) -> Iterator[InputError]:
    worker = environment_named(name, folder)
    if worker is None:
        yield _lacks(
            name, "be environments with a sound stack file in this checkout", "it has none"
        )
        return
    if worker.queues is None:
        yield _lacks(name, "be environments with queues", "it has none")
    for what, here, there in _mirrored(wanted, worker):
        for key, value in here.items():
            if there.get(key) != value:
                yield _lacks(
                    name,
                    f"have the same {what} {key}: a job arrives there as it is written here",
                    "it has none" if key not in there else f"there: {there[key]}, here: {value}",
                )


def _lacks(worker: str, must: str, got: str) -> InputError:
    return InputError(
        path=AT, must=must, got=f"{worker}: {got}", fix=f"change Pulumi.{worker}.yaml"
    )


def worker_warnings(wanted: EnvironmentConfig, folder: Path) -> Iterator[InputWarning]:
    """Workers that nobody may enter yet: the role exists after the manager's first update. And those that the
    manager cannot reach, that cannot pull what teams name, or that stop jobs for one that runs elsewhere."""
    yield from _stopping(wanted, folder)
    for name in wanted.queues.workers if wanted.queues else ():
        worker = environment_named(name, folder)
        if worker and worker.queues and worker.queues.manager is None:
            yield At(AT).warning(
                f"no job runs in {name} before Pulumi.{name}.yaml has environment.queues.manager:"
                " the output queues_role of this stack"
            )
        if worker and _is_out_of_reach(wanted, worker):
            yield At(AT).warning(
                f"this environment has no way to the internet, where the Kubernetes API of {name}"
                f" is: no job runs in {name} before Pulumi.{name}.yaml has cluster.endpoint: private, and"
                " a route leads from this network to that one"
            )
    yield from _image_warnings(wanted, folder)


def _is_out_of_reach(here: EnvironmentConfig, worker: EnvironmentConfig) -> bool:
    """True where the manager is isolated, and names of the worker's API lead to public addresses: outside its
    VPC they do so unless the public endpoint is off (EKS user guide, cluster-endpoint). The endpoint of a
    cluster that exists is its owner's."""
    same_network = (
        isinstance(here.network, ExistingNetworkConfig)
        and isinstance(worker.network, ExistingNetworkConfig)
        and here.network.vpc_id == worker.network.vpc_id
    )
    return (
        here.network.internet == "none"
        and worker.cluster.name is None
        and worker.cluster.endpoint != "private"
        and not same_network
    )


def isolated_workers(wanted: EnvironmentConfig, folder: Path) -> dict[str, str]:
    """Worker without a way to the internet → its region, from whose ECR alone its nodes pull."""
    found: dict[str, str] = {}
    for name in dict.fromkeys(wanted.queues.workers if wanted.queues else ()):
        worker = environment_named(name, folder)
        if worker and worker.network.internet == "none":
            images = worker.artifacts and worker.artifacts.images
            # Without that registry the worker's own stack file is refused.
            if region := images and ecr_region(parts(images).registry):
                found[name] = region
    return found


def _image_warnings(wanted: EnvironmentConfig, folder: Path) -> Iterator[InputWarning]:
    """Isolated workers of a manager that does not rename the images of jobs to ECR of their region."""
    here = wanted.artifacts and wanted.artifacts.images
    for name, region in isolated_workers(wanted, folder).items():
        if not (here and in_region(here, region)):
            yield At("environment.artifacts.images").warning(
                f"nodes of {name} pull from ECR of {region} alone, and a job arrives there with the images that it"
                f" has here{f', renamed to {here}' if here else ''}: another image starts nodes that"
                " cannot pull it"
            )


def _stopping(wanted: EnvironmentConfig, folder: Path) -> Iterator[InputWarning]:
    """Workers that each stop jobs for the same one. Kueue sends it to all of them (0.19.2, defaults.go: AllAtOnce),
    and the gate by which one waits for the other is an alpha (MultiKueueOrchestratedPreemption)."""
    names = dict.fromkeys(wanted.queues.workers if wanted.queues else ())
    queues = {name: each.queues for name in names if (each := environment_named(name, folder))}
    stop = [name for name, each in queues.items() if each and each.preemption != "never"]
    if len(stop) > 1:
        yield At(AT).warning(
            f"a job stops jobs in {', '.join(stop)} at the same time, wherever its nodes are not free, and runs in one"
            " of them: Kueue sends it to all workers at once. Write queues.preemption: never in all of their stack"
            " files but one"
        )


def _mirrored(
    here: EnvironmentConfig, there: EnvironmentConfig
) -> Iterator[tuple[str, dict[str, Any], dict[str, Any]]]:
    """(what, its names and values in the manager, those in the worker) of all that a job names."""
    yield "trainer.version", {"": here.trainer.version}, {"": there.trainer.version}
    yield "team", _namespaces(here), _namespaces(there)
    yield "pool", _types(here), _types(there)
    yield "runtime", _runtimes(here), _runtimes(there)
    for team in (each for each in here.teams if each in there.teams):
        yield f"claim for team {team} of store", _claims(team, here), _claims(team, there)
        own, theirs = here.teams[team], there.teams[team]
        least = min(own.max_urgency, theirs.max_urgency, key=URGENCIES.__getitem__)
        yield "max_urgency of team", {team: own.max_urgency}, {team: least}
        yield "image_prefixes of team", {team: _images(own)}, {team: _admitted(own, theirs)}


def _images(entry: TeamEntryConfig) -> str:
    return ", ".join(entry.image_prefixes) or "any"


def _admitted(own: TeamEntryConfig, theirs: TeamEntryConfig) -> str:
    """The images of a team that the worker admits, of those that the manager does."""
    here, there = own.image_prefixes, theirs.image_prefixes
    wider = not there or (here and all(each.startswith(there) for each in here))
    return _images(own if wider else theirs)


def _namespaces(wanted: EnvironmentConfig) -> dict[str, Any]:
    return {name: entry.namespace_of(name) for name, entry in wanted.teams.items()}


def _claims(team: str, wanted: EnvironmentConfig) -> dict[str, Any]:
    return {
        name: claim_name(name, store, wanted.zone, wanted.kms_key_arn)
        for name, store in stores_of(wanted.teams[team], wanted).items()
    }


def _types(wanted: EnvironmentConfig) -> dict[str, Any]:
    return {name: ", ".join(pool.instance_types) for name, pool in queued_pools(wanted).items()}


def _runtimes(wanted: EnvironmentConfig) -> dict[str, Any]:
    return {each.name: digest(each.spec)[:8] for each in runtime_plans(wanted)}


def dispatched_job_errors(
    path: str,
    plan: JobPlan,
    needed: float,
    nodes: Mapping[str, list[int]],
    isolated: Mapping[str, str],
) -> Iterator[InputError]:
    """A gang that no worker has the nodes for, images that a worker cannot pull, and what a job brings beside
    itself, which stays behind: its files, its secrets, its runtime. `needed`: nodes with as many GPUs as the job.
    `nodes`: that the team can have of each pool, in each worker. `isolated`: of isolated_workers."""
    most = max(nodes.get(plan.pool, [plan.nodes]))
    if needed > most:
        yield InputError(
            path=path,
            must=f"have at most {most} nodes, as many as the team can have in one worker of {plan.pool}: all of them"
            " run in one cluster",
            got=str(plan.nodes),
            fix=f"write nodes: {most}, or give the team more nodes in a worker"
            if most
            else "take another pool",
        )
    for worker, region in isolated.items():
        if beyond := [image for image in images_in(plan) if not in_region(image, region)]:
            yield InputError(
                path=path,
                must=f"have images in ECR of {region}, from which alone nodes of {worker} pull: Kueue copies"
                " the job as it is written here",
                got=", ".join(beyond),
                fix=f"write images of ECR in {region}, with artifacts.images of the environment in that region"
                " or not set",
            )
    brings = [*(["files"] if plan.files else []), *(each["kind"] for each in plan.objects)]
    if brings:
        yield InputError(
            path=path,
            must="have nothing beside itself where the environment hands its jobs to workers: Kueue"
            " copies the job alone",
            got=", ".join(brings),
            fix="put files into the image or into a store, and runtimes into the environments",
        )
