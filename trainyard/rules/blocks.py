"""Errors about Capacity Blocks: sizes that EC2 does not sell, and jobs that need longer than what
is left of a block.

Sizes and ends: trainyard/catalog/aws/blocks.py.
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
    for name, job in jobs.items():
        block = pools[job.pool].reservation if job.pool in pools else None
        if job.expected_hours is None or block is None or not block.starts or not block.ends:
            continue
        begins = max(block.starts, now)
        hours = max(0.0, (block.ends - begins - TAIL) / timedelta(hours=1))
        if block.ends > now and job.expected_hours > hours:
            left = "left of" if begins == now else "of"
            yield At(f"{path}.{name}.expected_hours").must(
                f"be at most the {hours:.1f} h {left} {block.id}: its nodes drain 40 minutes before"
                " the end",
                got=f"{job.expected_hours:g}",
                fix="write fewer hours, with checkpoints to go on from; or buy a longer block",
            )
