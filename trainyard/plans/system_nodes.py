"""Plan of the nodes that controllers run on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from trainyard.plans.identity import Identity

SYSTEM_DISK_GIB = 50
"""Size of a system node's root volume."""


class SystemPod(NamedTuple):
    """A pod on a system node, any of them."""

    name: str
    """Name of its program."""
    millicpus: int
    """CPU that it requests, in thousandths of a vCPU."""


@dataclass(frozen=True, kw_only=True)
class SystemNodesPlan:
    identity: Identity
    name: str
    role_name: str
    template_name: str
    """Name of the launch template."""
    instance_type: str
    nodes: int
    zones: int
    """Number of zones of their subnets."""
    version: str
    """Minor release of Kubernetes."""
    release: str
    """Release of the AMI, such as 1.35.8-20261012."""
    disk_gib: int
    """Size of the root volume."""
    node_tags: tuple[tuple[str, str], ...]
    """Tags of instances and volumes, in addition to the stack's: the AWS provider tags neither."""
    tunnel: bool
    """Systems Manager may open a tunnel through these nodes."""
    cni: bool = False
    """The VPC CNI may attach addresses with the role of the node. The CNI of an existing cluster
    may have no role of its own."""
    entry: bool = False
    """The access entry of the nodes is the stack's. Otherwise EKS makes it, and leaves it in a
    cluster that stays."""
