"""Plan of the network: its zones and, where the stack makes it, their address ranges."""

from __future__ import annotations

import ipaddress

from trainyard.catalog.aws.zones import zone_names
from trainyard.derive.subnets import NetworkUse
from trainyard.objects.iam.encryption import FLOW
from trainyard.plans.identity import Identity
from trainyard.plans.networks import (
    AnyNetworkPlan,
    EndpointsPlan,
    ExistingNetworkPlan,
    ExistingZonePlan,
    FlowLogsPlan,
    OwnNetworkPlan,
    WayOutPlan,
    ZonePlan,
    service_cidr,
)
from trainyard.settings.cluster import ClusterConfig
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.network import AnyNetwork, ExistingNetworkConfig, NetworkConfig

ZONES = 3
"""Zones of a network whose stack file lists none, the training zone among them; EKS wants two, three
keep the system nodes up when one fails."""


def network_zones(region: str, wanted: EnvironmentConfig) -> tuple[str, ...]:
    """The zones of the network, the training zone first; the others in the order of their names,
    however the stack file lists them."""
    network = wanted.network
    if isinstance(network, ExistingNetworkConfig):
        return (wanted.zone, *sorted({*network.private_subnets} - {wanted.zone}))
    known = zone_names(region)
    others = sorted({*(network.zones or known)} - {wanted.zone})
    return (wanted.zone, *(others if network.zones else others[: min(ZONES, len(known)) - 1]))


def made_from(network: AnyNetwork) -> str:
    """Value that makes the network another one, beside its zones: its range, or the id of an
    existing VPC."""
    return network.vpc_id if isinstance(network, ExistingNetworkConfig) else network.cidr


def network_plan(
    me: Identity, network: AnyNetwork, cluster: ClusterConfig, use: NetworkUse, cluster_name: str
) -> AnyNetworkPlan:
    """The VPC: one that the stack makes, or an existing one. `cluster`: settings of the cluster in it,
    `cluster_name`: its name. `use`: what the environment takes of the network."""
    if isinstance(network, ExistingNetworkConfig):
        return _existing(me, network, cluster, use, cluster_name)
    services = service_cidr([network.cidr], cluster.service_cidr)
    assert services is not None  # no range of rules.network overlaps both, and rules.cluster asked
    planned = zone_cidrs(network.cidr, use.zones)
    return OwnNetworkPlan(
        identity=me,
        cidr=network.cidr,
        service_cidr=services,
        zones=planned,
        training_zone=planned[0],
        addresses=use.addresses,
        ways_out=_ways_out(planned, network),
        endpoints=_endpoints(network, use),
        flow_logs=_flow_logs(me, network),
        cluster_name=cluster_name,
    )


def _flow_logs(me: Identity, network: NetworkConfig) -> FlowLogsPlan | None:
    if network.flow_logs is None:
        return None
    name = me.name("flow-logs")
    return FlowLogsPlan(role_name=name, group_name=f"{FLOW}{name}", days=network.flow_logs.days)


def _endpoints(network: AnyNetwork, use: NetworkUse) -> EndpointsPlan | None:
    if network.endpoints != "private":
        return None
    return EndpointsPlan(apis=use.called_apis)


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


def _existing(
    me: Identity,
    network: ExistingNetworkConfig,
    cluster: ClusterConfig,
    use: NetworkUse,
    cluster_name: str,
) -> ExistingNetworkPlan:
    planned = tuple(
        ExistingZonePlan(name=zone, subnet_id=network.private_subnets[zone]) for zone in use.zones
    )
    return ExistingNetworkPlan(
        identity=me,
        vpc_id=network.vpc_id,
        zones=planned,
        training_zone=planned[0],
        zone_id=use.zone_id,
        makes_cluster=cluster.name is None,
        service_cidr=cluster.service_cidr,
        addresses=use.addresses,
        s3_endpoint=network.s3_endpoint,
        isolated=network.internet == "none",
        called_apis=use.called_apis,
        endpoints=_endpoints(network, use),
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
