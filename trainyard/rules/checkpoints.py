"""Errors and warnings about the checkpoints of a job on their store, and about the goodput that it asks for."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from trainyard.derive.stores import job_verdict, sized_store
from trainyard.problems import REMOVE, At, InputError, InputWarning
from trainyard.rules.checkpoint_advice import MOST, best_minutes, better_checkpoints
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.job import CheckpointConfig, JobConfig
from trainyard.settings.stores import StoreConfig
from trainyard.stores.goodput import Verdict, checkpoints_on_disk
from trainyard.stores.kinds import kinds_of

WORTH_A_WARNING = 0.90
"""A goodput below this is a warning even where the job asks for none."""


def checkpoint_errors(
    path: str, job: JobConfig, environment: EnvironmentConfig, region: str
) -> Iterator[InputError]:
    """Checkpoints of a job that cannot work on their store."""
    if job.goodput_percent is not None and job.goodput_percent < 1:
        yield At(f"{path}.goodput_percent").must(
            "be in percent, 1 or more",
            got=f"{job.goodput_percent:g}",
            write=round(job.goodput_percent * 100, 3),
        )
        return
    verdict = job_verdict(job, environment, region)
    if verdict is not None and job.checkpoints is not None:
        store = environment.storage[job.checkpoints.store]
        decided = sized_store(store, environment, region)
        yield from _checkpoint_size(path, job.checkpoints, store, decided, verdict)
        yield from _checkpoint_interval(path, job, environment, region, verdict)
        yield from _checkpoint_goodput(path, job, environment, region, verdict)
    elif job.goodput_percent is not None and (slow := _without_speed(job, environment)):
        yield At(f"{path}.goodput_percent").not_set(
            f"with checkpoints on {slow}: the time of a save is not known",
            got=f"{job.goodput_percent:g}",
            instead="name another store in checkpoints",
        )
    elif job.goodput_percent is not None:
        yield At(f"{path}.goodput_percent").not_set(
            "without parameters_billion and checkpoints: the size of a checkpoint decides whether the job reaches it",
            got=f"{job.goodput_percent:g}",
            instead=f"add {_missing_for_goodput(path, job, environment)}",
        )


def place_to_save(path: str, environment: EnvironmentConfig) -> str:
    """Setting that names a directory for the checkpoints of the job at this path, on the first store of the environment
    to which a job can write them."""
    stores = (
        name
        for name, store in environment.storage.items()
        if not any([*kind.write_errors("", name)] for kind, _ in kinds_of(store))
    )
    return f"checkpoints: {{store: {next(stores, '…')}, directory: {path.rpartition('.')[2]}}}"


def _missing_for_goodput(path: str, job: JobConfig, environment: EnvironmentConfig) -> str:
    """Settings of a job that its goodput follows from and that it lacks."""
    missing = [] if job.parameters_billion else ["parameters_billion, the size of the model,"]
    missing += [] if job.checkpoints else [place_to_save(path, environment)]
    return " and ".join(missing).rstrip(",")


def _without_speed(job: JobConfig, environment: EnvironmentConfig) -> str:
    """The store of the job's checkpoints, and why its settings cannot tell its speed; empty where they can."""
    name = job.checkpoints.store if job.checkpoints else ""
    store = environment.storage.get(name)
    whys = [kind.without_speed(settings) for kind, settings in kinds_of(store)] if store else []
    return next((f"{name}, {why}" for why in whys if why), "")


def _checkpoint_size(
    path: str,
    wanted: CheckpointConfig,
    store: StoreConfig,
    decided: StoreConfig,
    verdict: Verdict,
) -> Iterator[InputError]:
    """A store without room for the checkpoints. `decided`: with its size."""
    most, held, name = checkpoints_on_disk(wanted.keep), verdict.checkpoints_held, wanted.store
    if held is not None and held < most:
        need, can = most * verdict.bytes / 2**30, wanted.keep and held > 2
        fewer = f"write keep: {held - 1} under {path}.checkpoints, or " if can else ""
        yield At(f"{path}.checkpoints.store").must(
            room_needed(wanted, verdict.bytes),
            got=f"{name}, which has room for {held}: a part of its size stays free",
            fix=fewer
            + " or ".join(
                kind.larger(f"environment.storage.{name}.{kind.name}", need, settings, sized)
                for (kind, settings), (_, sized) in zip(
                    kinds_of(store), kinds_of(decided), strict=True
                )
            ),
        )


def room_needed(wanted: CheckpointConfig, size: float) -> str:
    """Requirement in words: room in a store for checkpoints of `size` bytes each."""
    most = checkpoints_on_disk(wanted.keep)
    kept = f": {most - 1} that stay, and the one being written"
    return f"have room for {most} checkpoints of {size / 1e9:,.0f} GB each, by the model's parameters{kept}"


def _checkpoint_interval(
    path: str, job: JobConfig, environment: EnvironmentConfig, region: str, verdict: Verdict
) -> Iterator[InputError]:
    assert job.checkpoints is not None  # checkpoint_errors has looked
    minutes, store = verdict.interval_seconds / 60, job.checkpoints.store
    save = verdict.write_seconds / 60
    if verdict.saves_too_often:
        more = ceil(save) + 1
        yield At(f"{path}.checkpoints.interval_minutes").must(
            f"be more than a save takes on {store}, which is {save:.1f} minutes",
            got=f"{minutes:g}",
            fix=f"write {more} or more, or make {store} larger or faster",
            write=more,
        )
    if verdict.interval_given and minutes > verdict.mtbf_hours * 60:
        best = best_minutes(job, environment, region)
        yield At(f"{path}.checkpoints.interval_minutes").must(
            f"be less than {verdict.mtbf_hours * 60:.0f} ({verdict.mtbf_hours:.1f} hours), the mean time between stops"
            f" of the job: other_stops_per_day ({job.other_stops_per_day:g}) and failures of its {job.nodes} nodes",
            got=f"{minutes:g}",
            fix=f"write {best:g}, at which saves and lost work cost least",
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
        first = f"write {possible:g}" if possible else "delete it"
        better = better_checkpoints(job, environment, region)
        yield At(f"{path}.goodput_percent").must(
            f"be at most {possible:g}, as a save on {job.checkpoints.store} takes"
            f" {verdict.write_seconds:,.0f} s",
            got=f"{job.goodput_percent:g}",
            fix=f"{first}; {better if better == MOST else f'or {better}'}",
            write=possible or REMOVE,
        )


def checkpoint_warnings(
    path: str, job: JobConfig, environment: EnvironmentConfig, region: str
) -> Iterator[InputWarning]:
    """Warnings about a job's checkpoints that work."""
    if job.checkpoints is None or (store := environment.storage.get(job.checkpoints.store)) is None:
        return
    for kind, settings in kinds_of(store):
        yield from kind.checkpoint_warnings(
            f"{path}.checkpoints.store", job.checkpoints.store, settings
        )
    minutes, hours = job.checkpoints.interval_minutes, job.expected_hours
    if minutes and hours and minutes >= hours * 60:
        yield At(f"{path}.checkpoints.interval_minutes").warning(
            f"the run is over before its first checkpoint: it takes {hours:g} h, and saves after"
            f" {minutes:g} minutes; write fewer minutes"
        )
    found = job_verdict(job, environment, region)
    if found and found.goodput < WORTH_A_WARNING and job.goodput_percent is None:
        yield At(f"{path}.checkpoints").warning(
            f"a save takes {found.write_seconds / 60:.0f} minutes, which leaves"
            f" {found.goodput:.0%} of the time to train;"
            f" {better_checkpoints(job, environment, region)}"
        )
