"""Checkpoint storage by design: how long a save takes, how often to save, and which file system
keeps a model training.

Goodput is the share of wall time that ends up in the model: 1 − (d/W + W/2M + R/M), with d the
seconds a save holds training up, W the seconds of training between saves, M the job's mean time
between failures and R a restart. It is a first-order formula: true to 0.3 points above 92 %, and
pessimistic below (tests/stacks/derive/test_goodput.py simulates both). Limits and rates: catalog/storage.py,
catalog/failures.py. What is refused or said about a verdict: stacks/rules/stores.py.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from catalog.failures import FAILURES_PER_1000_NODE_DAYS
from catalog.prices import lustre_per_month
from catalog.storage import (
    CHECKPOINT_BYTES_PER_PARAMETER,
    EFA_LUSTRE_CLIENTS,
    EFS_CLIENT,
    LUSTRE_CLIENT_EFA,
    LUSTRE_CLIENT_TCP,
    LUSTRE_EFA_STEP_GIB,
    LUSTRE_SMALLEST_GIB,
    LUSTRE_STEP_GIB,
    SCRATCH_2_PER_TIB,
    Speed,
    efs_speed,
)

GIB = 2**30
LARGEST_GIB = 2**20
"""1 PiB: what is looked at. A cap of ours; FSx sells more to who asks."""
ASYNC_STALL_SECONDS = 0.5
"""At most, for torch.distributed.checkpoint's asynchronous save on 512 H100 (shared facts §3.2,
2026-11-20)."""
RESTART_SECONDS = 300.0
"""From a failure to training again, the checkpoint read back included (shared facts §4.3,
2026-11-20)."""
CHECKPOINTS_KEPT = 3
"""The one being written, the last, and the one before in case the last is damaged. A choice of
ours."""
REFERENCE_REGION = "us-east-1"
"""Its prices put file systems in order where those of a region are not all known; they are never
shown as a cost."""


@dataclass(frozen=True, kw_only=True)
class Store:
    """A shared file system that takes checkpoints."""

    kind: Literal["lustre", "efs"]
    capacity_gib: int | None = None
    """Lustre only, as FSx counts it: 1200 is what is sold as "1.2 TiB", and 2 % less than that."""
    deployment: str | None = None
    """Lustre only."""
    tier: int | None = None
    """MB/s per TiB; PERSISTENT_2 only."""
    efa: bool = False
    """Lustre created with EFA. Its clients use TCP all the same until they mount over EFA."""
    region: str | None = None
    """EFS only: its limits differ by region, and None has the lower ones."""

    def __post_init__(self) -> None:
        if self.kind == "lustre" and (
            not self.capacity_gib
            or not self.deployment
            or (not self.tier and self.deployment != "SCRATCH_2")
        ):
            raise ValueError(
                "a Lustre file system has a capacity and a deployment, and a tier unless it is"
                " SCRATCH_2"
            )


@dataclass(frozen=True, kw_only=True)
class Training:
    """What is trained on which fleet: what a checkpoint weighs, and how often it is needed."""

    parameters_billion: float
    nodes: int
    """All of them write their share of a checkpoint."""
    instance_type: str
    bytes_per_parameter: float = CHECKPOINT_BYTES_PER_PARAMETER
    stall_seconds: float | None = None
    """How long an asynchronous save holds training up; None: saves block until they are written."""
    restart_seconds: float = RESTART_SECONDS
    failures_per_1000_node_days: float = FAILURES_PER_1000_NODE_DAYS


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What a store means for a training run."""

    bytes: float
    write_seconds: float
    read_seconds: float
    """Reading it back from disk; a restart budget below this is too small."""
    stall_seconds: float
    """Per save; an asynchronous save that does not fit the interval makes the next one wait, which
    counts."""
    interval_seconds: float
    """Training between two saves; the best one unless `interval_given`."""
    interval_given: bool
    save_fits_interval: bool
    mtbf_hours: float
    lost_seconds_per_failure: float
    """Work since the last checkpoint that can be resumed from, on average, and the restart."""
    goodput: float
    checkpoints_held: int | None
    """How many fit; None where the file system grows by itself."""


@dataclass(frozen=True, kw_only=True)
class Choice:
    """A file system that FSx sells, and what it means for the training run it was looked up for."""

    store: Store
    verdict: Verdict
    usd_per_month: float | None
    """None where no price of the region is known."""


def checkpoint_bytes(
    parameters_billion: float, bytes_per_parameter: float = CHECKPOINT_BYTES_PER_PARAMETER
) -> float:
    """Size of a checkpoint."""
    return parameters_billion * 1e9 * bytes_per_parameter


def bytes_per_second(
    store: Store, *, nodes: int, instance_type: str, mounted_over_efa: bool = False
) -> Speed:
    """What `nodes` reach together: the disks (a restart cannot count on servers' memory) or the sum
    of the clients."""
    disks, client = _file_system(store), _client(store, instance_type, mounted_over_efa)
    return Speed(
        write=min(disks.write, nodes * client.write), read=min(disks.read, nodes * client.read)
    )


def _file_system(store: Store) -> Speed:
    if store.kind == "efs":
        return efs_speed(store.region)
    tier, tib = (store.tier or 0) * 1e6, (store.capacity_gib or 0) / 1024
    per_tib = SCRATCH_2_PER_TIB if store.deployment == "SCRATCH_2" else Speed(write=tier, read=tier)
    return Speed(write=per_tib.write * tib, read=per_tib.read * tib)


def _client(store: Store, instance_type: str, mounted_over_efa: bool) -> Speed:
    if store.kind == "efs":
        return EFS_CLIENT
    over_efa = store.efa and mounted_over_efa and instance_type in EFA_LUSTRE_CLIENTS
    return LUSTRE_CLIENT_EFA if over_efa else LUSTRE_CLIENT_TCP


