"""Plan of a network: either of a VPC that the stack makes, or of an existing one."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from trainyard.plans.identity import Identity

SERVICE_CIDRS = ("172.20.0.0/16", "10.100.0.0/16")
"""The two ranges that EKS itself chooses the addresses of services from."""
NODES = "nodes"
"""What the security group of the GPU nodes is called by."""
ENDPOINTS = "endpoints"
"""What the security group of interface endpoints is called by."""
AWS_KEEPS = 5
"""Addresses of a subnet that AWS keeps (VPC user guide, subnet-sizing)."""
EKS_ADDRESSES = 6
"""Addresses that EKS asks for in each subnet of a cluster, at least; it advises 16 (EKS user guide,
network-reqs)."""


@dataclass(frozen=True, kw_only=True)
class SubnetUse:
    """Addresses that the private subnet of one zone must have when every pool is full."""

    pools: Mapping[str, int]
    """Pool → those of its nodes; pools of other zones are not in it."""
    system_nodes: int
    others: Mapping[str, int]
    """What else has interfaces there → their number. Updates do not change it."""

    @property
    def nodes(self) -> int:
        """Those that nodes take."""
        return sum(self.pools.values()) + self.system_nodes

    @property
    def total(self) -> int:
        return self.nodes + sum(self.others.values())

    @property
    def told(self) -> str:
        """Who takes how many: "42 for pool g6e, 21 for system nodes, 6 for EKS"."""
        pools = {f"pool {name}": number for name, number in self.pools.items()}
        takers = {**pools, "system nodes": self.system_nodes, **self.others}
        return ", ".join(f"{number} for {who}" for who, number in takers.items() if number)


@dataclass(frozen=True, kw_only=True)
class ZonePlan:
    """One zone of a network that the stack makes."""

    name: str
    letter: str
    """Last of the name; also what its subnets are called by."""
    public_cidr: str
    private_cidr: str


@dataclass(frozen=True, kw_only=True)
class WayOutPlan:
    """A NAT gateway, and the private subnets that reach the internet through it."""

    table: str
    """What its route table is called by, behind the name of the network."""
    zone: ZonePlan
    """Where the gateway is."""
    zones: tuple[ZonePlan, ...]
    """Whose private subnets use it."""


@dataclass(frozen=True, kw_only=True)
class FlowLogsPlan:
    """Flow logs of a VPC that the stack makes."""

    role_name: str
    """Name of the role with which the VPC writes them."""
    group_name: str
    """Name of their log group."""
    days: int
    """How long CloudWatch keeps them."""


@dataclass(frozen=True, kw_only=True)
class EndpointsPlan:
    """Interface endpoints that the stack makes, one for each AWS API, in each zone."""

    apis: tuple[str, ...]
    """As trainyard/catalog/aws/endpoints.py names them."""


@dataclass(frozen=True, kw_only=True)
class OwnNetworkPlan:
    """A VPC that the stack makes."""

    identity: Identity
    cidr: str
    service_cidr: str
    """Range of Kubernetes services."""
    zones: tuple[ZonePlan, ...]
    """The training zone first."""
    training_zone: ZonePlan
    """The one of `zones` where GPU nodes and file systems are."""
    addresses: Mapping[str, SubnetUse]
    """Zone → what is taken of its subnet."""
    ways_out: tuple[WayOutPlan, ...]
    """One, in the training zone, or one in each zone; none where nodes must not reach the internet:
    then there are no public subnets."""
    endpoints: EndpointsPlan | None
    flow_logs: FlowLogsPlan | None
    cluster_name: str
    """For the subnet tags that load balancers look for."""


@dataclass(frozen=True, kw_only=True)
class ExistingZonePlan:
    """One zone of an existing VPC."""

    name: str
    subnet_id: str
    """Its private subnet."""


@dataclass(frozen=True, kw_only=True)
class ExistingNetworkPlan:
    """An existing VPC, which the stack uses and does not change."""

    identity: Identity
    vpc_id: str
    zones: tuple[ExistingZonePlan, ...]
    """The training zone first."""
    training_zone: ExistingZonePlan
    """The one of `zones` where GPU nodes and file systems are."""
    zone_id: str | None
    """ID of the training zone, as the stack file says it."""
    makes_cluster: bool
    """The cluster is the stack's, and needs a range for services beside those of the VPC."""
    service_cidr: str | None
    """Range that the stack file wants for services; None: whichever of SERVICE_CIDRS is free."""
    addresses: Mapping[str, SubnetUse]
    """Zone → what is taken of its subnet."""
    s3_endpoint: bool
    """The stack makes a gateway endpoint for S3."""
    isolated: bool
    """No subnet needs a default route."""
    called_apis: tuple[str, ...]
    """AWS APIs that are called from inside the VPC."""
    endpoints: EndpointsPlan | None
    """None: those of the VPC, or of another one."""
    endpoints_elsewhere: bool
    """Endpoints of another VPC lead to AWS APIs."""
    cluster_name: str
    """By which the interfaces that the cluster's nodes leave behind are found."""


AnyNetworkPlan = OwnNetworkPlan | ExistingNetworkPlan


def has_flow_logs(network: AnyNetworkPlan) -> bool:
    """Whether the stack records the traffic of the VPC."""
    return isinstance(network, OwnNetworkPlan) and network.flow_logs is not None


def service_cidr(vpc_cidrs: Iterable[str], wanted: str | None = None) -> str | None:
    """The range of services: `wanted`, or the first of SERVICE_CIDRS. It overlaps no range of the VPC;
    None where each does."""
    taken = [ipaddress.ip_network(cidr) for cidr in vpc_cidrs]
    free = (
        cidr
        for cidr in ([wanted] if wanted else SERVICE_CIDRS)
        if not any(ipaddress.ip_network(cidr).overlaps(one) for one in taken)
    )
    return next(free, None)


def room(cidr: str) -> int:
    """Addresses of a subnet that interfaces can have."""
    return ipaddress.ip_network(cidr).num_addresses - AWS_KEEPS
