"""What a store cannot be, and what a job's checkpoints cannot do on it.

What follows from a store's settings is stacks/derive/stores.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from catalog.storage import LUSTRE_TIERS
from stacks.derive.goodput import (
    CHECKPOINTS_KEPT,
    LARGEST_GIB,
)
from stacks.derive.mount_targets import mount_zones
from stacks.derive.stores import chosen, client, job_verdict
from stacks.rules.lustre_repositories import repository_errors
from stacks.settings.environment import EnvironmentConfig, LustreConfig, StoreConfig
from stacks.settings.job import JobConfig
from stacks.settings.problems import InputError, InputWarning

WORTH_SAYING = 0.90
"""A goodput below this is said even where nobody asked for one."""


def store_errors(
    path: str, store: StoreConfig, region: str, instance_types: list[str]
) -> Iterator[InputError]:
    """Every error of one store."""
    if (store.lustre is None) == (store.efs is None):
        yield InputError(
            path=path,
            must="be exactly one of lustre and efs",
            got="both" if store.lustre else "neither",
            fix="lustre: {capacity_gib: 4800, throughput_mbps_per_tib: 500} or efs: {}",
        )
    if store.lustre is None:
        return
    path = f"{path}.lustre"
    if store.lustre.for_model is not None:
        yield from _for_model(path, store.lustre, region, instance_types)
    else:
        yield from _given(path, store.lustre)
    yield from repository_errors(path, store.lustre)
    if store.lustre.backup_days and store.lustre.deployment == "SCRATCH_2":
        yield InputError(
            path=f"{path}.backup_days",
            must="be of PERSISTENT_2: FSx makes no backups of scratch",
            got=str(store.lustre.backup_days),
            fix="drop it, or take deployment: PERSISTENT_2",
        )


def _given(path: str, lustre: LustreConfig) -> Iterator[InputError]:
    size, tier = lustre.capacity_gib, lustre.throughput_mbps_per_tib
    if size is None:
        yield InputError(
            path=f"{path}.capacity_gib",
            must="be set, or follow from for_model",
            got="nothing",
            fix="capacity_gib: 4800, or for_model: {parameters_billion: …, nodes: …}",
        )
    elif size != 1200 and size % 2400:
        near = max(2400, round(size / 2400) * 2400)
        yield InputError(
            path=f"{path}.capacity_gib",
            must="be 1200 or a multiple of 2400 GiB, as FSx sells it",
            got=str(size),
            fix=f"nearest: {1200 if size < 1800 else near}",
        )
    elif size > LARGEST_GIB:
        yield InputError(
            path=f"{path}.capacity_gib",
            must="be at most 1 PiB, which is what this program looks at",
            got=str(size),
            fix=f"at most {LARGEST_GIB // 2400 * 2400}; is it in TiB?",
        )
    if lustre.deployment == "PERSISTENT_2" and tier not in LUSTRE_TIERS:
        near = min(LUSTRE_TIERS, key=lambda sold: abs(sold - (tier or 500)))
        yield InputError(
            path=f"{path}.throughput_mbps_per_tib",
            must=f"be one of {LUSTRE_TIERS} for PERSISTENT_2",
            got=str(tier),
            fix=(
                f"nearest: {near}; 500 writes a 30B checkpoint of 360 GB to 4800 GiB in"
                " about 2.5 minutes"
            ),
        )
    if lustre.deployment == "SCRATCH_2" and tier is not None:
        yield InputError(
            path=f"{path}.throughput_mbps_per_tib",
            must="be fixed for SCRATCH_2",
            got=str(tier),
            fix="drop it, or take deployment: PERSISTENT_2",
        )


def _for_model(
    path: str, lustre: LustreConfig, region: str, instance_types: list[str]
) -> Iterator[InputError]:
    wanted = lustre.for_model
    assert wanted is not None  # the caller has looked
    for key in ("capacity_gib", "throughput_mbps_per_tib"):
        if (given := getattr(lustre, key)) is not None:
            yield InputError(
                path=f"{path}.{key}",
                must="follow from for_model",
                got=str(given),
                fix=f"drop {key}, or for_model",
            )
    if lustre.deployment == "SCRATCH_2":
        yield InputError(
            path=f"{path}.deployment",
            must="be PERSISTENT_2 for a model: scratch loses checkpoints with a server",
            got="SCRATCH_2",
            fix="drop deployment",
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
            must="can be reached with what FSx sells",
            got=str(wanted.goodput_percent),
            fix="ask for less, or save asynchronously and give a size",
        )


def checkpoint_errors(
    path: str, job: JobConfig, environment: EnvironmentConfig, region: str
) -> Iterator[InputError]:
    """What a job's checkpoints cannot do on their store."""
    found = job_verdict(job, environment, region)
    if found is None or job.checkpoints is None:
        if job.goodput_percent is not None:
            yield InputError(
                path=f"{path}.goodput_percent",
                must="be computed from the model and its checkpoints",
                got=str(job.goodput_percent),
                fix="set parameters_billion and checkpoints",
            )
        return
    minutes, name = found.interval_seconds / 60, job.checkpoints.store
    if found.checkpoints_held is not None and found.checkpoints_held < CHECKPOINTS_KEPT:
        need = CHECKPOINTS_KEPT * found.bytes / 2**30
        yield InputError(
            path=f"{path}.checkpoints.store",
            must=f"contain {CHECKPOINTS_KEPT} checkpoints of {found.bytes / 1e9:,.0f} GB",
            got=f"{name}, {found.checkpoints_held}",
            fix=f"at least {-(-need // 2400) * 2400:.0f} GiB",
        )
    if (
        not found.save_fits_interval
        or found.interval_given
        and found.write_seconds > found.interval_seconds
    ):
        yield InputError(
            path=f"{path}.checkpoints.interval_minutes",
            must=(
                "be longer than a save, which takes"
                f" {found.write_seconds / 60:.1f} minutes on {name}"
            ),
            got=f"{minutes:g}",
            fix="save less often, or give the store more MB/s per TiB or more TiB",
        )
    if found.interval_given and minutes > found.mtbf_hours * 60:
        yield InputError(
            path=f"{path}.checkpoints.interval_minutes",
            must=(
                f"be shorter than {job.nodes} nodes run between failures ({found.mtbf_hours:.0f} h)"
            ),
            got=f"{minutes:g}",
            fix=f"about {_best(job, environment, region):.0f}",
        )
    if job.goodput_percent is not None and found.goodput * 100 < job.goodput_percent:
        yield InputError(
            path=f"{path}.goodput_percent",
            must=f"can be kept on {name}, where a save takes {found.write_seconds:,.0f} s",
            got=f"{job.goodput_percent:g}",
            fix=f"{name} gives {found.goodput:.1%}; {_better(job, environment, region)}",
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
                f"{job.checkpoints.store} is scratch: a failed server takes the checkpoints with it"
            ),
        )
    found = job_verdict(job, environment, region)
    if found and found.goodput < WORTH_SAYING and job.goodput_percent is None:
        yield InputWarning(
            path=f"{path}.checkpoints",
            text=(
                f"a save takes {found.write_seconds / 60:.0f} minutes, which leaves"
                f" {found.goodput:.0%} of the time to train; {_better(job, environment, region)}"
            ),
        )


def _best(job: JobConfig, environment: EnvironmentConfig, region: str) -> float:
    """Minutes between saves that lose least."""
    assert job.checkpoints is not None  # callers have a verdict
    found = job_verdict(
        replace(job, checkpoints=replace(job.checkpoints, interval_minutes=None)),
        environment,
        region,
    )
    return found.interval_seconds / 60 if found else 0


def _better(job: JobConfig, environment: EnvironmentConfig, region: str) -> str:
    """What would serve the job, in words."""
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
        return "no Lustre gives more: save asynchronously"
    return (
        f"Lustre of {choice.store.capacity_gib} GiB at {choice.store.tier} MB/s per TiB gives"
        f" {choice.verdict.goodput:.1%}"
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
                must=f"not have the name of {store}'s mount target in {zone}",
                got=name,
                fix="rename one of the two stores",
            )
