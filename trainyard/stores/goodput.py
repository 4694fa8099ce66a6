"""Checkpoint storage by design: how long a save takes, how often to save, and how much of the time
trains, on any kind of store.

Goodput is the share of wall time that ends up in the model: 1 − (d/W + W/2M + R/M), with d the
seconds a save holds training up, W the seconds of training between saves, M the job's mean time
between stops and R a restart. It is a first-order formula: true to 0.3 points above 92 %, and
pessimistic below (tests/trainyard/stores/test_goodput.py simulates both). Failure rates:
trainyard/catalog/failure_rates.py. What is refused or said about a verdict: trainyard/rules/checkpoints.py.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from trainyard.catalog.aws.storage import CHECKPOINT_BYTES_PER_PARAMETER, Speed
from trainyard.catalog.failure_rates import FAILURES_PER_1000_NODE_DAYS

GIB = 2**30
ASYNC_STALL_SECONDS = 0.5
"""Longest stall of an asynchronous save. torch.distributed.checkpoint's was published as less than half
a second on 512 H100, in place of 50 s for a save that blocks (read 2026-11-20)."""
RESTART_SECONDS = 300.0
"""From a failure to training again, at least: RESTART_BEFORE_READING_SECONDS, and two minutes in which
the checkpoint is read back. An estimate of ours."""
RESTART_BEFORE_READING_SECONDS = 180.0
"""Part of RESTART_SECONDS before the checkpoint is read: a new node, its image, the start of the ranks.
An estimate from the figures of trainyard/catalog/aws/latencies.py."""
CHECKPOINTS_KEPT = 3
"""The one being written, the last, and the one before in case the last is damaged. A choice of
ours, for a job that does not say how many it keeps."""


class CheckpointStore(Protocol):
    """A shared file system that takes checkpoints."""

    @property
    def usable_gib(self) -> float | None:
        """Size that files can fill; None where the file system grows by itself."""
        ...

    def disks(self) -> Speed:
        """Speed of the file system, however many nodes there are."""
        ...

    def client(self, instance_type: str, *, mounted_over_efa: bool) -> Speed:
        """Speed that one node reaches."""
        ...


@dataclass(frozen=True, kw_only=True)
class Training:
    """A model and the fleet that trains it: size of a checkpoint, and how often one is needed."""

    parameters_billion: float
    nodes: int
    """All of them write their share of a checkpoint."""
    instance_type: str
    bytes_per_parameter: float = CHECKPOINT_BYTES_PER_PARAMETER
    stall_seconds: float | None = None
    """Seconds for which an asynchronous save holds training up; None: saves block until they are
    written."""
    restart_seconds: float = RESTART_SECONDS
    """At least; a store that reads slowly makes it longer."""
    failures_per_1000_node_days: float = FAILURES_PER_1000_NODE_DAYS


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Effects of a store on a training run."""

    bytes: float
    write_seconds: float
    read_seconds: float
    """Reading it back from disk."""
    restart_seconds: float
    """From a failure to training again, the checkpoint read back."""
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
    """Number of checkpoints that fit; None where the file system grows by itself."""

    @property
    def stall_share(self) -> float:
        """Share of the time in which saves hold training up."""
        return min(1.0, self.stall_seconds / self.interval_seconds)

    @property
    def saves_too_often(self) -> bool:
        """True where a save is not over when the next one is due."""
        late = self.interval_given and self.write_seconds > self.interval_seconds
        return late or not self.save_fits_interval


def checkpoints_on_disk(keep: int | None) -> int:
    """Number of checkpoints that must fit: those that a job keeps, and the one being written."""
    return CHECKPOINTS_KEPT if keep is None else keep + 1


def checkpoint_bytes(
    parameters_billion: float, bytes_per_parameter: float = CHECKPOINT_BYTES_PER_PARAMETER
) -> float:
    """Size of a checkpoint."""
    return parameters_billion * 1e9 * bytes_per_parameter


def bytes_per_second(
    store: CheckpointStore, *, nodes: int, instance_type: str, mounted_over_efa: bool = False
) -> Speed:
    """Speed that `nodes` reach together: that of the disks (a restart cannot count on servers'
    memory) or the sum of the clients."""
    disks = store.disks()
    client = store.client(instance_type, mounted_over_efa=mounted_over_efa)
    return Speed(
        write=min(disks.write, nodes * client.write), read=min(disks.read, nodes * client.read)
    )


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


def goodput_at(found: Verdict, interval_seconds: float) -> float:
    """Goodput of the same job and store at another interval between saves."""
    lag = found.lost_seconds_per_failure - found.interval_seconds / 2 - found.restart_seconds
    stall = found.stall_seconds - max(0.0, lag - found.interval_seconds)
    return goodput(
        stall_seconds=stall + max(0.0, lag - interval_seconds),
        mtbf_seconds=found.mtbf_hours * 3600,
        interval_seconds=interval_seconds,
        restart_seconds=found.restart_seconds,
        lag_seconds=lag,
    )


def verdict(
    training: Training,
    store: CheckpointStore,
    *,
    mounted_over_efa: bool = False,
    interval_seconds: float | None = None,
) -> Verdict:
    """Effects of the store on the training run, at the given or the best interval between saves."""
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
    read = size / speed.read
    restart = max(training.restart_seconds, RESTART_BEFORE_READING_SECONDS + read)
    usable = store.usable_gib
    return Verdict(
        bytes=size,
        write_seconds=written,
        read_seconds=read,
        restart_seconds=restart,
        stall_seconds=stall,
        interval_seconds=interval,
        interval_given=interval_seconds is not None,
        save_fits_interval=lag <= interval,
        mtbf_hours=hours,
        lost_seconds_per_failure=interval / 2 + lag + restart,
        goodput=goodput(
            stall_seconds=stall,
            mtbf_seconds=hours * 3600,
            interval_seconds=interval,
            restart_seconds=restart,
            lag_seconds=lag,
        ),
        checkpoints_held=None if usable is None else int(usable * GIB // size),
    )
