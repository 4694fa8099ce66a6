"""Plans of pools: their types of nodes, with the network interfaces of each, and all nodes with GPUs."""

from __future__ import annotations

from dataclasses import dataclass

from trainyard.plans.identity import Identity


@dataclass(frozen=True, kw_only=True)
class NetworkInterface:
    """One entry of EC2NodeClass.spec.networkInterfaces."""

    card: int
    device: int
    kind: str
    """"interface" takes an IP address; "efa-only" does not."""


@dataclass(frozen=True, kw_only=True)
class NodeTypePlan:
    """Nodes of one instance type in a pool. Each type has an EC2NodeClass and a NodePool."""

    name: str
    instance_type: str
    gpus: int
    """0: a CPU type."""
    vcpus: int
    efa: int
    interfaces: tuple[NetworkInterface, ...]
    lnet_efa: int
    """EFA devices that Lustre's network takes; 0: it goes over TCP."""
    lustre: bool
    """Some store of the environment is Lustre, so the node gets its client."""
    max_pods: int
    weight: int | None
    """Karpenter tries the heavier NodePool first; None where there is no choice."""


@dataclass(frozen=True, kw_only=True)
class GpuPoolPlan:
    identity: Identity
    name: str
    types: tuple[NodeTypePlan, ...]
    """In order of preference; one, unless the pool serves jobs of one node only."""
    zones: tuple[str, ...]
    """One, unless the pool serves jobs of one node only."""
    capacity_type: str
    """Karpenter's: on-demand, spot or reserved."""
    reservation_id: str | None
    placement_group: str | None
    """Name of the group that nodes are placed in."""
    own_placement_group: bool
    """The stack creates the placement group. False: it exists already, because the reservation was
    created in it."""
    max_nodes: int
    replicas: int | None
    """Nodes of a static pool, its warm spares among them."""
    drain_minutes: int | None
    """Minutes after which Karpenter deletes the pods of a node that drains. None: it waits until they
    end."""
    ami: str
    root_volume_gib: int
    root_volume_iops: int
    root_volume_mbps: int
    """The root volume is gp3."""
    awaited: bool
    """`up` waits until its NodePools are Ready: a job of the stack runs on it, or it keeps
    nodes."""
    images: tuple[str, ...]
    """Images that its nodes pull while they start."""


@dataclass(frozen=True, kw_only=True)
class GpuNodesPlan:
    """The identity that all GPU nodes share."""

    identity: Identity
    cluster_name: str
    role_name: str
    profile_name: str
    sessions: bool
    """Systems Manager may open a terminal on these nodes."""
    cni: bool = False
    """As that of SystemNodesPlan."""
