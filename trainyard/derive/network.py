"""What follows from the network's settings: its zones and, where the stack makes it, their address
ranges."""

from __future__ import annotations

import ipaddress

from trainyard.catalog.aws.zones import zone_names
from trainyard.derive.endpoints import called_apis
from trainyard.derive.subnets import subnet_uses
from trainyard.objects.iam.encryption import FLOW
from trainyard.plans.networks import (
    AnyNetworkPlan,
    BroughtNetworkPlan,
    BroughtZonePlan,
    EndpointsPlan,
    FlowLogsPlan,
    OwnNetworkPlan,
    WayOutPlan,
    ZonePlan,
    service_cidr,
)
from trainyard.plans.parts import Identity
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.network import AnyNetwork, BroughtNetworkConfig, NetworkConfig

ZONES = 3
"""Zones of a network whose stack file lists none, the training zone among them; EKS wants two, three
keep the system nodes up when one fails."""


def network_zones(region: str, wanted: EnvironmentConfig) -> tuple[str, ...]:
    """The zones of the network, the training zone first; the others in the order of their names,
    however the stack file lists them."""
    network = wanted.network
    if isinstance(network, BroughtNetworkConfig):
        return (wanted.zone, *sorted({*network.private_subnets} - {wanted.zone}))
    listed = network.zones or zone_names(region)
    others = sorted({*listed} - {wanted.zone})
    return (wanted.zone, *(others if network.zones else others[: ZONES - 1]))


def made_from(network: AnyNetwork) -> str:
    """What makes the network another one, beside its zones: its range, or whose it is."""
    return network.vpc_id if isinstance(network, BroughtNetworkConfig) else network.cidr


def network_plan(
    me: Identity, wanted: EnvironmentConfig, zones: tuple[str, ...], cluster_name: str
) -> AnyNetworkPlan:
    """The VPC: one that the stack makes, or one that is brought. `zones`: from `network_zones`."""
    if isinstance(wanted.network, BroughtNetworkConfig):
        return _brought(me, wanted, wanted.network, zones, cluster_name)
    cidr, planned = wanted.network.cidr, zone_cidrs(wanted.network.cidr, zones)
    services = service_cidr([cidr], wanted.cluster.service_cidr)
    assert services is not None  # no range of rules.network overlaps both, and rules.cluster asked
    return OwnNetworkPlan(
        identity=me,
        cidr=cidr,
        service_cidr=services,
        zones=planned,
        training_zone=planned[0],
        addresses=subnet_uses(wanted, zones),
        ways_out=_ways_out(planned, wanted.network),
        endpoints=_endpoints(wanted),
        flow_logs=_flow_logs(me, wanted.network),
        cluster_name=cluster_name,
    )


def _flow_logs(me: Identity, network: NetworkConfig) -> FlowLogsPlan | None:
    if network.flow_logs is None:
        return None
    name = me.name("flow-logs")
    return FlowLogsPlan(role_name=name, group_name=f"{FLOW}{name}", days=network.flow_logs.days)


def _endpoints(wanted: EnvironmentConfig) -> EndpointsPlan | None:
    if wanted.network.endpoints != "private":
        return None
    return EndpointsPlan(apis=called_apis(wanted))


def _ways_out(zones: tuple[ZonePlan, ...], network: NetworkConfig) -> tuple[WayOutPlan, ...]:
    """Where nodes reach the internet, the training zone, which is the first, has a NAT gateway: there
    the traffic is."""
    if network.internet == "none":
        return ()
    if network.nat == "single":
        return (WayOutPlan(table="private", zone=zones[0], zones=zones),)
    return tuple(
        WayOutPlan(table=f"private-{zone.letter}", zone=zone, zones=(zone,)) for zone in zones
    )


def _brought(
    me: Identity,
    wanted: EnvironmentConfig,
    network: BroughtNetworkConfig,
    zones: tuple[str, ...],
    cluster_name: str,
) -> BroughtNetworkPlan:
    planned = tuple(
        BroughtZonePlan(name=zone, subnet_id=network.private_subnets[zone]) for zone in zones
    )
    return BroughtNetworkPlan(
        identity=me,
        vpc_id=network.vpc_id,
        zones=planned,
        training_zone=planned[0],
        zone_id=wanted.zone_id,
        makes_cluster=wanted.cluster.name is None,
        service_cidr=wanted.cluster.service_cidr,
        addresses=subnet_uses(wanted, zones),
        s3_endpoint=network.s3_endpoint,
        isolated=network.internet == "none",
        called_apis=called_apis(wanted),
        endpoints=_endpoints(wanted),
        endpoints_elsewhere=network.endpoints == "elsewhere",
        cluster_name=cluster_name,
    )


def zone_cidrs(cidr: str, zones: tuple[str, ...]) -> tuple[ZonePlan, ...]:
    """Divide the VPC into eighths: one for the private subnet of each of zones a to f, the last for
    public ones.

    A zone's ranges follow from its own letter, so another training zone moves no subnet. A private
    subnet of a /16 has 8,192 addresses, a public one 256.
    """
    eighths = list(ipaddress.ip_network(cidr).subnets(prefixlen_diff=3))
    public = list(eighths[7].subnets(prefixlen_diff=5))
    place = {zone: ord(zone[-1]) - ord("a") for zone in zones}
    return tuple(
        ZonePlan(
            name=zone,
            letter=zone[-1],
            public_cidr=str(public[place[zone]]),
            private_cidr=str(eighths[place[zone]]),
        )
        for zone in zones
    )
