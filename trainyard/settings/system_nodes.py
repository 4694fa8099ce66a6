"""Settings of system nodes. Their plan: trainyard/derive/cluster.py."""

from dataclasses import dataclass
from typing import Annotated

import pydantic

MOST_NODES = 10
"""Only controllers run there."""


@dataclass(frozen=True, kw_only=True)
class SystemNodesConfig:
    """CPU nodes for controllers: one managed node group across all zones."""

    instance_type: str = "m7i.xlarge"
    """EC2 instance type. Two nodes of the default type, with 4 vCPUs and 16 GiB, hold Karpenter (1
    CPU for each of its two replicas), the Trainer, JobSet and CoreDNS with room to spare. Another
    type deletes all nodes before it creates others: for minutes there are no controllers and no
    CoreDNS."""
    nodes: Annotated[int, pydantic.Field(ge=2, le=MOST_NODES, strict=True)] = 2
    """Number of nodes. Two is the minimum because Karpenter's two replicas cannot share a node
    (karpenter-provider-aws#2707)."""
    release: Annotated[str, pydantic.Field(pattern=r"^1\.\d\d\.\d+-20\d{6}$")] | None = None
    """Release of the nodes' AMI, such as 1.35.8-20261012: Kubernetes patch version and day. By
    default the release that trainyard/catalog/versions.py pins for `cluster.version`. Another release
    replaces the nodes one by one; GPU nodes are not touched."""
