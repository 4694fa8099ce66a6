"""Speeds of sound nodes, for `trainyard accept`: published figures, and the share of them below which
something is broken.

Sources: nccl-tests README of awsome-distributed-training (2025-09-26) for p4de and p5, its
topology-aware README for p5en, its architectures/aws-pcs/tests for p6; aws-ofi-nccl#547 for g6e. A
floor above a published figure fails every node that there is, which a health check of that repository
did (800 GB/s for p5). Shares without a source are ours.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

MIB, GIB = 2**20, 2**30
PUBLISHED_SHARE = 0.85
"""Part of a published all-reduce speed that must be reached."""
DOUBLING = 0.95
"""Share of the bus bandwidth that each doubling of the nodes leaves, above SMALL_GANG nodes."""
SMALL_GANG = 4
STORE_SHARE = 0.8
"""Part of the planned speed of a store that must be reached."""
EFA_SHARE = 0.9
"""Part of the bytes a node must send in an all-reduce that its EFA devices must count."""
CLOCK_SHARE = 0.95
"""Part of the gang's fastest clock under load that every GPU must reach."""
PRODUCT_WARNS, PRODUCT_FAILS = 0.95, 0.85
"""Parts of the gang's median matrix product: below the first a GPU is warm, below the second it is
slow."""
PAIR_SHARE = 0.8
"""Part of the gang's median all-reduce of two nodes that every pair must reach."""
CPU_SHARE = 0.5
"""Part of the gang's median that nodes without GPUs must reach: their CPUs are shared with whatever
else runs."""
START_SHARE = 1.5
"""Times the usual pull of an image, within which a pod starts."""
MINUTES, MINUTES_OF_STORE = 4.0, 1.0
"""Minutes that the measurement takes, and minutes that each store adds:
workloads/accept/measure.py, SECONDS, rounded up."""


@dataclass(frozen=True, kw_only=True)
class Published:
    """Bus bandwidth of an all-reduce over EFA, as nccl-tests counts it."""

    nodes: int
    gb_per_second: dict[int, float]
    """Bytes of the all-reduce → GB/s."""


_P4 = Published(nodes=2, gb_per_second={128 * MIB: 64, 2 * GIB: 78})
_P5 = Published(nodes=2, gb_per_second={128 * MIB: 289, 2 * GIB: 443, 16 * GIB: 487})
PUBLISHED: dict[str, Published] = {
    "p4d.24xlarge": _P4,
    "p4de.24xlarge": _P4,
    "p5.48xlarge": _P5,
    "p5en.48xlarge": Published(nodes=16, gb_per_second={16 * GIB: 370}),
    "p6-b200.48xlarge": Published(nodes=4, gb_per_second={128 * MIB: 295, GIB: 367, 16 * GIB: 377}),
    "p6-b300.48xlarge": Published(nodes=2, gb_per_second={16 * GIB: 654}),
    "g6e.48xlarge": Published(nodes=2, gb_per_second={2 * GIB: 3}),
}
"""By instance type. Of g6e one user's report, at a size that was not said."""


def all_reduce_floor(instance_type: str, nodes: int, size: int) -> float | None:
    """GB/s that so many nodes must reach in an all-reduce of `size` bytes; None where nothing was
    published for the type and the size, or only for larger gangs than SMALL_GANG and this one."""
    found = PUBLISHED.get(instance_type)
    if found is None or size not in found.gb_per_second:
        return None
    counted = max(SMALL_GANG, found.nodes)
    if found.nodes > SMALL_GANG and nodes < found.nodes:
        return None
    doublings = max(0.0, math.log2(nodes / counted))
    return PUBLISHED_SHARE * found.gb_per_second[size] * DOUBLING**doublings
