"""What the components of add-ons and nodes are told: more of trainyard/plans/parts.py."""

from __future__ import annotations

from dataclasses import dataclass

from trainyard.plans.identity import Identity

SYSTEM_DISK_GIB = 50
"""Size of a system node's root volume."""


@dataclass(frozen=True, kw_only=True)
class AddOnPlan:
    name: str
    version: str
    configuration: str | None = None
    service_account: str = ""
    """ServiceAccount of those of its pods that get a role; empty: none does."""
    overwrites: bool = True
    """Whether the add-on overwrites objects that have its names. False in an existing cluster: there
    the add-on fails instead."""


@dataclass(frozen=True, kw_only=True)
class AddOnsPlan:
    identity: Identity
    before_nodes: tuple[AddOnPlan, ...]
    """What a node needs to become Ready, and a pod to have its identity."""
    after_nodes: tuple[AddOnPlan, ...]
    """Deployments: without nodes they would be DEGRADED for 20 minutes and fail
    (pulumi-eks#1525)."""
    cni_identity: bool = True
    """The stack gives the VPC CNI its role. False where the VPC CNI is not the stack's."""


@dataclass(frozen=True, kw_only=True)
class SystemNodesPlan:
    identity: Identity
    name: str
    role_name: str
    template_name: str
    """Name of the launch template."""
    instance_type: str
    nodes: int
    version: str
    """Minor release of Kubernetes."""
    release: str
    """Release of the AMI, such as 1.35.8-20261012."""
    disk_gib: int
    """Size of the root volume."""
    node_tags: tuple[tuple[str, str], ...]
    """Tags of instances and volumes, in addition to the stack's: the AWS provider tags neither."""
    tunnel: bool
    """Whether Systems Manager may open a tunnel through these nodes."""
    cni: bool = False
    """Whether the VPC CNI may attach addresses as the node: one that is not the stack's may have no
    role of its own."""
    entry: bool = False
    """Whether the access entry of the nodes is the stack's. Otherwise EKS makes it, and leaves it in a
    cluster that stays."""


@dataclass(frozen=True, kw_only=True)
class GpuNodesPlan:
    """The identity that all GPU nodes share."""

    identity: Identity
    cluster_name: str
    role_name: str
    profile_name: str
    cni: bool = False
    """As that of SystemNodesPlan."""
