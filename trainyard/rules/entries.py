"""Errors about an entry of `jobs` in a stack file: it names what does not exist, its controller
cannot do it, or it cannot resume. What no training job can be: jobs.py. What its pool cannot give:
gangs.py.

Sources: Kubeflow Trainer at v2.1.0 and v2.3.0, training-operator v1.8.1. Examples of each rule:
tests/support/cases/environment.py. Checkpoints: stores.py.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from trainyard.catalog import fabric, versions
from trainyard.derive.job_view import JobView, entry_view, restarts_of
from trainyard.derive.jobs import stores
from trainyard.derive.pools import TYPES, job_type
from trainyard.objects.jobs.upstream_runtimes import TUNED
from trainyard.problems import REMOVE, At, InputError, InputWarning, one_of, write_one_of
from trainyard.rules.buckets import identity_warnings
from trainyard.rules.checkpoints import checkpoint_errors, checkpoint_warnings, place_to_save
from trainyard.rules.elastic import elastic_errors, elastic_warnings
from trainyard.rules.gangs import gang_errors, switched_off
from trainyard.rules.hosts import entry_host_warnings
from trainyard.rules.jobs import controller_fix, job_problems
from trainyard.rules.loads import load_errors, load_warnings, shared_place_errors
from trainyard.rules.model_memory import model_memory_warnings
from trainyard.rules.pod_resources import mount_memory_warnings, request_problems
from trainyard.rules.pods import pod_errors, pod_warnings, store_directory_errors
from trainyard.rules.pools import unknown_pool
from trainyard.rules.runtimes import runtime_errors, runtime_warnings
from trainyard.rules.secrets import secret_errors, secret_warnings
from trainyard.rules.writes import weak_writes
from trainyard.settings.environment import EnvironmentConfig, OwnRuntimeConfig
from trainyard.settings.job import RUN_NUMBER, JobConfig
from trainyard.settings.pools import PoolConfig
from trainyard.stores.kinds import kinds_of
from trainyard.stores.lustre_sharing import import_errors


@dataclass(frozen=True, kw_only=True)
class Judged:
    """Errors and warnings about jobs."""

    errors: tuple[InputError, ...]
    warnings: tuple[InputWarning, ...]


def judged(
    path: str,
    jobs: Mapping[str, JobConfig],
    environment: EnvironmentConfig,
    region: str,
) -> Judged:
    """Every error and warning of jobs. `path`: that holds them."""
    errors: list[InputError] = []
    warnings: list[InputWarning] = []
    for name, job in jobs.items():
        at = f"{path}.{name}"
        view = entry_view(at, job, environment)
        problems = list(job_problems(view))
        errors += _errors(view, at, job, environment, region)
        errors += [problem for problem in problems if isinstance(problem, InputError)]
        warnings += _entry_warnings(at, job, environment)
        mounts = {f"{mount.path.rstrip('/')}/": store for store, mount in job.storage.items()}
        warnings += weak_writes(view, mounts, environment)
        warnings += [problem for problem in problems if isinstance(problem, InputWarning)]
        warnings += entry_host_warnings(view, name, job)
        warnings += elastic_warnings(at, job, environment)
        warnings += identity_warnings(view, job, environment)
        warnings += runtime_warnings(at, job, environment)
        warnings += pod_warnings(at, job, environment)
        warnings += model_memory_warnings(at, job, environment)
        warnings += load_warnings(at, job)
        warnings += secret_warnings(at, job)
        warnings += checkpoint_warnings(at, job, environment, region)
    errors += shared_place_errors(path, jobs)
    return Judged(errors=tuple(errors), warnings=tuple(warnings))


def _errors(
    view: JobView,
    path: str,
    job: JobConfig,
    environment: EnvironmentConfig,
    region: str,
) -> Iterator[InputError]:
    """Errors that only an entry can have."""
    pool = environment.pools.get(job.pool)
    if pool is None:
        yield unknown_pool(path, job.pool, environment)
    if pool is not None and pool.instance_types and set(pool.instance_types) <= set(TYPES):
        yield from gang_errors(view, job.pool, pool)
        yield from _processes(path, job, pool)
        problems = request_problems(view, job.pool, pool)
        yield from (each for each in problems if isinstance(each, InputError))
        yield from checkpoint_errors(path, job, environment, region)
    yield from import_errors(path, job, environment)
    yield from _runtime(path, job, environment)
    yield from runtime_errors(path, job, environment)
    yield from _pytorch_job(path, job, environment)
    yield from _resume(path, job, environment)
    yield from _priority(path, job, environment)
    yield from _time_limit(path, job, environment)
    yield from elastic_errors(path, job, environment)
    yield from _wait(path, job)
    yield from pod_errors(path, job, environment)
    yield from secret_errors(path, job, region)
    yield from load_errors(path, job, environment, region)


def _entry_warnings(
    path: str, job: JobConfig, environment: EnvironmentConfig
) -> Iterator[InputWarning]:
    """Warnings about the pool and the runtime of an entry that works."""
    pool = environment.pools.get(job.pool)
    if pool:
        yield from _pool_warnings(f"{path}.pool", job, pool, environment)
        yield from mount_memory_warnings(path, job, environment)
    left = job.resumes_from
    if left and job.run > 1 and job.checkpoints and job.checkpoints.when_changed != "afresh":
        yield At(f"{path}.run").warning(
            f"run {job.run} resumes from the checkpoint that the run before it left in {left}. If"
            " that run has finished, this one ends at once. To begin afresh, write"
            f" {RUN_NUMBER} into checkpoints.directory, such as"
            f" {left.partition('/')[2]}/{RUN_NUMBER}"
        )
    runtime = job.runtime or ""
    if runtime.startswith("torchtune-") and runtime in environment.trainer.runtimes:
        yield At(f"{path}.runtime").warning(
            f"{runtime} waits for a PersistentVolumeClaim or a StorageClass that this"
            " program does not create; an own runtime of kind torchtune has a store"
        )


def _pool_warnings(
    path: str, job: JobConfig, pool: PoolConfig, environment: EnvironmentConfig
) -> Iterator[InputWarning]:
    yield from switched_off(At(path), job.pool, pool)
    kind = job_type(job, environment)
    slow = fabric.slow(kind) if kind and job.nodes > 1 and not job.allow_slow_fabric else None
    if slow:
        yield At(path).warning(f"{job.pool} {slow}")
    mounted = [
        (name, *found)
        for name in stores(job)
        if name in environment.storage
        for found in kinds_of(environment.storage[name])
    ]
    away = [name for name, store_kind, _ in mounted if store_kind.zonal]
    if pool.fallback_zones and away:
        yield At(path).warning(
            f"the job may run in another zone than {', '.join(away)} in {environment.zone}, also while that zone"
            " has capacity: slower, and $0.01 a GB each way"
        )
    for name, store_kind, settings in mounted:
        yield from store_kind.mount_warnings(path, name, settings, pool)


def _processes(path: str, job: JobConfig, pool: PoolConfig) -> Iterator[InputError]:
    name, wanted = pool.instance_types[0], job.processes_per_node
    at = At(f"{path}.processes_per_node")
    if not TYPES[name].gpus and wanted in ("auto", "gpu"):
        yield at.must(
            f"be a number, or cpu for a process each CPU, on {name}, which has no GPU: {wanted} counts GPUs",
            got=f"{wanted}{', the default' * (wanted == 'auto')}",
            fix="write 1, and let threads do the rest; or write cpu",
        )
    if TYPES[name].gpus and wanted == "cpu":
        yield at.must(
            f"be gpu or a number on {name}: each rank takes a GPU", got=wanted, fix="write gpu"
        )


def _runtime(path: str, job: JobConfig, environment: EnvironmentConfig) -> Iterator[InputError]:
    known = (*environment.trainer.runtimes, *environment.trainer.own_runtimes)
    if (job.runtime is None) == (job.pytorch_job is None):
        yield At(path).must(
            "have exactly one of runtime (a TrainJob) and pytorch_job (a PyTorchJob)",
            got="both" if job.runtime else "neither",
            fix=(
                "delete pytorch_job for a TrainJob, or delete runtime for a PyTorchJob"
                if job.runtime
                else f"write runtime: {known[-1]}"
                if known
                else "write pytorch_job: {}"
            ),
        )
    if job.runtime is not None and job.runtime not in known:
        yield At(f"{path}.runtime").must(
            "be a runtime of the environment",
            got=job.runtime,
            fix=write_one_of(known, "add one under environment.trainer.runtimes", job.runtime),
        )
    if own := environment.own_runtime(job):
        yield from _on_own_runtime(path, job, own, environment.pools)


def _on_own_runtime(
    path: str, job: JobConfig, own: OwnRuntimeConfig, pools: Collection[str]
) -> Iterator[InputError]:
    """A job beside the settings of its runtime. `pools`: those of the environment."""
    if own.kind == "mpi" and own.image != job.image:
        yield At(f"{path}.image").must(
            f"be the image of {job.runtime}: with MPI a job replaces the image of the launcher only, and"
            " the other pods keep that of the runtime",
            got=job.image,
            fix=f"write {own.image}, or write image: {job.image} under"
            f" environment.trainer.own_runtimes.{job.runtime}",
            write=own.image,
        )
    if own.pool in pools and own.pool != job.pool:
        yield At(f"{path}.pool").must(
            f"be {own.pool}, as its runtime {job.runtime} has pool: {own.pool}",
            got=job.pool,
            fix=f"write {own.pool}, or delete environment.trainer.own_runtimes.{job.runtime}.pool",
            write=own.pool,
        )
    if own.kind == "torchtune":
        yield from _torchtune_job(path, job)


def _torchtune_job(path: str, job: JobConfig) -> Iterator[InputError]:
    """A job on a runtime of kind torchtune."""
    if job.nodes > 1:
        yield At(f"{path}.nodes").must(
            "be 1 with torchtune: the Trainer starts the recipes of these models on one node only",
            got=job.nodes,
            fix="write 1, or use a torch runtime with torchrun",
        )
    if job.arguments is not None:
        yield At(f"{path}.arguments").must(
            "not be set with torchtune: the recipe of the runtime has arguments of its own, and takes no others",
            got=" ".join(job.arguments)[:60] or "[]",
            fix="delete it, and the recipe runs as it is; or write script: tune run …, with arguments of your own",
            write=REMOVE,
        )
    if job.command == ("tune", "run"):
        yield At(f"{path}.command").must(
            "not be `tune run`: the Trainer then reads the model from the name of the runtime, and"
            f" the name {job.runtime} has none",
            got=" ".join(job.command)[:60],
            fix="delete it, and the recipe of the runtime runs; or write script: tune run …",
        )


def torchtune_errors(
    path: str, own: OwnRuntimeConfig, environment: EnvironmentConfig
) -> Iterator[InputError]:
    """Every error of what a runtime of kind torchtune fetches."""
    wanted = own.torchtune
    if wanted and own.kind != "torchtune":
        yield At(f"{path}.torchtune").not_set(
            f"with kind: {own.kind}", got="a model", instead="write kind: torchtune"
        )
    if own.kind == "torchtune" and not wanted:
        store = next(iter(environment.storage), "…")
        yield At(f"{path}.torchtune").must(
            f"be set with kind: torchtune, for {one_of(TUNED, '')}",
            got="nothing",
            fix=f"add torchtune: {{model: {next(iter(TUNED))}, store: {store}, directory: tune}}",
        )
    if not wanted:
        return
    if wanted.model not in TUNED:
        yield At(f"{path}.torchtune.model").must(
            "be a model for which the Trainer has a recipe of torchtune",
            got=wanted.model,
            fix=f"write one of {', '.join(TUNED)}; or name a runtime of kind torch for another model",
        )
    yield from store_directory_errors(
        f"{path}.torchtune", wanted.store, wanted.directory, environment
    )
    if own.command:
        yield At(f"{path}.command").must(
            "not be set with torchtune: the recipe has its own command",
            got=own.command[0],
            fix="delete it; name script: tune run … in a job that needs another command",
        )


def _pytorch_job(path: str, job: JobConfig, environment: EnvironmentConfig) -> Iterator[InputError]:
    if job.pytorch_job and environment.training_operator is None:
        yield At(f"{path}.pytorch_job").must(
            "have the training-operator in its environment",
            got="no training_operator",
            fix=controller_fix("PyTorchJob"),
        )
    if job.pytorch_job and job.pytorch_job.coordinator and job.arguments is not None:
        yield At(f"{path}.arguments").must(
            "not be set beside coordinator, which starts the command of each Worker itself",
            got=" ".join(job.arguments)[:60] or "[]",
            fix="delete it, and write the entrypoint of the image with its arguments into command",
        )


def _resume(path: str, job: JobConfig, environment: EnvironmentConfig) -> Iterator[InputError]:
    restarts = restarts_of(job, environment)
    if restarts and not job.checkpoints and not job.allow_no_checkpoint:
        yield At(f"{path}.checkpoints").must(
            f"be set: without it each of {restarts} restarts begins from zero",
            got="nothing",
            fix=f"write {place_to_save(path, environment)}; or write allow_no_checkpoint: true in its place",
        )
    saved = job.checkpoints
    if saved and saved.when_changed == "afresh" and RUN_NUMBER in saved.directory:
        yield At(f"{path}.checkpoints.when_changed").must(
            f"not be afresh beside {RUN_NUMBER} in the directory: each run has a directory of its own there, empty at"
            " first",
            got=saved.when_changed,
            fix=f"write resume, and a new run still finds its directory empty; or delete {RUN_NUMBER} from"
            " checkpoints.directory",
        )


def _priority(path: str, job: JobConfig, environment: EnvironmentConfig) -> Iterator[InputError]:
    if job.priority and not job.pytorch_job:
        yield At(f"{path}.priority").must(
            f"not be set: with Trainer {environment.trainer.version} the priority of a TrainJob"
            " is that of its runtime",
            got=job.priority,
            fix=f"delete it, and write priority: {job.priority} under"
            f" environment.trainer.own_runtimes.{job.runtime if environment.own_runtime(job) else '<name>'}"
            + f" and write {job.priority}: 1000 under environment.priorities"
            * (job.priority not in environment.priorities),
        )
    elif job.priority and job.priority not in environment.priorities:
        yield At(f"{path}.priority").must(
            "be one of environment.priorities",
            got=job.priority,
            fix=write_one_of(
                environment.priorities,
                f"add {job.priority}: 1000 under environment.priorities",
                job.priority,
            ),
        )


def _time_limit(path: str, job: JobConfig, environment: EnvironmentConfig) -> Iterator[InputError]:
    release = environment.trainer.version
    line = versions.TRAINER_LINES.get(release.rpartition(".")[0])
    if job.time_limit_minutes and not job.pytorch_job and line and not line.time_limit:
        yield At(f"{path}.time_limit_minutes").must(
            f"not be set: Trainer {release} does not know the field and drops it silently",
            got=job.time_limit_minutes,
            fix="set trainer.version to 2.3.0, or use pytorch_job, or run `timeout` in the script",
        )


def _wait(path: str, job: JobConfig) -> Iterator[InputError]:
    """An `up` that waits must be able to see the end."""
    minutes = (job.expected_hours or 0) * 60
    if job.wait == "complete" and minutes > job.wait_minutes:
        yield At(f"{path}.wait_minutes").must(
            f"be as long as the run, which takes expected_hours {job.expected_hours:g}",
            got=job.wait_minutes,
            fix=f"write {minutes + 30:.0f}, or wait: running",
        )
