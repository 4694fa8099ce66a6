"""Connections that security groups and routes let through: between two network interfaces, from one
to the internet, and from one to an API of AWS.

Ports of Lustre: FSx user guide, limit-access-security-groups: clients and servers open connections
to each other, and servers among themselves. Of EFS: efs user guide, network-access. Of EFA: EC2 user
guide, efa-start: all traffic, in and out, by rules that name a group. A rule of addresses means
nothing to it (awslabs/awsome-distributed-ai#546, gardener/gardener-extension-provider-aws#1832).
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from ipaddress import ip_address, ip_network
from typing import Any

from rehearsal.aws import backends, eks, endpoints, storage
from rehearsal.aws.operations import Refused
from rehearsal.kubelet.aws import PEERS

HTTPS, NFS, LUSTRE = 443, 2049, (988, *range(1018, 1024))
INTERNET, AWS, ANYWHERE = "internet", "aws:", "0.0.0.0/0"
CALLED = {"aps": "aps-workspaces", "ecr": "ecr.api"}
"""Name that a service signs with → name of its endpoint for pods."""
EFA = -1
"""In the place of a TCP port: EFA has none."""


def blocked(source: Any, target: Any, port: int) -> str:
    """Obstacle to a TCP connection, or EFA, from one network interface to another, in one VPC or in
    two; empty where it is let through."""
    what = "EFA" if port == EFA else f"TCP {port}"
    if source.vpc_id != target.vpc_id:
        return f"{source.id} and {target.id} are in different VPCs"
    if not any(_lets(rule, port, target) for rule in _rules(source, "egress")):
        return f"no rule of {_names(source)} lets {what} out to {_names(target)}"
    if not any(_lets(rule, port, source) for rule in _rules(target, "ingress")):
        return f"no rule of {_names(target)} lets {what} in from {_names(source)}"
    return ""


def _rules(interface: Any, direction: str) -> Iterator[Any]:
    for group in interface.group_set:
        yield from getattr(group, f"{direction}_rules")


def _names(interface: Any) -> str:
    return ", ".join(sorted(group.id for group in interface.group_set))


def _lets(rule: Any, port: int, peer: Any) -> bool:
    """True where the rule is about the port, and names the peer's address or one of its groups."""
    of_port = rule.ip_protocol == "-1" or (
        rule.ip_protocol == "tcp" and rule.from_port <= port <= rule.to_port
    )
    group, cidr = rule.source_group.get("GroupId"), rule.ip_range.get("CidrIp")
    by_group = group in {one.id for one in peer.group_set}
    address = peer.private_ip_address
    by_address = cidr and address and ip_address(address) in ip_network(cidr)
    return bool(of_port and (by_group or (by_address and port != EFA)))


def no_way_out(ec2: Any, interface: Any) -> str:
    """Obstacle between an interface and the internet over HTTPS; empty where there is a way."""
    if wall := _no_egress(interface):
        return wall
    route = _default_route(ec2, interface.subnet)
    if route is None:
        return f"{interface.subnet.id} has no route to {ANYWHERE}"
    if nat := getattr(route, "nat_gateway", None):
        return _through_nat(ec2, nat)
    return "" if interface.public_ip else f"{interface.id} has no public address"


def _no_egress(interface: Any) -> str:
    """Obstacle in the groups of an interface to HTTPS to public addresses; empty where none is."""
    out = [
        rule
        for rule in _rules(interface, "egress")
        if rule.ip_range.get("CidrIp") == ANYWHERE
        and (rule.ip_protocol == "-1" or rule.from_port <= HTTPS <= rule.to_port)
    ]
    return "" if out else f"no rule of {_names(interface)} lets TCP {HTTPS} out to {ANYWHERE}"


def no_api(ec2: Any, interface: Any, api: str) -> str:
    """Obstacle between an interface and an API of AWS over HTTPS; empty where there is a way. An
    endpoint with the API's own name is the only way there, even beside a NAT gateway."""
    if api == "s3" and _has_s3(ec2, interface.subnet):
        return _no_egress(interface)
    found = endpoints.of_vpc(ec2, interface.vpc_id, f"{ec2.region_name}.{api}")
    if not found:
        wall = no_way_out(ec2, interface)
        return f"{interface.vpc_id} has no endpoint for {api}, and {wall}" if wall else ""
    if found[0].state != "available":
        return f"{found[0].id} for {api} is {found[0].state}"
    walls = [blocked(interface, ec2.enis[id_], HTTPS) for id_ in found[0].network_interface_ids]
    return "" if "" in walls else next(iter(walls), f"{found[0].id} for {api} is in no subnet")


def _has_s3(ec2: Any, subnet: Any) -> bool:
    """True where a gateway endpoint for S3 is in the route table of a subnet."""
    followed = {table.id for table in _tables(ec2, subnet)}
    return any(
        one.vpc_endpoint_type == "Gateway" and followed & {*one.route_table_ids}
        for one in ec2.vpc_end_points.values()
    )


