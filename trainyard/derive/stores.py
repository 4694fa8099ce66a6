"""Effects of a store on a job's checkpoints, and the image repositories of a stack.

What follows from a store's settings is in the class of its kind: trainyard/stores/. What is refused:
trainyard/rules/stores.py and trainyard/rules/checkpoints.py.
"""

from __future__ import annotations

from collections.abc import Mapping

from trainyard.catalog.failure_rates import failure_rate
from trainyard.plans.identity import Identity
from trainyard.plans.images import RegistryPlan
from trainyard.settings.environment import EnvironmentConfig, RegistryConfig
from trainyard.settings.job import JobConfig
from trainyard.settings.pools import PoolConfig
from trainyard.settings.stores import StoreConfig
from trainyard.stores.goodput import ASYNC_STALL_SECONDS, Training, Verdict, verdict
from trainyard.stores.kinds import kind_of, sized


def job_verdict(job: JobConfig, environment: EnvironmentConfig, region: str) -> Verdict | None:
    """Effects of the store on the job's checkpoints, where pool and store are sound enough to
    tell."""
    pool = environment.pools.get(job.pool)
    store = environment.storage.get(job.checkpoints.store) if job.checkpoints else None
    if pool is None or not pool.instance_types or store is None:
        return None
    return checkpoint_verdict(job, sized_store(store, environment, region), region, pool)


def sized_store(store: StoreConfig, environment: EnvironmentConfig, region: str) -> StoreConfig:
    """The store with its size decided for the pools of the environment."""
    first = [each.instance_types[0] for each in environment.pools.values() if each.instance_types]
    return sized(store, region, first)


def job_verdicts(
    jobs: Mapping[str, JobConfig], environment: EnvironmentConfig, region: str
) -> dict[str, Verdict]:
    """Effects of stores on the checkpoints of each job, where they are known."""
    verdicts = {name: job_verdict(job, environment, region) for name, job in jobs.items()}
    return {name: verdict for name, verdict in verdicts.items() if verdict}


def checkpoint_verdict(
    job: JobConfig, store: StoreConfig, region: str, pool: PoolConfig
) -> Verdict | None:
    """Effects of that store on the job's checkpoints; None where the size of the model is not
    known, or the speed of the store."""
    found = kind_of(store)
    if found is None or job.parameters_billion is None or job.checkpoints is None:
        return None
    kind, settings = found
    speed = kind.checkpoint_store(settings, region)
    if speed is None:
        return None
    instance_type = pool.instance_types[0]
    training = Training(
        parameters_billion=job.parameters_billion,
        nodes=job.nodes,
        instance_type=instance_type,
        bytes_per_parameter=job.bytes_per_parameter,
        stall_seconds=ASYNC_STALL_SECONDS if job.checkpoints.asynchronous else None,
        failures_per_1000_node_days=stop_rate(job, pool),
    )
    interval = job.checkpoints.interval_minutes
    return verdict(
        training,
        speed,
        interval_seconds=interval * 60 if interval else None,
        mounted_over_efa=kind.mounts_over_efa(settings, pool, instance_type),
    )


def stop_rate(job: JobConfig, pool: PoolConfig) -> float:
    """Stops per 1000 node-days that the plan of a job counts with: those of its nodes, and all others."""
    return failure_rate(
        spot=pool.capacity == "spot", nodes=job.nodes, other_stops_a_day=job.other_stops_per_day
    )


def registry_plans(
    me: Identity, registries: Mapping[str, RegistryConfig]
) -> dict[str, RegistryPlan]:
    """The image repositories of a stack, each called `<stack>/<name>`."""
    return {
        name: RegistryPlan(
            identity=me,
            name=f"{me.stack}/{name}",
            keep=registry.data == "keep",
            keep_images=registry.keep_images,
        )
        for name, registry in registries.items()
    }
