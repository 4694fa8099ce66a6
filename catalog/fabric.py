"""What the network between GPU nodes reaches, and which environment variables help or harm there.

Sources: nccl-tests README of awsome-distributed-training (2025-09-26), two nodes unless said;
aws-ofi-nccl at 2daf7d3 (src/platform-aws.cpp, 2026-08-21), which sets NCCL's buffer, chunk and
protocol variables itself for each type; efa-cheatsheet.md of awsome-distributed-training
(2025-08-31); traps 80 and 81 of by-hand-and-traps.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from catalog.instances import InstanceType

MIB, GIB = 2**20, 2**30
FLOOR_OF_CURVE = 0.85
"""Share of the published figure below which a fabric is not accepted; a choice of ours (shared
facts §6, P17)."""


@dataclass(frozen=True, kw_only=True)
class Curve:
    """Published all-reduce bus bandwidth of a family."""

    gb_per_second: dict[int, float]
    """Bytes of the message → GB/s (10^9), out of place."""
    nodes: int = 2
    functional_only: bool = False
    """Tells a working fabric from a broken one, and is nothing to aim at."""
    source: str = "nccl-tests README, awsome-distributed-training, 2025-09-26"


_P4D = {
    8 * MIB: 20.62,
    32 * MIB: 40.85,
    128 * MIB: 64.31,
    512 * MIB: 74.28,
    1 * GIB: 76.79,
    2 * GIB: 78.33,
}
_P5 = {
    8 * MIB: 76.80,
    32 * MIB: 143.09,
    128 * MIB: 289.16,
    512 * MIB: 393.34,
    1 * GIB: 436.95,
    2 * GIB: 443.72,
    8 * GIB: 479.28,
    16 * GIB: 487.09,
}

CURVES: dict[str, Curve] = {
    "p4d": Curve(gb_per_second=_P4D),  # measured on p4de, whose network is the same
    "p4de": Curve(gb_per_second=_P4D),
    "p5": Curve(gb_per_second=_P5),
    "p5en": Curve(
        gb_per_second={16 * GIB: 369.86},
        nodes=16,
        source="topology-aware README, same place, 2026-02-21",
    ),
    "g6e": Curve(
        gb_per_second={2 * GIB: 3.0},
        functional_only=True,
        source="a user of g6e.48xlarge in aws-ofi-nccl#547, 2025-08; size not said, taken as 2 GiB",
    ),
}
"""family → curve; none is published for the others."""


def floor(kind: InstanceType, size: int) -> float | None:
    """GB/s of bus bandwidth that an all-reduce of `size` bytes must reach on whole nodes; None
    where nothing is known.

    Between two published sizes the smaller one counts.
    """
    curve = CURVES.get(kind.family)
    known = [at for at in curve.gb_per_second if at <= size] if curve and kind.gpus >= 4 else []
    return FLOOR_OF_CURVE * curve.gb_per_second[max(known)] if curve and known else None


def tcp_bound(kind: InstanceType) -> float:
    """GB/s that nodes can reach at most without EFA: a pod's one interface is on card 0."""
    return kind.card_gbps / 8


def slow(kind: InstanceType) -> str | None:
    """Why jobs of several nodes run slowly on the type; None where they do not, and for types
    without GPUs."""
    if not kind.gpus or kind.gpudirect:
        return None
    if not kind.efa:
        return f"has no EFA: at most {tcp_bound(kind):.2g} GB/s between nodes where p5 reaches 487"
    return (
        "has no GPUDirect RDMA: expect about 3 GB/s between nodes where p5 reaches 487"
        " (aws-ofi-nccl#547)"
    )


def environment(kind: InstanceType, nodes: int) -> dict[str, str]:
    """What a job on the type should have set: little, since aws-ofi-nccl knows the rest by type."""
    if kind.family in ("g5", "g6") and kind.gpus > 1:
        return {
            "NCCL_SHM_USE_CUDA_MEMCPY": "1"
        }  # twice as fast through shared memory (efa-cheatsheet)
    return {}


def _always(kind: InstanceType) -> bool:
    return True


def _has_efa(kind: InstanceType) -> bool:
    return kind.efa > 0


@dataclass(frozen=True, kw_only=True)
class Harm:
    """A variable that does harm or nothing."""

    variable: str
    """Its name; with a * at the end, how names begin."""
    reason: str
    """As an error says it, behind "must"; of a variable without effect, as a warning says it."""
    values: tuple[str, ...] = ()
    """Those meant; empty: all."""
    but: tuple[str, ...] = ()
    """Values that are fine."""
    on: Callable[[InstanceType], bool] = field(default=_always)

    @property
    def has_no_effect(self) -> bool:
        """It does nothing; the others slow the job down."""
        return not self.values and not self.but


HARMS: tuple[Harm, ...] = (
    Harm(
        variable="NCCL_P2P_LEVEL",
        values=("NVL",),
        on=lambda kind: not kind.nvlink,
        reason="not be NVL without NVLink: it sends what PCIe could carry through shared memory",
    ),
    Harm(
        variable="NCCL_P2P_DISABLE",
        values=("1",),
        on=lambda kind: kind.nvlink,
        reason="not be 1 with NVLink: it turns NVLink off",
    ),
    Harm(
        variable="NCCL_NET",
        values=("Socket",),
        on=_has_efa,
        reason="not be Socket with EFA: it means TCP",
    ),
    Harm(
        variable="NCCL_NET_PLUGIN",
        values=("none",),
        on=_has_efa,
        reason="not be none with EFA: it means TCP",
    ),
    Harm(variable="NCCL_IB_*", reason="is of InfiniBand, which EFA is not: it does nothing"),
    Harm(
        variable="NCCL_NETWORK_TIMEOUT",
        reason=(
            "is no variable of NCCL: it does nothing, and a hang is noticed after"
            " the timeout of torch.distributed.init_process_group"
        ),
    ),
    Harm(variable="FI_EFA_SET_DEFAULT_GDR", reason="is no variable of libfabric: it does nothing"),
    Harm(
        variable="NCCL_SOCKET_NTHREADS", on=_has_efa, reason="is of TCP: it does nothing with EFA"
    ),
    Harm(
        variable="NCCL_NSOCKS_PERTHREAD", on=_has_efa, reason="is of TCP: it does nothing with EFA"
    ),
    Harm(
        variable="FI_PROVIDER",
        but=("efa",),
        on=_has_efa,
        reason="be efa, which aws-ofi-nccl chooses by itself",
    ),
    Harm(
        variable="FI_EFA_USE_DEVICE_RDMA",
        values=("1",),
        on=lambda kind: not kind.gpudirect,
        reason="not be 1 without GPUDirect RDMA; libfabric 1.18 and later know by themselves",
    ),
    Harm(
        variable="RDMAV_*",
        reason="is of rdma-core, not of libfabric: with new kernels it can break forks",
    ),
)
"""What jobs are seen to set in vain or to their harm."""


def harm(variable: str, value: str, kind: InstanceType) -> Harm | None:
    """What is wrong with setting the variable so on the type; None where nothing is."""
    for each in HARMS:
        name = each.variable
        meant = variable.startswith(name[:-1]) if name.endswith("*") else variable == name
        if (
            meant
            and (not each.values or value in each.values)
            and value not in each.but
            and each.on(kind)
        ):
            return each
    return None
