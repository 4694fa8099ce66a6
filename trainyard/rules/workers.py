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
from trainyard.derive.queues import queued_pools
from trainyard.derive.team_stores import stores_of
from trainyard.objects.programs.dispatch import MOST_WORKERS
from trainyard.plans.identity import digest
from trainyard.plans.jobs import JobPlan
from trainyard.problems import REMOVE, At, InputError, InputWarning
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.queues import QueuesConfig
from trainyard.settings.reading.teams import environment_named
from trainyard.settings.reading.yaml_file import as_yaml
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


def nodes_of_workers(wanted: EnvironmentConfig, folder: Path) -> dict[str, list[int]]:
    """Pool → its nodes in each worker that has it."""
    found: dict[str, list[int]] = {}
    for name in dict.fromkeys(wanted.queues.workers if wanted.queues else ()):
        worker = environment_named(name, folder)
        for pool, each in (queued_pools(worker) if worker else {}).items():
            found.setdefault(pool, []).append(each.max_nodes)
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
    """Workers that nobody may enter yet: the role exists after the manager's first update."""
    for name in wanted.queues.workers if wanted.queues else ():
        worker = environment_named(name, folder)
        if worker and worker.queues and worker.queues.manager is None:
            yield InputWarning(
                path=AT,
                text=(
                    f"no job runs in {name} before Pulumi.{name}.yaml has environment.queues.manager:"
                    " the output queues_role of this stack"
                ),
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
    path: str, plan: JobPlan, nodes: Mapping[str, list[int]]
) -> Iterator[InputError]:
    """A gang that no worker has the nodes for, and what a job brings beside itself, which stays behind:
    its files, its secrets, its runtime. `nodes`: of each pool, in each worker."""
    most = max(nodes.get(plan.pool, [plan.nodes]))
    if plan.nodes > most:
        yield InputError(
            path=path,
            must=f"have at most {most} nodes, as many as one worker has in {plan.pool}: all of them run in"
            " one cluster",
            got=str(plan.nodes),
            fix=f"write nodes: {most}, or raise max_nodes of a worker",
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
