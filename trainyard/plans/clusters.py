"""Plan of a control plane, of the stack or an existing one, and of its add-ons."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Literal

from trainyard.catalog.versions import Support
from trainyard.plans.access import AccessPlan, NamedRole
from trainyard.plans.identity import Identity

ALWAYS_THERE = ("vpc-cni", "kube-proxy", "coredns")
"""Add-ons of an existing cluster that this program never makes: EKS puts these programs into a new
cluster by itself, and its API does not show whether it did (EKS user guide, eks-add-ons)."""
AGENT = "eks-pod-identity-agent"
NETWORK_POLICY = "enableNetworkPolicy"
"""Configuration value of the VPC CNI that makes it enforce NetworkPolicies."""


@dataclass(frozen=True, kw_only=True)
class ClusterPlan:
    """Fields of both kinds of clusters."""

    identity: Identity
    name: str
    version: str
    support: Support
    """Support of AWS for the version in the month from the day of the plan on: the later one, where it begins in
    that month. Only the price follows from it."""
    support_from: date | None
    """Day on which that support begins; None where it had begun before the day of the plan."""
    public: bool
    """Callers outside of the VPC reach the endpoint."""
    tunnel_port: int | None
    """Port that a tunnel through a system node begins at, whether it is used already or prepared;
    None: no tunnel is wanted."""
    roles: tuple[NamedRole, ...]
    """Roles that the environment lets in: its admins and its viewers."""
    access: AccessPlan

    @property
    def admins(self) -> tuple[NamedRole, ...]:
        """Roles that may do everything."""
        return tuple(role for role in self.roles if role.setting == "admins")

    @property
    def viewers(self) -> tuple[NamedRole, ...]:
        """Roles that look and change nothing."""
        return tuple(role for role in self.roles if role.setting == "viewers")


@dataclass(frozen=True, kw_only=True)
class OwnClusterPlan(ClusterPlan):
    """A cluster that the stack makes."""

    upgrade_policy: Literal["extended", "standard"]
    logs: tuple[str, ...]
    log_days: int | None
    """Days for which CloudWatch keeps the logs; None: the log group is EKS's own."""
    deletion_protection: bool | None
    """None: the cluster keeps what it has."""
    scaling_tier: str | None
    """None: the cluster keeps the one it has."""
    public_access_cidrs: tuple[str, ...]
    """Empty without a public endpoint."""
    role_name: str | None
    """Name of the control plane's role; None: pulumi-eks makes it, without a boundary."""

    @property
    def log_group(self) -> str:
        """Name of the log group that EKS writes to (EKS user guide, control-plane-logs)."""
        return f"/aws/eks/{self.name}/cluster"


@dataclass(frozen=True, kw_only=True)
class ExistingClusterPlan(ClusterPlan):
    """An existing cluster, which the stack uses and does not change."""

    vpc_id: str
    """In which it must be: that of the environment's nodes."""
    add_ons: tuple[str, ...]
    """Add-ons that it must have, and that the stack leaves as they are."""
    made_add_ons: tuple[str, ...]
    """Add-ons that the stack puts beside them, and that nobody else may have made."""
    network_policies: bool
    """Its VPC CNI must enforce NetworkPolicies, for teams."""
    efa: bool
    """Its VPC CNI must take efa-only interfaces, for nodes with EFA devices."""
    full_types: Mapping[str, str]
    """Pool → its first type whose card 0 has room for no interface beside the node's own and an efa-only one; pools
    without such a type are not in it."""


AnyClusterPlan = OwnClusterPlan | ExistingClusterPlan


def own_log_days(cluster: AnyClusterPlan) -> int | None:
    """Days for which the stack's own log group of the control plane keeps its lines; None where the
    stack has none."""
    return cluster.log_days if isinstance(cluster, OwnClusterPlan) else None


def protected(cluster: AnyClusterPlan) -> bool:
    """True where EKS refuses to delete a cluster of the stack."""
    return isinstance(cluster, OwnClusterPlan) and bool(cluster.deletion_protection)


@dataclass(frozen=True, kw_only=True)
class AddOnPlan:
    name: str
    version: str
    configuration: str | None = None
    service_account: str = ""
    """ServiceAccount of those of its pods that get a role; empty: none does."""
    overwrites: bool = True
    """The add-on overwrites objects that have its names. False in an existing cluster: there the
    add-on fails instead."""


@dataclass(frozen=True, kw_only=True)
class AddOnsPlan:
    identity: Identity
    before_nodes: tuple[AddOnPlan, ...]
    """Add-ons that a node needs to become Ready, and a pod to have its identity."""
    after_nodes: tuple[AddOnPlan, ...]
    """Deployments: without nodes they would be DEGRADED for 20 minutes and fail
    (pulumi-eks#1525)."""
    cni_identity: bool = True
    """The stack gives the VPC CNI its role. False where the VPC CNI is not the stack's."""

    @property
    def every(self) -> tuple[AddOnPlan, ...]:
        """All add-ons, in their order."""
        return (*self.before_nodes, *self.after_nodes)
