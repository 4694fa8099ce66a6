"""What a job cannot be: gangs that never assemble, ranks that never meet, runs that cannot resume.

Sources: Trainer 2.1 (shared facts trainer.md), traps 2a to 2c of by-hand-and-traps.md; stores.py
has the checkpoints.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta

from catalog import fabric, versions
from plans.upstream_runtimes import TUNED
from stacks.derive.capacity import TYPES, job_type, largest_gang
from stacks.derive.jobs import stores
from stacks.derive.scripts import launches
from stacks.rules.lustre_efa import tcp_warnings
from stacks.rules.pods import place_errors, pod_errors, pod_warnings
from stacks.rules.stores import checkpoint_errors, checkpoint_warnings
from stacks.settings.environment import EnvironmentConfig, OwnRuntimeConfig, PoolConfig
from stacks.settings.job import JobConfig
from stacks.settings.problems import InputError, InputWarning

BLOCK_TAIL = timedelta(minutes=40)
"""Karpenter drains a Capacity Block this long before its end (karpenter-provider-aws, a
constant)."""


def job_errors(
    path: str,
    job: JobConfig,
    environment: EnvironmentConfig,
    region: str,
    set_aside: frozenset[str],
) -> Iterator[InputError]:
    """Every error of a job. `set_aside`: names that were left out, so that no second error names
    them."""
    pool = environment.pools.get(job.pool)
    if pool is None and job.pool not in set_aside:
        yield InputError(
            path=f"{path}.pool",
            must="be a pool of the environment",
            got=job.pool,
            fix=f"one of {', '.join(environment.pools) or 'none yet'}",
        )
    if pool is not None and pool.instance_types and set(pool.instance_types) <= set(TYPES):
        yield from _gang(path, job, pool, environment)
        yield from _node(path, job, pool)
        yield from _until_the_end(path, job, pool)
        yield from checkpoint_errors(path, job, environment, region)
    yield from _controller(path, job, environment, set_aside)
    yield from _elastic(path, job, pool)
    yield from _waiting(path, job)
    yield from pod_errors(path, job, environment, set_aside)


def job_warnings(
    jobs: Mapping[str, JobConfig], environment: EnvironmentConfig, region: str, at: str
) -> Iterator[InputWarning]:
    """What works but should be known about jobs. `at`: the path that holds them."""
    for name, job in jobs.items():
        path, pool = f"{at}.{name}", environment.pools.get(job.pool)
        if (job.runtime or "").startswith(
            "torchtune-"
        ) and job.runtime in environment.trainer.runtimes:
            yield InputWarning(
                path=f"{path}.runtime",
                text=(
                    "waits for a claim or a StorageClass that nothing here makes: a"
                    " runtime of your own of kind torchtune has a store"
                ),
            )
        kind = job_type(job, environment)
        if (
            kind
            and pool
            and job.nodes > 1
            and not job.allow_slow_fabric
            and (slow := fabric.slow(kind))
        ):
            yield InputWarning(path=f"{path}.pool", text=f"{job.pool} {slow}")
        if kind and kind.gpus and job.nodes > 1 and (job.gpus_per_node or kind.gpus) < kind.gpus:
            yield InputWarning(
                path=f"{path}.gpus_per_node",
                text=(
                    f"leaves {kind.gpus - (job.gpus_per_node or 0)} GPUs of each node idle and"
                    " sends over the network what could stay in one: fewer, whole nodes"
                ),
            )
        if pool and pool.fallback_zones and (away := _in_one_zone(job, environment)):
            yield InputWarning(
                path=f"{path}.pool",
                text=(
                    f"may run in another zone than {', '.join(away)}, which"
                    f" {'stays' if len(away) == 1 else 'stay'} in {environment.zone}: slower, and"
                    " $0.01 a GB each way"
                ),
            )
        if pool:
            mounted = {
                store: environment.storage[store]
                for store in stores(job)
                if store in environment.storage
            }
            yield from tcp_warnings(f"{path}.pool", mounted, pool)
        yield from pod_warnings(path, job, environment)
        yield from checkpoint_warnings(path, job, environment, region)


def _in_one_zone(job: JobConfig, environment: EnvironmentConfig) -> list[str]:
    """The Lustre stores that a job mounts; an EFS store has a mount target in every zone of a
    pool."""
    return [
        name
        for name in stores(job)
        if name in environment.storage and environment.storage[name].lustre
    ]


def _gang(
    path: str, job: JobConfig, pool: PoolConfig, environment: EnvironmentConfig
) -> Iterator[InputError]:
    """All nodes of a job must come up at once, alike and in one zone."""
    path, most = f"{path}.nodes", largest_gang(pool)
    if job.nodes > pool.max_nodes:
        yield InputError(
            path=path,
            must=f"fit pool {job.pool} (max_nodes {pool.max_nodes})",
            got=str(job.nodes),
            fix=f"raise pools.{job.pool}.max_nodes to {job.nodes}",
        )
    elif job.nodes > most:
        yield InputError(
            path=path,
            must=(
                f"fit the {most} nodes that pool {job.pool} "
                f"{'keeps: it brings up no others' if pool.replicas else 'has reserved'}"
            ),
            got=str(job.nodes),
            fix=f"at most {most}, or another pool",
        )
    if job.nodes > 1 and len(pool.instance_types) > 1:
        yield InputError(
            path=path,
            must=f"be 1 on pool {job.pool}, which has several types: ranks would mix them",
            got=str(job.nodes),
            fix=f"a pool of one type, such as {pool.instance_types[0]}",
        )
    if job.nodes > 1 and pool.fallback_zones:
        yield InputError(
            path=path,
            must=f"be 1 on pool {job.pool}, which has fallback zones: EFA does not cross zones",
            got=str(job.nodes),
            fix="a pool without fallback_zones",
        )
    if job.nodes > 1 and pool.capacity == "spot" and not _resumable(job, environment):
        yield InputError(
            path=path,
            must="be 1 on spot, unless the gang restarts and resumes: one reclaimed node ends all",
            got=str(job.nodes),
            fix="a runtime with max_restarts and checkpoints, or on_demand",
        )


def _resumable(job: JobConfig, environment: EnvironmentConfig) -> bool:
    if job.pytorch_job:
        return job.checkpoints is not None and job.pytorch_job.restarts > 0
    own = environment.own_runtime(job)
    return job.checkpoints is not None and own is not None and own.max_restarts > 0


def _node(path: str, job: JobConfig, pool: PoolConfig) -> Iterator[InputError]:
    """What one pod asks of its node."""
    name = pool.instance_types[0]
    kind = TYPES[name]
    if not kind.gpus:
        yield from _cpu_node(path, job, name)
        return
    gpus = job.gpus_per_node or kind.gpus
    if gpus > kind.gpus:
        yield InputError(
            path=f"{path}.gpus_per_node",
            must=f"fit {name}, which has {kind.gpus}",
            got=str(gpus),
            fix=f"{kind.gpus}, or leave it out for all of them",
        )
    if isinstance(job.processes_per_node, int) and job.processes_per_node > gpus:
        yield InputError(
            path=f"{path}.processes_per_node",
            must=f"be at most the {gpus} GPUs of the pod",
            got=str(job.processes_per_node),
            fix=str(gpus),
        )
    for launch in launches(job.script or " ".join(job.command)):
        if launch.ranks.isdecimal() and int(launch.ranks) > gpus:
            yield InputError(
                path=f"{path}.script",
                must=f"start at most a rank for each of the pod's {gpus} GPUs",
                got=f"--nproc_per_node={launch.ranks}",
                fix="--nproc_per_node=${PET_NPROC_PER_NODE}",
            )
    least = min(TYPES[each].allocatable_mib for each in pool.instance_types)
    if job.shared_memory_gib * 1024 > least // 2:
        yield InputError(
            path=f"{path}.shared_memory_gib",
            must="leave the ranks half of the node's memory",
            got=str(job.shared_memory_gib),
            fix=f"at most {least // 2048}",
        )


def _cpu_node(path: str, job: JobConfig, name: str) -> Iterator[InputError]:
    if job.gpus_per_node is not None:
        yield InputError(
            path=f"{path}.gpus_per_node",
            must=f"be left out on {name}, which has none",
            got=str(job.gpus_per_node),
            fix="drop it, or take a pool with GPUs",
        )
    if job.processes_per_node == "auto":
        yield InputError(
            path=f"{path}.processes_per_node",
            must=f"be a number on {name}: auto counts GPUs",
            got="auto",
            fix="1, and threads for the rest; or one a NUMA node",
        )


def _until_the_end(path: str, job: JobConfig, pool: PoolConfig) -> Iterator[InputError]:
    """A job fits what is left of a Capacity Block."""
    held = pool.reservation
    if job.expected_hours is None or held is None or held.starts is None or held.ends is None:
        return
    hours = (held.ends - held.starts - BLOCK_TAIL) / timedelta(hours=1)
    if job.expected_hours > hours:
        yield InputError(
            path=f"{path}.expected_hours",
            must=(
                f"fit the {hours:.1f} h that {held.id} gives (its nodes drain"
                " 40 minutes before the end)"
            ),
            got=f"{job.expected_hours:g}",
            fix="fewer hours with checkpoints to go on from, or a longer block",
        )


def _controller(
    path: str, job: JobConfig, environment: EnvironmentConfig, set_aside: frozenset[str]
) -> Iterator[InputError]:
    """Which controller runs it, and whether that has what the job asks for."""
    trainer = environment.trainer
    known = (*trainer.runtimes, *trainer.own_runtimes)
    if (job.runtime is None) == (job.pytorch_job is None):
        yield InputError(
            path=path,
            must="have exactly one of runtime (a TrainJob) and pytorch_job (a PyTorchJob)",
            got="both" if job.runtime else "neither",
            fix=f"runtime: {known[-1] if known else '…'}",
        )
    if job.runtime is not None and job.runtime not in known and job.runtime not in set_aside:
        yield InputError(
            path=f"{path}.runtime",
            must="be a runtime of the environment",
            got=job.runtime,
            fix=f"one of {', '.join(known)}",
        )
    own = environment.own_runtime(job)
    if own and own.kind == "mpi" and own.image != job.image:
        yield InputError(
            path=f"{path}.image",
            must=f"be that of {job.runtime}: with MPI a job replaces the launcher's only",
            got=job.image,
            fix=own.image,
        )
    if own and own.kind == "torchtune":
        yield from _recipe(path, job)
    if job.pytorch_job and environment.training_operator is None:
        yield InputError(
            path=f"{path}.pytorch_job",
            must="be run by the training-operator",
            got="no training_operator",
            fix=(
                "environment.training_operator: {version:"
                f" {next(iter(versions.TRAINING_OPERATORS))}}}"
            ),
        )
    restarts = _restarts(job, environment)
    if restarts and not job.checkpoints and not job.allow_no_checkpoint:
        yield InputError(
            path=f"{path}.checkpoints",
            must=f"be what {restarts} restarts resume from",
            got="nothing",
            fix="set checkpoints: {store: …, directory: …} or allow_no_checkpoint: true",
        )
    if job.priority and not job.pytorch_job:
        yield InputError(
            path=f"{path}.priority",
            got=job.priority,
            must=f"be of the runtime: with Trainer {trainer.version} a TrainJob has none",
            fix="trainer.own_runtimes.<name>.priority",
        )
    elif job.priority and job.priority not in environment.priorities:
        yield InputError(
            path=f"{path}.priority",
            must="be one of environment.priorities",
            got=job.priority,
            fix=f"one of {', '.join(environment.priorities) or 'none yet'}",
        )
    line = versions.TRAINER_LINES.get(trainer.version.rpartition(".")[0])
    if job.time_limit_minutes and not job.pytorch_job and line and not line.time_limit:
        yield InputError(
            path=f"{path}.time_limit_minutes",
            must=f"be unknown to Trainer {trainer.version}, which drops it silently",
            got=str(job.time_limit_minutes),
            fix="trainer.version 2.3.0, pytorch_job, or `timeout` in the script",
        )


def torchtune_errors(
    path: str, own: OwnRuntimeConfig, environment: EnvironmentConfig
) -> Iterator[InputError]:
    """Every error of what a runtime of kind torchtune fetches."""
    at = own.torchtune
    if (own.kind == "torchtune") != bool(at):
        yield InputError(
            path=f"{path}.torchtune",
            must="go with kind torchtune, and the kind with it",
            got=own.kind,
            fix="kind: torchtune, and torchtune: {model: …, store: …, directory: …}",
        )
    if at and at.model not in TUNED:
        yield InputError(
            path=f"{path}.torchtune.model",
            must="be a model that upstream has a recipe for",
            got=at.model,
            fix=f"one of {', '.join(TUNED)}",
        )
    if at:
        yield from place_errors(f"{path}.torchtune", at.store, at.directory, environment)
    if at and own.command:
        yield InputError(
            path=f"{path}.command",
            must="be the recipe's",
            got=own.command[0],
            fix="drop it, or a job's script: tune run …",
        )


def _recipe(path: str, job: JobConfig) -> Iterator[InputError]:
    """A job on a runtime of kind torchtune."""
    if job.nodes > 1:
        yield InputError(
            path=f"{path}.nodes",
            must="be 1 with torchtune: no Trainer starts these models' recipes on more",
            got=str(job.nodes),
            fix="1, or a torch runtime with torchrun",
        )
    if job.command == ("tune", "run"):
        yield InputError(
            path=f"{path}.command",
            must=(
                "not be tune run: the Trainer's webhook then looks for the model in"
                " the runtime's name"
            ),
            got=" ".join(job.command)[:60],
            fix="drop it for the runtime's recipe, or script: tune run …",
        )


def _restarts(job: JobConfig, environment: EnvironmentConfig) -> int:
    """How often its controller starts the gang again."""
    own = environment.own_runtime(job)
    return job.pytorch_job.restarts if job.pytorch_job else own.max_restarts if own else 0


def _elastic(path: str, job: JobConfig, pool: PoolConfig | None) -> Iterator[InputError]:
    path, wanted = f"{path}.elastic", job.elastic
    if wanted is None:
        return
    said = f"{wanted.min_nodes} to {wanted.max_nodes}"
    if not job.pytorch_job:
        yield InputError(
            path=path,
            must="not be implemented by any Trainer up to 2.3: JobSet cannot resize",
            got=said,
            fix="drop it and fix nodes, or take pytorch_job: {}",
        )
    elif job.pytorch_job.coordinator:
        yield InputError(
            path=path,
            must="have no Master, so none that coordinates",
            got=said,
            fix="drop elastic or coordinator",
        )
    if not wanted.min_nodes <= job.nodes <= wanted.max_nodes:
        yield InputError(
            path=path,
            must="contain nodes, with which it begins",
            got=f"{said}, nodes {job.nodes}",
            fix=f"min_nodes ≤ {job.nodes} ≤ max_nodes",
        )
    if pool and wanted.max_nodes > largest_gang(pool):
        yield InputError(
            path=f"{path}.max_nodes",
            must=f"fit pool {job.pool}",
            got=str(wanted.max_nodes),
            fix=f"at most {largest_gang(pool)}",
        )


def _waiting(path: str, job: JobConfig) -> Iterator[InputError]:
    """An `up` that waits must be able to see the end."""
    if job.wait == "complete" and (job.expected_hours or 0) * 60 > job.wait_minutes:
        yield InputError(
            path=f"{path}.wait_minutes",
            must=f"be as long as the run (expected_hours {job.expected_hours:g})",
            got=str(job.wait_minutes),
            fix=f"{(job.expected_hours or 0) * 60 + 30:.0f}, or wait: running",
        )
