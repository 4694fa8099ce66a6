"""Settings of pools. Their plan: trainyard/derive/pools.py."""

from dataclasses import dataclass
from typing import Annotated, Literal

import pydantic

from trainyard.settings.job import Positive
from trainyard.settings.section import Section


@dataclass(frozen=True, kw_only=True)
class ReservationConfig:
    """Capacity that you have reserved or bought. This program uses it; it never buys, changes or
    cancels it."""

    id: Annotated[str, pydantic.Field(pattern=r"^cr-[0-9a-f]{8,17}$")]
    """ID of the capacity reservation: cr-0123456789abcdef0."""
    instances: Positive
    """Number of instances in the reservation."""
    starts: pydantic.AwareDatetime | None = None
    """Start time, with a time zone: 2026-12-01T11:30:00Z. Required for a Capacity Block, optional
    for an ODCR."""
    ends: pydantic.AwareDatetime | None = None
    """End time, with a time zone. Required for a Capacity Block, optional for an ODCR."""
    placement_group: str | None = None
    """Placement group the reservation was created in. EC2 launches few or no instances without
    it."""


@dataclass(frozen=True, kw_only=True)
class PoolConfig:
    """GPU or CPU nodes of one kind, launched by Karpenter when a job needs them. An idle pool
    without `replicas` costs nothing."""

    instance_types: tuple[str, ...]
    """EC2 instance types, in order of preference. A pool with several types can only run jobs of
    one node: ranks must not mix types."""
    max_nodes: Positive
    """Maximum number of nodes, of each type where there are several. The largest job must fit."""
    capacity: Literal["on_demand", "spot", "reservation", "block"] = "on_demand"
    """Purchase option of the nodes. `on_demand` is the recommended value. EC2 takes `spot` nodes
    back with two minutes' warning. `reservation` (ODCR) and `block` (Capacity Block for ML) require
    `reservation`."""
    reservation: Section[ReservationConfig] = None
    """The reservation that the nodes are launched in. Only for `capacity: reservation` and
    `capacity: block`."""
    replicas: Annotated[int, pydantic.Field(ge=0, strict=True)] | None = None
    """Number of nodes that run all the time, with or without a job (a static pool). By default
    nodes run only while a job needs them. A job cannot have more nodes than this. 0 switches the nodes off,
    `warm_spares` with them, such as for a night; a node that a job uses goes when the job ends, that of a block 10
    minutes later."""
    warm_spares: Annotated[int, pydantic.Field(ge=0, le=16, strict=True)] = 0
    """Number of nodes that run in addition to `replicas`, so that a broken node is replaced without
    waiting for capacity."""
    placement: Literal["anywhere", "cluster"] = "anywhere"
    """`cluster` launches the nodes in a placement group of the pool: lower latency, but launches
    fail for lack of capacity more often."""
    fallback_zones: tuple[str, ...] = ()
    """Other zones in which nodes can be launched. EC2 chooses among them and `environment.zone`, also
    while `environment.zone` has capacity. Only for jobs of one node."""
    ami_family: Literal["AL2023", "Bottlerocket"] = "AL2023"
    """Operating system of the nodes, in Karpenter's words. `Bottlerocket` starts sooner and has no shell: only
    for types with GPUs, and not with Lustre over EFA. A change applies to nodes that are launched after it."""
    root_volume_gib: Annotated[int, pydantic.Field(ge=100, le=16384, strict=True)] = 200
    """Size of a node's root EBS volume, or with `ami_family: Bottlerocket` of its data volume. The
    accelerated AMI alone takes most of 50 GiB. Containers are stored on the node's local NVMe disks."""
    prefetch: tuple[str, ...] | None = None
    """Images that a node pulls while it starts, so that a job need not wait for them. Each must
    have the command `sleep`, and need no `pull_secrets`. Default: the image of the jobs of this
    file on the pool, if they have one in common. `[]` pulls none."""


def node_type_names(name: str, pool: PoolConfig) -> list[str]:
    """Names of the pool's NodePools: its own for the first choice, then numbered."""
    return [name, *(f"{name}-{number}" for number in range(2, len(pool.instance_types) + 1))]
