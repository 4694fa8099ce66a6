"""Which stores cannot work, and which checkpoints of jobs cannot work on them.

What follows from a store's settings is stacks/derive/stores.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import ceil

from catalog.storage import LUSTRE_TIERS
from stacks.derive.goodput import (
    CHECKPOINTS_KEPT,
    LARGEST_GIB,
    Verdict,
)
from stacks.derive.mount_targets import mount_zones
from stacks.derive.stores import chosen, client, job_verdict
from stacks.rules.lustre_repositories import repository_errors
from stacks.settings.environment import EnvironmentConfig, LustreConfig, StoreConfig
from stacks.settings.job import JobConfig
from stacks.settings.problems import REMOVE, InputError, InputWarning

WORTH_A_WARNING = 0.90
"""A goodput below this is a warning even where the job asks for none."""


def store_errors(
    path: str, store: StoreConfig, region: str, instance_types: list[str]
) -> Iterator[InputError]:
    """Every error of one store."""
    if (store.lustre is None) == (store.efs is None):
        yield InputError(
            path=path,
            must="have either lustre or efs",
            got="both" if store.lustre else "neither",
            fix=(
                "delete one of the two"
                if store.lustre
                else "write {efs: {}}, or {lustre: {capacity_gib: 4800, throughput_mbps_per_tib: 500}}"
            ),
            write=None if store.lustre else {"efs": {}},
        )
    if store.lustre is None:
        return
    path = f"{path}.lustre"
    if store.lustre.for_model is not None:
        yield from _sized_for_model(path, store.lustre, region, instance_types)
    else:
        yield from _size_and_speed(path, store.lustre)
    yield from repository_errors(path, store.lustre)
    if store.lustre.backup_days and store.lustre.deployment == "SCRATCH_2":
        yield InputError(
            path=f"{path}.backup_days",
            must="not be set with deployment: SCRATCH_2, of which FSx makes no backups",
            got=str(store.lustre.backup_days),
            fix="delete it, or write deployment: PERSISTENT_2",
            write=REMOVE,
        )


def _size_and_speed(path: str, lustre: LustreConfig) -> Iterator[InputError]:
    size, tier = lustre.capacity_gib, lustre.throughput_mbps_per_tib
    if size is None:
        yield InputError(
            path=f"{path}.capacity_gib",
            must="be set, unless for_model is",
            got="nothing",
            fix=(
                "add capacity_gib: 4800, or for_model: {parameters_billion: 70, nodes: 16} in the"
                " place of size and speed"
            ),
            write=4800,
        )
    elif size != 1200 and size % 2400:
        near = 1200 if size < 1800 else max(2400, round(size / 2400) * 2400)
        yield InputError(
            path=f"{path}.capacity_gib",
            must="be 1200 or a multiple of 2400, as FSx sells it",
            got=str(size),
            fix=f"write {near}",
            write=near,
        )
    elif size > LARGEST_GIB:
        largest = LARGEST_GIB // 2400 * 2400
        yield InputError(
            path=f"{path}.capacity_gib",
            must=f"be at most {largest}, about 1 PiB",
            got=str(size),
            fix=f"write at most {largest}; the setting is in GiB",
            write=largest,
        )
    if lustre.deployment == "PERSISTENT_2" and tier not in LUSTRE_TIERS:
        near = min(LUSTRE_TIERS, key=lambda sold: abs(sold - (tier or 500)))
        yield InputError(
            path=f"{path}.throughput_mbps_per_tib",
            must=f"be one of {', '.join(map(str, LUSTRE_TIERS))} with deployment: PERSISTENT_2",
            got="nothing" if tier is None else str(tier),
            fix=(
                f"write {near}; with 4800 GiB, 500 takes a checkpoint of 30 billion parameters"
                " (360 GB) in about 2.5 minutes"
            ),
            write=near,
        )
    if lustre.deployment == "SCRATCH_2" and tier is not None:
        yield InputError(
            path=f"{path}.throughput_mbps_per_tib",
            must="not be set with deployment: SCRATCH_2, which has one speed",
            got=str(tier),
            fix="delete it, or write deployment: PERSISTENT_2",
            write=REMOVE,
        )


def _sized_for_model(
    path: str, lustre: LustreConfig, region: str, instance_types: list[str]
) -> Iterator[InputError]:
    wanted = lustre.for_model
    assert wanted is not None  # the caller has looked
    for key in ("capacity_gib", "throughput_mbps_per_tib"):
        if (given := getattr(lustre, key)) is not None:
            yield InputError(
                path=f"{path}.{key}",
                must="not be set beside for_model, which decides it",
                got=str(given),
                fix="delete it, or delete for_model",
                write=REMOVE,
            )
    if lustre.deployment == "SCRATCH_2":
        yield InputError(
            path=f"{path}.deployment",
            must="be PERSISTENT_2 with for_model: SCRATCH_2 loses the checkpoints when a server fails",
            got="SCRATCH_2",
            fix="write PERSISTENT_2",
            write="PERSISTENT_2",
        )
    if (
        instance_types
        and chosen(
            wanted.parameters_billion,
            wanted.nodes,
            client(lustre, instance_types),
            region,
            wanted.goodput_percent,
            wanted.bytes_per_parameter,
            efa=lustre.efa,
        )
        is None
    ):
        yield InputError(
            path=f"{path}.for_model.goodput_percent",
            must="be a goodput that a Lustre of FSx can reach for this model",
            got=str(wanted.goodput_percent),
            fix=_lower(lustre, region, instance_types),
        )


def _lower(lustre: LustreConfig, region: str, instance_types: list[str]) -> str:
    """The goodput that can be reached."""
    model = lustre.for_model
    assert model is not None  # the caller has looked
    kind = client(lustre, instance_types)
    reachable = next(
        (
            percent
            for percent in range(int(model.goodput_percent), 0, -1)
            if chosen(
                model.parameters_billion,
                model.nodes,
                kind,
                region,
                percent,
                model.bytes_per_parameter,
                efa=lustre.efa,
            )
        ),
        None,
    )
    instead = "write capacity_gib and throughput_mbps_per_tib instead, and save asynchronously"
    return f"write {reachable}, or {instead}" if reachable else instead


def checkpoint_errors(
    path: str, job: JobConfig, environment: EnvironmentConfig, region: str
) -> Iterator[InputError]:
    """Checkpoints of a job that cannot work on their store."""
    verdict = job_verdict(job, environment, region)
    if verdict is not None and job.checkpoints is not None:
        yield from _checkpoint_size(path, job.checkpoints.store, verdict)
        yield from _checkpoint_interval(path, job, environment, region, verdict)
        yield from _checkpoint_goodput(path, job, environment, region, verdict)
    elif job.goodput_percent is not None:
        yield InputError(
            path=f"{path}.goodput_percent",
            must="not be set without parameters_billion and checkpoints, which it follows from",
            got=f"{job.goodput_percent:g}",
            fix="delete it, or set parameters_billion and checkpoints",
            write=REMOVE,
        )


def _checkpoint_size(path: str, store: str, verdict: Verdict) -> Iterator[InputError]:
    if verdict.checkpoints_held is not None and verdict.checkpoints_held < CHECKPOINTS_KEPT:
        need = CHECKPOINTS_KEPT * verdict.bytes / 2**30
        yield InputError(
            path=f"{path}.checkpoints.store",
            must=(
                f"have room for {CHECKPOINTS_KEPT} checkpoints of {verdict.bytes / 1e9:,.0f} GB each"
            ),
            got=f"{store}, with room for {verdict.checkpoints_held}",
            fix=(
                f"write capacity_gib: {-(-need // 2400) * 2400:.0f} or more under"
                f" environment.storage.{store}.lustre"
            ),
        )


def _checkpoint_interval(
    path: str, job: JobConfig, environment: EnvironmentConfig, region: str, verdict: Verdict
) -> Iterator[InputError]:
    assert job.checkpoints is not None  # checkpoint_errors has looked
    minutes, store = verdict.interval_seconds / 60, job.checkpoints.store
    save = verdict.write_seconds / 60
    too_long = verdict.interval_given and verdict.write_seconds > verdict.interval_seconds
    if not verdict.save_fits_interval or too_long:
        more = ceil(save) + 1
        yield InputError(
            path=f"{path}.checkpoints.interval_minutes",
            must=f"be more than a save takes on {store}, which is {save:.1f} minutes",
            got=f"{minutes:g}",
            fix=f"write {more} or more, or make {store} larger or faster",
            write=more,
        )
    if verdict.interval_given and minutes > verdict.mtbf_hours * 60:
        best = round(_best_interval(job, environment, region))
        yield InputError(
            path=f"{path}.checkpoints.interval_minutes",
            must=(
                f"be less than the {verdict.mtbf_hours:.0f} hours that {job.nodes} nodes run between"
                " failures"
            ),
            got=f"{minutes:g}",
            fix=f"write {best}",
            write=best,
        )


def _checkpoint_goodput(
    path: str, job: JobConfig, environment: EnvironmentConfig, region: str, verdict: Verdict
) -> Iterator[InputError]:
    if job.checkpoints is None or job.goodput_percent is None:
        return
    if verdict.goodput * 100 < job.goodput_percent:
        tenths = int(verdict.goodput * 1000)
        possible = tenths // 10 if tenths % 10 == 0 else tenths / 10
        yield InputError(
            path=f"{path}.goodput_percent",
            must=(
                f"be at most {possible:g}, as a save on {job.checkpoints.store} takes"
                f" {verdict.write_seconds:,.0f} s"
            ),
            got=f"{job.goodput_percent:g}",
            fix=f"write {possible:g}; {_better_store(job, environment, region)}",
            write=possible,
        )


def checkpoint_warnings(
    path: str, job: JobConfig, environment: EnvironmentConfig, region: str
) -> Iterator[InputWarning]:
    """What works but should be known about a job's checkpoints."""
    if job.checkpoints is None or (store := environment.storage.get(job.checkpoints.store)) is None:
        return
    if store.lustre and store.lustre.deployment == "SCRATCH_2":
        yield InputWarning(
            path=f"{path}.checkpoints.store",
            text=(
                f"{job.checkpoints.store} is SCRATCH_2: when one of its servers fails, the"
                " checkpoints on it are lost"
            ),
        )
    found = job_verdict(job, environment, region)
    if found and found.goodput < WORTH_A_WARNING and job.goodput_percent is None:
        yield InputWarning(
            path=f"{path}.checkpoints",
            text=(
                f"a save takes {found.write_seconds / 60:.0f} minutes, which leaves"
                f" {found.goodput:.0%} of the time to train;"
                f" {_better_store(job, environment, region)}"
            ),
        )


