"""What a job cannot be: gangs that never assemble, ranks that never meet, runs that cannot resume.

Sources: Trainer 2.1 (shared facts trainer.md), traps 2a to 2c of by-hand-and-traps.md; stores.py
has the checkpoints.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta

from catalog import fabric, versions
from plans.trainer import TUNED
from stacks.derive.capacity import TYPES, job_type, largest_gang
from stacks.derive.jobs import stores
from stacks.derive.scripts import launches
from stacks.rules.lustre_efa import tcp_notices
from stacks.rules.pods import place_faults, pod_faults, pod_notices
from stacks.rules.stores import checkpoint_faults, checkpoint_notices
from stacks.settings.environment import EnvironmentConfig, OwnRuntimeConfig, PoolConfig
from stacks.settings.job import JobConfig
from stacks.settings.problems import Fault, Notice

BLOCK_TAIL = timedelta(minutes=40)
"""Karpenter drains a Capacity Block this long before its end (karpenter-provider-aws, a
constant)."""


def job_faults(
    path: str,
    job: JobConfig,
    environment: EnvironmentConfig,
    region: str,
    set_aside: frozenset[str],
) -> Iterator[Fault]:
    """Every fault of a job. `set_aside`: names that were left out, so that no second fault names
    them."""
    pool = environment.pools.get(job.pool)
    if pool is None and job.pool not in set_aside:
        yield Fault(
            path=f"{path}.pool",
            rule="is a pool of the environment",
            value=job.pool,
            way_out=f"one of {', '.join(environment.pools) or 'none yet'}",
        )
    if pool is not None and pool.instance_types and set(pool.instance_types) <= set(TYPES):
        yield from _gang(path, job, pool, environment)
        yield from _node(path, job, pool)
        yield from _until_the_end(path, job, pool)
        yield from checkpoint_faults(path, job, environment, region)
    yield from _controller(path, job, environment, set_aside)
    yield from _elastic(path, job, pool)
    yield from _waiting(path, job)
    yield from pod_faults(path, job, environment, set_aside)


def job_notices(
    jobs: Mapping[str, JobConfig], environment: EnvironmentConfig, region: str, at: str
) -> Iterator[Notice]:
    """What works but should be known about jobs. `at`: the path that holds them."""
    for name, job in jobs.items():
        path, pool = f"{at}.{name}", environment.pools.get(job.pool)
        if (job.runtime or "").startswith(
            "torchtune-"
        ) and job.runtime in environment.trainer.runtimes:
            yield Notice(
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
            yield Notice(path=f"{path}.pool", text=f"{job.pool} {slow}")
        if kind and kind.gpus and job.nodes > 1 and (job.gpus_per_node or kind.gpus) < kind.gpus:
            yield Notice(
                path=f"{path}.gpus_per_node",
                text=(
                    f"leaves {kind.gpus - (job.gpus_per_node or 0)} GPUs of each node idle and"
                    " sends over the network what could stay in one: fewer, whole nodes"
                ),
            )
        if pool and pool.fallback_zones and (away := _in_one_zone(job, environment)):
            yield Notice(
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
            yield from tcp_notices(f"{path}.pool", mounted, pool)
        yield from pod_notices(path, job, environment)
        yield from checkpoint_notices(path, job, environment, region)


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
) -> Iterator[Fault]:
    """All nodes of a job must come up at once, alike and in one zone."""
    path, most = f"{path}.nodes", largest_gang(pool)
    if job.nodes > pool.max_nodes:
        yield Fault(
            path=path,
            rule=f"fits pool {job.pool} (max_nodes {pool.max_nodes})",
            value=str(job.nodes),
            way_out=f"raise pools.{job.pool}.max_nodes to {job.nodes}",
        )
    elif job.nodes > most:
        yield Fault(
            path=path,
            rule=(
                f"fits the {most} nodes that pool {job.pool} "
                f"{'keeps: it brings up no others' if pool.replicas else 'has reserved'}"
            ),
            value=str(job.nodes),
            way_out=f"at most {most}, or another pool",
        )
    if job.nodes > 1 and len(pool.instance_types) > 1:
        yield Fault(
            path=path,
            rule=f"is 1 on pool {job.pool}, which has several types: ranks would mix them",
            value=str(job.nodes),
            way_out=f"a pool of one type, such as {pool.instance_types[0]}",
        )
    if job.nodes > 1 and pool.fallback_zones:
        yield Fault(
            path=path,
            rule=f"is 1 on pool {job.pool}, which has fallback zones: EFA does not cross zones",
            value=str(job.nodes),
            way_out="a pool without fallback_zones",
        )
    if job.nodes > 1 and pool.capacity == "spot" and not _resumable(job, environment):
        yield Fault(
            path=path,
            rule="is 1 on spot, unless the gang restarts and resumes: one reclaimed node ends all",
            value=str(job.nodes),
            way_out="a runtime with max_restarts and checkpoints, or on_demand",
        )


def _resumable(job: JobConfig, environment: EnvironmentConfig) -> bool:
    if job.pytorch_job:
        return job.checkpoints is not None and job.pytorch_job.restarts > 0
    own = environment.own_runtime(job)
    return job.checkpoints is not None and own is not None and own.max_restarts > 0


def _node(path: str, job: JobConfig, pool: PoolConfig) -> Iterator[Fault]:
    """What one pod asks of its node."""
    name = pool.instance_types[0]
    kind = TYPES[name]
    if not kind.gpus:
        yield from _cpu_node(path, job, name)
        return
    gpus = job.gpus_per_node or kind.gpus
    if gpus > kind.gpus:
        yield Fault(
            path=f"{path}.gpus_per_node",
            rule=f"fits {name}, which has {kind.gpus}",
            value=str(gpus),
            way_out=f"{kind.gpus}, or leave it out for all of them",
        )
    if isinstance(job.processes_per_node, int) and job.processes_per_node > gpus:
        yield Fault(
            path=f"{path}.processes_per_node",
            rule=f"is at most the {gpus} GPUs of the pod",
            value=str(job.processes_per_node),
            way_out=str(gpus),
        )
    for launch in launches(job.script or " ".join(job.command)):
        if launch.ranks.isdecimal() and int(launch.ranks) > gpus:
            yield Fault(
                path=f"{path}.script",
                rule=f"starts at most a rank for each of the pod's {gpus} GPUs",
                value=f"--nproc_per_node={launch.ranks}",
                way_out="--nproc_per_node=${PET_NPROC_PER_NODE}",
            )
    least = min(TYPES[each].allocatable_mib for each in pool.instance_types)
    if job.shared_memory_gib * 1024 > least // 2:
        yield Fault(
            path=f"{path}.shared_memory_gib",
            rule="leaves the ranks half of the node's memory",
            value=str(job.shared_memory_gib),
            way_out=f"at most {least // 2048}",
        )


def _cpu_node(path: str, job: JobConfig, name: str) -> Iterator[Fault]:
    if job.gpus_per_node is not None:
        yield Fault(
            path=f"{path}.gpus_per_node",
            rule=f"is left out on {name}, which has none",
            value=str(job.gpus_per_node),
            way_out="drop it, or take a pool with GPUs",
        )
    if job.processes_per_node == "auto":
        yield Fault(
            path=f"{path}.processes_per_node",
            rule=f"is a number on {name}: auto counts GPUs",
            value="auto",
            way_out="1, and threads for the rest; or one a NUMA node",
        )


def _until_the_end(path: str, job: JobConfig, pool: PoolConfig) -> Iterator[Fault]:
    """A job fits what is left of a Capacity Block."""
    held = pool.reservation
    if job.expected_hours is None or held is None or held.starts is None or held.ends is None:
        return
    hours = (held.ends - held.starts - BLOCK_TAIL) / timedelta(hours=1)
    if job.expected_hours > hours:
        yield Fault(
            path=f"{path}.expected_hours",
            rule=(
                f"fits the {hours:.1f} h that {held.id} gives (its nodes drain"
                " 40 minutes before the end)"
            ),
            value=f"{job.expected_hours:g}",
            way_out="fewer hours with checkpoints to go on from, or a longer block",
        )


def _controller(
    path: str, job: JobConfig, environment: EnvironmentConfig, set_aside: frozenset[str]
) -> Iterator[Fault]:
    """Which controller runs it, and whether that has what the job asks for."""
    trainer = environment.trainer
    known = (*trainer.runtimes, *trainer.own_runtimes)
    if (job.runtime is None) == (job.pytorch_job is None):
        yield Fault(
            path=path,
            rule="has exactly one of runtime (a TrainJob) and pytorch_job (a PyTorchJob)",
            value="both" if job.runtime else "neither",
            way_out=f"runtime: {known[-1] if known else '…'}",
        )
    if job.runtime is not None and job.runtime not in known and job.runtime not in set_aside:
        yield Fault(
            path=f"{path}.runtime",
            rule="is a runtime of the environment",
            value=job.runtime,
            way_out=f"one of {', '.join(known)}",
        )
    own = environment.own_runtime(job)
    if own and own.kind == "mpi" and own.image != job.image:
        yield Fault(
            path=f"{path}.image",
            rule=f"is that of {job.runtime}: with MPI a job replaces the launcher's only",
            value=job.image,
            way_out=own.image,
        )
    if own and own.kind == "torchtune":
        yield from _recipe(path, job)
    if job.pytorch_job and environment.training_operator is None:
        yield Fault(
            path=f"{path}.pytorch_job",
            rule="is run by the training-operator",
            value="no training_operator",
            way_out=(
                "environment.training_operator: {version:"
                f" {next(iter(versions.TRAINING_OPERATORS))}}}"
            ),
        )
    restarts = _restarts(job, environment)
    if restarts and not job.checkpoints and not job.allow_no_checkpoint:
        yield Fault(
            path=f"{path}.checkpoints",
            rule=f"is what {restarts} restarts resume from",
            value="nothing",
            way_out="set checkpoints: {store: …, directory: …} or allow_no_checkpoint: true",
        )
    if job.priority and not job.pytorch_job:
        yield Fault(
            path=f"{path}.priority",
            value=job.priority,
            rule=f"is of the runtime: with Trainer {trainer.version} a TrainJob has none",
            way_out="trainer.own_runtimes.<name>.priority",
        )
    elif job.priority and job.priority not in environment.priorities:
        yield Fault(
            path=f"{path}.priority",
            rule="is one of environment.priorities",
            value=job.priority,
            way_out=f"one of {', '.join(environment.priorities) or 'none yet'}",
        )
    line = versions.TRAINER_LINES.get(trainer.version.rpartition(".")[0])
    if job.time_limit_minutes and not job.pytorch_job and line and not line.time_limit:
        yield Fault(
            path=f"{path}.time_limit_minutes",
            rule=f"is unknown to Trainer {trainer.version}, which drops it silently",
            value=str(job.time_limit_minutes),
            way_out="trainer.version 2.3.0, pytorch_job, or `timeout` in the script",
        )


def torchtune_faults(
    path: str, own: OwnRuntimeConfig, environment: EnvironmentConfig
) -> Iterator[Fault]:
    """Every fault of what a runtime of kind torchtune fetches."""
    at = own.torchtune
    if (own.kind == "torchtune") != bool(at):
        yield Fault(
            path=f"{path}.torchtune",
            rule="goes with kind torchtune, and the kind with it",
            value=own.kind,
            way_out="kind: torchtune, and torchtune: {model: …, store: …, directory: …}",
        )
    if at and at.model not in TUNED:
        yield Fault(
            path=f"{path}.torchtune.model",
            rule="is a model that upstream has a recipe for",
            value=at.model,
            way_out=f"one of {', '.join(TUNED)}",
        )
    if at:
        yield from place_faults(f"{path}.torchtune", at.store, at.directory, environment)
    if at and own.command:
        yield Fault(
            path=f"{path}.command",
            rule="is the recipe's",
            value=own.command[0],
            way_out="drop it, or a job's script: tune run …",
        )


def _recipe(path: str, job: JobConfig) -> Iterator[Fault]:
    """A job on a runtime of kind torchtune."""
    if job.nodes > 1:
        yield Fault(
            path=f"{path}.nodes",
            rule="is 1 with torchtune: no Trainer starts these models' recipes on more",
            value=str(job.nodes),
            way_out="1, or a torch runtime with torchrun",
        )
    if job.command == ("tune", "run"):
        yield Fault(
            path=f"{path}.command",
            rule=(
                "is not tune run: the Trainer's webhook then looks for the model in"
                " the runtime's name"
            ),
            value=" ".join(job.command)[:60],
            way_out="drop it for the runtime's recipe, or script: tune run …",
        )


def _restarts(job: JobConfig, environment: EnvironmentConfig) -> int:
    """How often its controller starts the gang again."""
    own = environment.own_runtime(job)
    return job.pytorch_job.restarts if job.pytorch_job else own.max_restarts if own else 0


def _elastic(path: str, job: JobConfig, pool: PoolConfig | None) -> Iterator[Fault]:
    path, wanted = f"{path}.elastic", job.elastic
    if wanted is None:
        return
    said = f"{wanted.min_nodes} to {wanted.max_nodes}"
    if not job.pytorch_job:
        yield Fault(
            path=path,
            rule="is not implemented by any Trainer up to 2.3: JobSet cannot resize",
            value=said,
            way_out="drop it and fix nodes, or take pytorch_job: {}",
        )
    elif job.pytorch_job.coordinator:
        yield Fault(
            path=path,
            rule="has no Master, so none that coordinates",
            value=said,
            way_out="drop elastic or coordinator",
        )
    if not wanted.min_nodes <= job.nodes <= wanted.max_nodes:
        yield Fault(
            path=path,
            rule="contains nodes, with which it begins",
            value=f"{said}, nodes {job.nodes}",
            way_out=f"min_nodes ≤ {job.nodes} ≤ max_nodes",
        )
    if pool and wanted.max_nodes > largest_gang(pool):
        yield Fault(
            path=f"{path}.max_nodes",
            rule=f"fits pool {job.pool}",
            value=str(wanted.max_nodes),
            way_out=f"at most {largest_gang(pool)}",
        )


def _waiting(path: str, job: JobConfig) -> Iterator[Fault]:
    """An `up` that waits must be able to see the end."""
    if job.wait == "complete" and (job.expected_hours or 0) * 60 > job.wait_minutes:
        yield Fault(
            path=f"{path}.wait_minutes",
            rule=f"is as long as the run (expected_hours {job.expected_hours:g})",
            value=str(job.wait_minutes),
            way_out=f"{(job.expected_hours or 0) * 60 + 30:.0f}, or wait: running",
        )
