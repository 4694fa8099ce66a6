"""Reservations with an end: sizes that EC2 does not sell as Capacity Blocks, and jobs that need longer than
what is left.

Sizes and ends: trainyard/catalog/aws/blocks.py. What Karpenter 1.14.1 does at the end: it drains the nodes of a
Capacity Block (capacityreservation/expiration), and takes those of another reservation for on-demand ones
(capacityreservation/capacitytype).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta

from trainyard.catalog.aws.blocks import END, SIZES
from trainyard.problems import At, InputError, InputWarning
from trainyard.settings.job import AnyJob
from trainyard.settings.pools import PoolConfig, ReservationConfig

TAIL = timedelta(minutes=40)
"""Karpenter drains a Capacity Block's nodes this long before its end (karpenter-provider-aws, a
constant)."""
COPY = "`aws ec2 describe-capacity-reservations`"


def block_errors(path: str, block: ReservationConfig) -> Iterator[InputError]:
    """A size that EC2 does not sell. `path`: of the reservation."""
    if block.instances not in SIZES:
        yield At(f"{path}.instances").must(
            f"be one of {', '.join(map(str, SIZES))}, the sizes that EC2 sells as one block",
            got=block.instances,
            fix=f"copy it from {COPY}; two blocks are two pools",
        )


def block_warnings(path: str, block: ReservationConfig) -> Iterator[InputWarning]:
    """An end that EC2 does not sell. `path`: of the reservation."""
    ends = block.ends.astimezone(UTC) if block.ends else None
    if ends and (ends.hour, ends.minute) != END:
        yield At(f"{path}.ends").warning(
            f"Capacity Blocks end at 11:30 UTC, and this one at {ends:%H:%M}: compare it with {COPY}."
            " EC2 ends the nodes by its own time"
        )


def hours_errors(
    path: str, jobs: Mapping[str, AnyJob], pools: Mapping[str, PoolConfig], now: datetime
) -> Iterator[InputError]:
    """Jobs that take longer than what is left of their Capacity Block. `path`: that holds the
    jobs."""
    for name, job, block in _with_an_end(jobs, pools, "block"):
        if not block.starts or not block.ends:
            continue
        begins = max(block.starts, now)
        hours = max(0.0, (block.ends - begins - TAIL) / timedelta(hours=1))
        if block.ends > now and (job.expected_hours or 0) > hours:
            left = "left of" if begins == now else "of"
            yield At(f"{path}.{name}.expected_hours").must(
                f"be at most the {hours:.1f} h {left} {block.id}: its nodes drain 40 minutes before"
                " the end",
                got=f"{job.expected_hours:g}",
                fix="write fewer hours, with checkpoints to go on from; or buy a longer block",
            )


def hours_warnings(
    path: str, jobs: Mapping[str, AnyJob], pools: Mapping[str, PoolConfig], now: datetime
) -> Iterator[InputWarning]:
    """Jobs that take longer than what is left of a reservation that is no block. `path`: that holds the jobs."""
    for name, job, reservation in _with_an_end(jobs, pools, "reservation"):
        ends = reservation.ends
        hours = (ends - max(reservation.starts or now, now)) / timedelta(hours=1) if ends else 0.0
        if hours > 0 and (job.expected_hours or 0) > hours:
            yield At(f"{path}.{name}.expected_hours").warning(
                f"the job takes {job.expected_hours:g} h, and {reservation.id} ends after {hours:.1f} h: its"
                " nodes go on at the price on demand, and a node that fails after the end is not replaced"
            )


def _with_an_end(
    jobs: Mapping[str, AnyJob], pools: Mapping[str, PoolConfig], capacity: str
) -> Iterator[tuple[str, AnyJob, ReservationConfig]]:
    """Jobs that say how long they take, on pools of a reservation that ends. `capacity`: of the pools."""
    for name, job in jobs.items():
        pool = pools.get(job.pool)
        found = pool.reservation if pool and pool.capacity == capacity else None
        if found and found.ends and job.expected_hours is not None:
            yield name, job, found
