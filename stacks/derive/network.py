"""What follows from the network's settings: its zones, their address ranges, and the range of
Kubernetes services."""

from __future__ import annotations

import ipaddress

from catalog.zones import zone_names
from plans.parts import Identity, NetworkPlan, ZonePlan
from stacks.settings.environment import EnvironmentConfig

ZONES = 3
"""Zones of a network whose stack file lists none, the training zone among them; EKS wants two, three
keep the system nodes up when one fails."""
SERVICE_CIDRS = ("172.20.0.0/16", "10.100.0.0/16")
"""The two ranges that EKS itself chooses the addresses of services from."""


def network_zones(region: str, wanted: EnvironmentConfig) -> tuple[str, ...]:
    """The zones of the network, the training zone first; the others in the order of their names,
    however the stack file lists them."""
    listed = wanted.network.zones or zone_names(region)
    others = sorted({*listed} - {wanted.zone})
    return (wanted.zone, *(others if wanted.network.zones else others[: ZONES - 1]))


def network_plan(
    me: Identity, wanted: EnvironmentConfig, zones: tuple[str, ...], cluster_name: str
) -> NetworkPlan:
    """`zones`: as `network_zones` names them."""
    planned = zone_cidrs(wanted.network.cidr, zones)
    return NetworkPlan(
        identity=me,
        cidr=wanted.network.cidr,
        zones=planned,
        training_zone=next(zone for zone in planned if zone.name == wanted.zone),
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


def service_cidr(vpc_cidr: str) -> str:
    """The first range of SERVICE_CIDRS that does not overlap the VPC."""
    vpc = ipaddress.ip_network(vpc_cidr)
    return next(cidr for cidr in SERVICE_CIDRS if not vpc.overlaps(ipaddress.ip_network(cidr)))
