"""Findings of `trainyard check --live` about the room for checkpoints on an existing FSx for Lustre.
trainyard/rules/checkpoints.py says the same about a store that the stack makes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil

from trainyard.catalog.aws.storage import LUSTRE_STEP_GIB, LUSTRE_USABLE
from trainyard.live.questions.account import Account
from trainyard.live.questions.caller import NotAnswered
from trainyard.live.questions.store_questions import FREE_ROOM, FREE_ROOM_MINUTES
from trainyard.plans.stores import ExistingStorePlan
from trainyard.problems import InputError, InputWarning
from trainyard.rules.checkpoints import room_needed
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.job import CheckpointConfig, typed
from trainyard.stores.goodput import GIB, checkpoint_bytes, checkpoints_on_disk
from trainyard.stores.lustre_sizing import usable_gib


@dataclass(frozen=True, kw_only=True)
class Need:
    """Room that the checkpoints of a job need on their store."""

    path: str
    """Setting in which the job names the store."""
    checkpoints: CheckpointConfig
    size: float
    """Bytes of one checkpoint."""

    @property
    def number(self) -> int:
        """Number of checkpoints that must fit."""
        return checkpoints_on_disk(self.checkpoints.keep)

    @property
    def gib(self) -> float:
        """Size of all checkpoints together, in GiB."""
        return self.number * self.size / GIB


def needs(store: str, wanted: EnvironmentConfig) -> list[Need]:
    """Room that each job with checkpoints on the store needs. A job that does not say how large its
    model is counts for nothing, as on a store that the stack makes."""
    return [
        Need(
            path=f"environment.jobs.{name}.checkpoints.store",
            checkpoints=job.checkpoints,
            size=checkpoint_bytes(job.parameters_billion, job.bytes_per_parameter),
        )
        for name, job in typed(wanted.jobs).items()
        if job.checkpoints and job.checkpoints.store == store and job.parameters_billion is not None
    ]


def room_findings(
    account: Account, store: ExistingStorePlan, capacity_gib: int, needed: Sequence[Need]
) -> Iterator[InputError | InputWarning]:
    """Findings about what does not fit, and about the free room. A question that fails keeps
    nothing else from being said."""
    yield from capacity_errors(store, capacity_gib, needed)
    try:
        free = account.free_bytes(store.file_system_id)
    except NotAnswered as reason:
        text = f"a question about {store.file_system_id} failed: {reason}"
        yield InputWarning(path="account", text=text)
        return
    yield from free_room_warnings(store, capacity_gib, free, needed)


def capacity_errors(
    store: ExistingStorePlan, capacity_gib: int, needed: Sequence[Need]
) -> Iterator[InputError]:
    """Checkpoints of a job that do not fit, however empty the file system is."""
    usable, id_ = usable_gib(capacity_gib), store.file_system_id
    for need in needed:
        if need.gib <= usable:
            continue
        enough = ceil(need.gib / LUSTRE_USABLE / LUSTRE_STEP_GIB) * LUSTRE_STEP_GIB
        yield InputError(
            path=need.path,
            must=room_needed(need.checkpoints, need.size),
            got=(
                f"{need.checkpoints.store}, which has room for {usable * GIB // need.size:.0f}: {id_} has"
                f" {capacity_gib:,} GiB"
            ),
            fix=(
                f"run `aws fsx update-file-system --file-system-id {id_} --storage-capacity {enough}`,"
                " or write another store"
            ),
        )


def free_room_warnings(
    store: ExistingStorePlan, capacity_gib: int, free: int | None, needed: Sequence[Need]
) -> Iterator[InputWarning]:
    """Warnings about the free room, and the jobs for which it may be too little. That is no error,
    because checkpoints that the job has written take room already. `free`: bytes; None where
    CloudWatch does not say."""
    if free is None:
        yield InputWarning(
            path=store.path,
            text=(
                f"how much room is free on it is not known: CloudWatch has no {FREE_ROOM} of it from the"
                f" last {FREE_ROOM_MINUTES} minutes"
            ),
        )
        return
    free_gib = free / GIB
    yield InputWarning(
        path=store.path, text=f"{free_gib:,.0f} of its {capacity_gib:,} GiB are free"
    )
    for need in needed:
        if free_gib < need.gib <= usable_gib(capacity_gib):
            yield InputWarning(
                path=need.path,
                text=(
                    f"{need.number} checkpoints take {need.gib:,.0f} GiB, and {free_gib:,.0f} GiB are"
                    f" free on {need.checkpoints.store}: saves fail when it is full, unless some of"
                    " these checkpoints lie there already"
                ),
            )