def _through_nat(ec2: Any, nat: Any) -> str:
    """A public NAT gateway stands in a subnet that leads to an internet gateway."""
    if nat.state != "available":
        return f"{nat.id} is {nat.state}"
    onward = _default_route(ec2, ec2.get_subnet(nat.subnet_id))
    if onward is None or not getattr(onward, "gateway", None):
        return f"{nat.id} is in {nat.subnet_id}, which has no route to an internet gateway"
    return ""


def _default_route(ec2: Any, subnet: Any) -> Any:
    """The route to everywhere else of the subnet's own table, or of the VPC's main one."""
    return next(
        (
            route
            for table in _tables(ec2, subnet)
            for route in table._routes.values()
            if route.destination_cidr_block == ANYWHERE
        ),
        None,
    )


def _tables(ec2: Any, subnet: Any) -> list[Any]:
    """The subnet's own route table, or the main one of the VPC."""
    tables = [one for one in ec2.route_tables.values() if one.vpc_id == subnet.vpc_id]
    own = [one for one in tables if subnet.id in one._associations.values()]
    return own or [one for one in tables if one.main_association_id]


def from_instance(instance: Any, to: str) -> str:
    """Obstacle between an instance and the internet, its peers, an API of AWS (`aws:ec2`), a cluster's API server, or
    a file system; empty where it gets there. Refused where there is no such thing."""
    ec2, own = backends.ec2(instance.region_name), instance.nics[0]
    if to == INTERNET:
        return no_way_out(ec2, own)
    if to == PEERS:
        return blocked(own, own, EFA)
    if to.startswith(AWS):
        return no_api(ec2, own, to.removeprefix(AWS))
    return next(filter(None, (blocked(*each) for each in _connections(ec2, own, to))), "")


def from_cluster(instance: Any, cluster: str, port: int) -> str:
    """Obstacle between a cluster's API server and a port of an instance, or of a pod on it, whose
    address is the instance's."""
    ec2, own = backends.ec2(instance.region_name), instance.nics[0]
    servers = [ec2.enis[id_] for id_ in eks.CLUSTERS[cluster].interfaces]
    return next(filter(None, (blocked(one, own, port) for one in servers)), "")


def from_pod(session: str, api: str) -> str:
    """Obstacle between the pod of a role session and an API of AWS; empty for other sessions. Pods
    are in the cluster's group, in those of its subnets that are private."""
    found = [each for name, each in eks.CLUSTERS.items() if session.startswith(f"eks-{name}-"[:64])]
    if not found or not found[0].interfaces:
        return ""
    ec2 = backends.ec2(found[0].region)
    there = [ec2.get_subnet(id_) for id_ in found[0].view["resourcesVpcConfig"]["subnetIds"]]
    walls = [
        no_api(ec2, _in(subnet, ec2.enis[found[0].interfaces[0]]), CALLED.get(api, api))
        for subnet in [one for one in there if not _is_public(ec2, one)] or there
    ]
    return "" if "" in walls else walls[0]


def _is_public(ec2: Any, subnet: Any) -> bool:
    """True where a subnet leads to an internet gateway."""
    return bool(getattr(_default_route(ec2, subnet), "gateway", None))


def _in(subnet: Any, interface: Any) -> Any:
    """An interface as this one, in another subnet."""
    other = copy.copy(interface)
    other.subnet = subnet
    return other


def _connections(ec2: Any, own: Any, to: str) -> Iterable[tuple[Any, Any, int]]:
    """From, to and port of each connection that the use of something takes."""
    if to in eks.CLUSTERS:
        return [(own, ec2.enis[id_], HTTPS) for id_ in eks.CLUSTERS[to].interfaces]
    if to in storage.FILE_SYSTEMS:
        servers = [ec2.enis[id_] for id_ in storage.FILE_SYSTEMS[to]["NetworkInterfaceIds"]]
        pairs = [pair for one in servers for pair in ((own, one), (one, own), (one, one))]
        return [(*pair, port) for pair in pairs for port in LUSTRE]
    return [(own, target, NFS) for target in _mount_targets(ec2, own.subnet.availability_zone, to)]


def _mount_targets(ec2: Any, zone: str, file_system: str) -> list[Any]:
    """The interfaces of an EFS file system's mount targets in a zone."""
    targets = backends.efs(ec2.region_name).mount_targets_by_id.values()
    interfaces = [
        ec2.enis[one.network_interface_id] for one in targets if one.file_system_id == file_system
    ]
    if not interfaces:
        raise Refused("NotFound", f"nothing here is called {file_system}")
    return [one for one in interfaces if one.subnet.availability_zone == zone]