def mtbf_hours(
    nodes: int, failures_per_1000_node_days: float = FAILURES_PER_1000_NODE_DAYS
) -> float:
    """Mean hours between failures of a job on so many nodes; any node's failure is the job's."""
    return 24 * 1000 / (failures_per_1000_node_days * nodes)


def young_daly(stall_seconds: float, mtbf_seconds: float, save_seconds: float = 0) -> float:
    """Seconds of training between saves that lose least: W* = √(2dM), but no less than an
    asynchronous save takes."""
    return max(math.sqrt(2 * stall_seconds * mtbf_seconds), save_seconds)


def goodput(
    *,
    stall_seconds: float,
    mtbf_seconds: float,
    interval_seconds: float | None = None,
    restart_seconds: float = RESTART_SECONDS,
    lag_seconds: float = 0,
) -> float:
    """Share of time left to train, 0 to 1, at the given or the best interval.

    `lag_seconds`: from the end of the stall until the save can be resumed from. Work done meanwhile
    is lost as well: the write time of an asynchronous save, 0 of a blocking one.
    """
    interval = interval_seconds or young_daly(stall_seconds, mtbf_seconds, lag_seconds)
    lost_per_failure = interval / 2 + lag_seconds + restart_seconds
    return max(0.0, 1 - stall_seconds / interval - lost_per_failure / mtbf_seconds)


def verdict(
    training: Training,
    store: Store,
    *,
    mounted_over_efa: bool = False,
    interval_seconds: float | None = None,
) -> Verdict:
    """What the store means for the training run, at the given or the best interval between
    saves."""
    size = checkpoint_bytes(training.parameters_billion, training.bytes_per_parameter)
    speed = bytes_per_second(
        store,
        nodes=training.nodes,
        instance_type=training.instance_type,
        mounted_over_efa=mounted_over_efa,
    )
    written = size / speed.write
    stall, lag = (
        (written, 0.0) if training.stall_seconds is None else (training.stall_seconds, written)
    )
    hours = mtbf_hours(training.nodes, training.failures_per_1000_node_days)
    interval = interval_seconds or young_daly(stall, hours * 3600, lag)
    stall += max(0.0, lag - interval)
    return Verdict(
        bytes=size,
        write_seconds=written,
        read_seconds=size / speed.read,
        stall_seconds=stall,
        interval_seconds=interval,
        interval_given=interval_seconds is not None,
        save_fits_interval=lag <= interval,
        mtbf_hours=hours,
        lost_seconds_per_failure=interval / 2 + lag + training.restart_seconds,
        goodput=goodput(
            stall_seconds=stall,
            mtbf_seconds=hours * 3600,
            interval_seconds=interval,
            restart_seconds=training.restart_seconds,
            lag_seconds=lag,
        ),
        checkpoints_held=store.capacity_gib and int(store.capacity_gib * GIB // size),
    )


def for_model(
    *,
    parameters_billion: float,
    nodes: int,
    instance_type: str,
    region: str,
    goodput: float | None = 0.98,
    restart_seconds: float = RESTART_SECONDS,
    efa: bool = False,
    bytes_per_parameter: float = CHECKPOINT_BYTES_PER_PARAMETER,
    blocking: bool = True,
) -> Choice | None:
    """The cheapest PERSISTENT_2 file system that reaches the goodput and holds three checkpoints;
    None: there is none.

    `goodput=None` asks for the best there is, at its lowest price. `efa`: created with EFA, and
    mounted over it where the instance type may. SCRATCH_2 is never chosen: it loses data with a
    server.
    """
    training = Training(
        parameters_billion=parameters_billion,
        nodes=nodes,
        instance_type=instance_type,
        bytes_per_parameter=bytes_per_parameter,
        restart_seconds=restart_seconds,
        stall_seconds=None if blocking else ASYNC_STALL_SECONDS,
    )
    ranked_by = region if _every_tier_priced(region) else REFERENCE_REGION
    sold = sorted(_sold(efa), key=lambda store: (_usd(store, ranked_by) or 0, -(store.tier or 0)))
    verdicts = ((store, verdict(training, store, mounted_over_efa=efa)) for store in sold)
    roomy = (
        Choice(store=store, verdict=given, usd_per_month=_usd(store, region))
        for store, given in verdicts
        if (given.checkpoints_held or 0) >= CHECKPOINTS_KEPT
    )
    if goodput is None:
        return max(roomy, key=lambda choice: choice.verdict.goodput, default=None)
    return next((choice for choice in roomy if choice.verdict.goodput >= goodput), None)


def _sold(efa: bool) -> Iterator[Store]:
    """PERSISTENT_2 in every tier and size that FSx sells up to our cap."""
    for tier, efa_step in LUSTRE_EFA_STEP_GIB.items():
        step = efa_step if efa else LUSTRE_STEP_GIB
        for capacity in (
            *([] if efa else [LUSTRE_SMALLEST_GIB]),
            *range(step, LARGEST_GIB + 1, step),
        ):
            yield Store(
                kind="lustre",
                capacity_gib=capacity,
                deployment="PERSISTENT_2",
                tier=tier,
                efa=efa,
            )


def _every_tier_priced(region: str) -> bool:
    """Whether file systems of the region can be put in order by its own prices. Where one tier has
    none, prices of two regions would stand side by side."""
    return all(lustre_per_month(region, "PERSISTENT_2", tier, 1) for tier in LUSTRE_EFA_STEP_GIB)


def _usd(store: Store, region: str) -> float | None:
    return lustre_per_month(region, store.deployment or "", store.tier, store.capacity_gib or 0)
