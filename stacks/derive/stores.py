"""What follows from a store's settings: its size and speed, and what a job's checkpoints take on it.

The arithmetic is stacks/derive/goodput.py; what FSx and EFS sell is catalog/storage.py; what is
refused is stacks/rules/stores.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache

from catalog import versions
from catalog.storage import EFA_LUSTRE_CLIENTS
from plans.parts import Identity, LustrePlan, RegistryPlan
from stacks.derive.capacity import lnet_devices
from stacks.derive.goodput import (
    ASYNC_STALL_SECONDS,
    Choice,
    Store,
    Training,
    Verdict,
    for_model,
    verdict,
)
from stacks.settings.environment import (
    EnvironmentConfig,
    LustreConfig,
    PoolConfig,
    RegistryConfig,
    StoreConfig,
)
from stacks.settings.job import JobConfig

COMPRESSION = "LZ4"
"""FSx's only one."""
METADATA_OVER_EFA = "AUTOMATIC"
"""A file system made for EFA must have a metadata configuration; in this mode its speed grows with
the capacity."""


def sized(store: StoreConfig, region: str, instance_types: Sequence[str]) -> StoreConfig:
    """The store with size and speed: as given, or the cheapest that serves `for_model` on the first
    of the types; made for EFA, on the first that can mount over it."""
    wanted = store.lustre.for_model if store.lustre else None
    if store.lustre is None or wanted is None:
        return store
    choice = chosen(
        wanted.parameters_billion,
        wanted.nodes,
        client(store.lustre, instance_types),
        region,
        wanted.goodput_percent,
        wanted.bytes_per_parameter,
        efa=store.lustre.efa,
    )
    if choice is None:
        return store
    return replace(
        store,
        lustre=replace(
            store.lustre,
            for_model=None,
            capacity_gib=choice.store.capacity_gib,
            throughput_mbps_per_tib=choice.store.tier,
        ),
    )


def job_verdict(job: JobConfig, environment: EnvironmentConfig, region: str) -> Verdict | None:
    """What the job's checkpoints take, where pool and store are sound enough to tell."""
    pool = environment.pools.get(job.pool)
    store = environment.storage.get(job.checkpoints.store) if job.checkpoints else None
    if (
        pool is None
        or not pool.instance_types
        or store is None
        or (store.lustre is None) == (store.efs is None)
    ):
        return None
    store = sized(
        store,
        region,
        [each.instance_types[0] for each in environment.pools.values() if each.instance_types],
    )
    lustre = store.lustre
    if lustre and (
        not lustre.capacity_gib
        or lustre.deployment != "SCRATCH_2"
        and not lustre.throughput_mbps_per_tib
    ):
        return None
    return checkpoint_verdict(job, store, region, pool)


def job_verdicts(
    jobs: Mapping[str, JobConfig], environment: EnvironmentConfig, region: str
) -> dict[str, Verdict]:
    """What the checkpoints of each job take, where that can be told."""
    verdicts = {name: job_verdict(job, environment, region) for name, job in jobs.items()}
    return {name: verdict for name, verdict in verdicts.items() if verdict}


def checkpoint_verdict(
    job: JobConfig, store: StoreConfig, region: str, pool: PoolConfig
) -> Verdict | None:
    """What the job's checkpoints take there; None where the size of the model is not known."""
    instance_type = pool.instance_types[0]
    if job.parameters_billion is None or job.checkpoints is None:
        return None
    training = Training(
        parameters_billion=job.parameters_billion,
        nodes=job.nodes,
        instance_type=instance_type,
        bytes_per_parameter=job.bytes_per_parameter,
        stall_seconds=ASYNC_STALL_SECONDS if job.checkpoints.asynchronous else None,
    )
    interval = job.checkpoints.interval_minutes
    return verdict(
        training,
        _store(store, region),
        interval_seconds=interval * 60 if interval else None,
        mounted_over_efa=mounts_over_efa(store.lustre, pool, instance_type),
    )


def lustre_plans(me: Identity, stores: Mapping[str, StoreConfig]) -> dict[str, LustrePlan]:
    """What the Lustre stores among them are made from, once their size is decided."""
    return {
        name: LustrePlan(
            identity=me,
            capacity_gib=lustre.capacity_gib,
            deployment=lustre.deployment,
            version=versions.LUSTRE,
            throughput_mbps_per_tib=lustre.throughput_mbps_per_tib,
            backup_days=lustre.backup_days,
            efa=lustre.efa,
            compression=COMPRESSION,
            metadata=METADATA_OVER_EFA if lustre.efa else None,
            keep=store.data == "keep",
            repositories={
                f"{name}.{link}": repository for link, repository in lustre.repositories.items()
            },
        )
        for name, store in stores.items()
        if (lustre := store.lustre) and lustre.capacity_gib
    }


def registry_plans(
    me: Identity, registries: Mapping[str, RegistryConfig]
) -> dict[str, RegistryPlan]:
    """The image repositories of a stack, each called `<stack>/<name>`."""
    return {
        name: RegistryPlan(identity=me, name=f"{me.stack}/{name}", keep=registry.data == "keep")
        for name, registry in registries.items()
    }


def mounts_over_efa(lustre: LustreConfig | None, pool: PoolConfig, instance_type: str) -> bool:
    """Whether nodes of the type do."""
    return lustre is not None and lustre.efa and lnet_devices(pool, instance_type) > 0


@cache
def chosen(
    parameters_billion: float,
    nodes: int,
    instance_type: str,
    region: str,
    goodput_percent: float,
    bytes_per_parameter: float,
    *,
    blocking: bool = True,
    efa: bool = False,
) -> Choice | None:
    """for_model, remembered: many jobs ask the same."""
    return for_model(
        parameters_billion=parameters_billion,
        nodes=nodes,
        instance_type=instance_type,
        region=region,
        goodput=goodput_percent / 100,
        bytes_per_parameter=bytes_per_parameter,
        blocking=blocking,
        efa=efa,
    )


def client(lustre: LustreConfig, instance_types: Sequence[str]) -> str:
    """The type that a store is sized for."""
    able = [kind for kind in instance_types if lustre.efa and kind in EFA_LUSTRE_CLIENTS]
    return [*able, *instance_types, ""][0]


def _store(store: StoreConfig, region: str) -> Store:
    lustre = store.lustre
    if lustre is None:
        return Store(kind="efs", region=region)
    return Store(
        kind="lustre",
        capacity_gib=lustre.capacity_gib,
        deployment=lustre.deployment,
        tier=lustre.throughput_mbps_per_tib,
        efa=lustre.efa,
    )