def _best_interval(job: JobConfig, environment: EnvironmentConfig, region: str) -> float:
    """Minutes between saves that lose least."""
    assert job.checkpoints is not None  # callers have a verdict
    found = job_verdict(
        replace(job, checkpoints=replace(job.checkpoints, interval_minutes=None)),
        environment,
        region,
    )
    return found.interval_seconds / 60 if found else 0


def _better_store(job: JobConfig, environment: EnvironmentConfig, region: str) -> str:
    """The store that keeps the job at its goodput, in words."""
    late = job.checkpoints is not None and job.checkpoints.asynchronous
    store = environment.storage.get(job.checkpoints.store) if job.checkpoints else None
    choice = chosen(
        job.parameters_billion or 0,
        job.nodes,
        environment.pools[job.pool].instance_types[0],
        region,
        job.goodput_percent or 95,
        job.bytes_per_parameter,
        blocking=not late,
        efa=bool(store and store.lustre and store.lustre.efa),
    )
    if choice is None:
        return "no Lustre is enough, so save asynchronously"
    return (
        f"lustre: {{capacity_gib: {choice.store.capacity_gib}, throughput_mbps_per_tib:"
        f" {choice.store.tier}}} keeps {choice.verdict.goodput:.1%}"
    )


def mount_target_errors(wanted: EnvironmentConfig, zones: tuple[str, ...]) -> Iterator[InputError]:
    """Stores with the name of another store's mount target in a fallback zone: Pulumi refuses two
    mount targets of one name. `zones`: those of the network, the training zone first."""
    efs = [name for name, store in wanted.storage.items() if store.efs]
    taken = {
        f"{name}-{zone[-1]}": (name, zone)
        for name in efs
        for zone in mount_zones(zones, wanted.zone, wanted.pools)[1:]
    }
    for name in efs:
        if name in taken:
            store, zone = taken[name]
            yield InputError(
                path=f"environment.storage.{name}",
                must=f"not have the name of the mount target of {store} in {zone}",
                got=name,
                fix=f"rename it to {name}-store",
            )
