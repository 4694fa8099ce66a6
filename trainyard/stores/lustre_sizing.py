"""The Lustre file system that a model needs: the cheapest that FSx sells and that keeps its
goodput.

The arithmetic is goodput.py; what FSx sells is trainyard/catalog/aws/storage.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

from trainyard.catalog.aws.prices import lustre_per_month
from trainyard.catalog.aws.storage import (
    CHECKPOINT_BYTES_PER_PARAMETER,
    EFA_LUSTRE_CLIENTS,
    LUSTRE_CLIENT_EFA,
    LUSTRE_CLIENT_TCP,
    LUSTRE_EFA_STEP_GIB,
    LUSTRE_SMALLEST_GIB,
    LUSTRE_STEP_GIB,
    LUSTRE_USABLE,
    SCRATCH_2_PER_TIB,
    Speed,
)
from trainyard.catalog.failure_rates import FAILURES_PER_1000_NODE_DAYS
from trainyard.settings.stores import LustreConfig, ModelConfig
from trainyard.stores.goodput import (
    ASYNC_STALL_SECONDS,
    CHECKPOINTS_KEPT,
    Training,
    Verdict,
    verdict,
)

LARGEST_GIB = 2**20
"""1 PiB: what is looked at. A cap of ours; FSx sells more to who asks."""
REFERENCE_REGION = "us-east-1"
"""Its prices put file systems in order where those of a region are not all known; they are never
shown as a cost."""


def usable_gib(capacity_gib: int) -> float:
    """Size that files can fill in a file system."""
    return capacity_gib * LUSTRE_USABLE


@dataclass(frozen=True, kw_only=True)
class LustreSize:
    """A Lustre file system, by what its speed follows from."""

    capacity_gib: int
    """As FSx counts it: 1200 is what is sold as "1.2 TiB", and 2 % less than that."""
    deployment: str
    tier: int | None = None
    """MB/s per TiB; PERSISTENT_2 only."""
    efa: bool = False
    """Created with EFA. Its clients use TCP all the same until they mount over EFA."""

    def __post_init__(self) -> None:
        if not self.tier and self.deployment != "SCRATCH_2":
            raise ValueError("a Lustre file system has a tier unless it is SCRATCH_2")

    @property
    def usable_gib(self) -> float:
        """Size that files can fill."""
        return usable_gib(self.capacity_gib)

    def disks(self) -> Speed:
        """Speed of the disks: a restart cannot count on the memory of servers."""
        tier, tib = (self.tier or 0) * 1e6, self.capacity_gib / 1024
        scratch = self.deployment == "SCRATCH_2"
        per_tib = SCRATCH_2_PER_TIB if scratch else Speed(write=tier, read=tier)
        return Speed(write=per_tib.write * tib, read=per_tib.read * tib)

    def client(self, instance_type: str, *, mounted_over_efa: bool) -> Speed:
        """Speed that one node reaches."""
        over_efa = self.efa and mounted_over_efa and instance_type in EFA_LUSTRE_CLIENTS
        return LUSTRE_CLIENT_EFA if over_efa else LUSTRE_CLIENT_TCP


@dataclass(frozen=True, kw_only=True)
class Choice:
    """A file system that FSx sells, and what it means for the training run it was looked up for."""

    store: LustreSize
    verdict: Verdict
    usd_per_month: float | None
    """None where no price of the region is known."""


@dataclass(frozen=True, kw_only=True)
class Needs:
    """Needs of a training run: what the file system must do for its checkpoints."""

    parameters_billion: float
    nodes: int
    instance_type: str
    region: str
    """Region of the prices."""
    goodput: float | None = 0.98
    """Least part of the time that trains. None: the best there is, at its lowest price."""
    efa: bool = False
    """Created with EFA, and mounted over it where the instance type can."""
    over_efa: bool = True
    """The nodes may mount the file system over EFA."""
    bytes_per_parameter: float = CHECKPOINT_BYTES_PER_PARAMETER
    blocking: bool = True
    """Training stops while a checkpoint is written."""
    interval_seconds: float | None = None
    """Training between two saves; None: the best."""
    failures_per_1000_node_days: float = FAILURES_PER_1000_NODE_DAYS
    on_disk: int = CHECKPOINTS_KEPT
    """Number of checkpoints that it must hold."""
    least_gib: int = 0
    """Capacity that it must have."""


def needs_of(
    model: ModelConfig, lustre: LustreConfig, region: str, instance_types: Sequence[str]
) -> Needs:
    """Needs of a training run that `for_model` of a store describes."""
    return Needs(
        parameters_billion=model.parameters_billion,
        nodes=model.nodes,
        instance_type=client(lustre, instance_types),
        region=region,
        goodput=model.goodput_percent / 100,
        bytes_per_parameter=model.bytes_per_parameter,
        efa=lustre.efa,
    )


def sized(lustre: LustreConfig, region: str, instance_types: Sequence[str]) -> LustreConfig:
    """The store with size and speed: as given, or the cheapest that serves `for_model` on the first
    of the types; made for EFA, on the first that can mount over it."""
    if lustre.for_model is None:
        return lustre
    choice = chosen(needs_of(lustre.for_model, lustre, region, instance_types))
    if choice is None:
        return lustre
    return replace(
        lustre,
        for_model=None,
        capacity_gib=choice.store.capacity_gib,
        throughput_mbps_per_tib=choice.store.tier,
    )


def client(lustre: LustreConfig, instance_types: Sequence[str]) -> str:
    """The type that a store is sized for."""
    able = [kind for kind in instance_types if lustre.efa and kind in EFA_LUSTRE_CLIENTS]
    return [*able, *instance_types, ""][0]


def for_model(needs: Needs) -> Choice | None:
    """The cheapest PERSISTENT_2 file system that gives a training run what it needs; None: there is
    none. SCRATCH_2 is never chosen: it loses data with a server."""
    training = Training(
        parameters_billion=needs.parameters_billion,
        nodes=needs.nodes,
        instance_type=needs.instance_type,
        bytes_per_parameter=needs.bytes_per_parameter,
        stall_seconds=None if needs.blocking else ASYNC_STALL_SECONDS,
        failures_per_1000_node_days=needs.failures_per_1000_node_days,
    )
    region, efa = needs.region, needs.efa
    ranked_by = region if _every_tier_priced(region) else REFERENCE_REGION
    sold = sorted(_sold(efa), key=lambda store: (_usd(store, ranked_by) or 0, -(store.tier or 0)))
    over_efa, interval = efa and needs.over_efa, needs.interval_seconds
    verdicts = (
        (store, verdict(training, store, mounted_over_efa=over_efa, interval_seconds=interval))
        for store in sold
        if store.capacity_gib >= needs.least_gib
    )
    roomy = (
        Choice(store=store, verdict=given, usd_per_month=_usd(store, region))
        for store, given in verdicts
        if (given.checkpoints_held or 0) >= needs.on_disk and not given.saves_too_often
    )
    if needs.goodput is None:
        return max(roomy, key=lambda choice: choice.verdict.goodput, default=None)
    least = needs.goodput
    return next((choice for choice in roomy if choice.verdict.goodput >= least), None)


chosen = cache(for_model)
"""for_model, remembered: many jobs ask the same."""


def _sold(efa: bool) -> Iterator[LustreSize]:
    """PERSISTENT_2 in every tier and size that FSx sells up to our cap."""
    for tier, efa_step in LUSTRE_EFA_STEP_GIB.items():
        step = efa_step if efa else LUSTRE_STEP_GIB
        for capacity in (
            *([] if efa else [LUSTRE_SMALLEST_GIB]),
            *range(step, LARGEST_GIB + 1, step),
        ):
            yield LustreSize(
                capacity_gib=capacity,
                deployment="PERSISTENT_2",
                tier=tier,
                efa=efa,
            )


def _every_tier_priced(region: str) -> bool:
    """True where file systems of the region can be put in order by the region's own prices. Where
    one tier has none, prices of two regions would stand side by side."""
    return all(lustre_per_month(region, "PERSISTENT_2", tier, 1) for tier in LUSTRE_EFA_STEP_GIB)


def _usd(store: LustreSize, region: str) -> float | None:
    return lustre_per_month(region, store.deployment or "", store.tier, store.capacity_gib or 0)
