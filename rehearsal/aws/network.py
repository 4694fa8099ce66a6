"""Calls about VPCs that AWS refuses and moto lets pass, and the time that NAT gateways take.

Nearly everything that blocks a delete on AWS does so through a network interface: NAT gateways,
mount targets, file systems, clusters and instances all own some here too.
"""

from __future__ import annotations

import ipaddress
import secrets
from collections.abc import Iterable, Sequence
from typing import Any

from rehearsal.aws import backends
from rehearsal.aws.clock import CLOCK
from rehearsal.aws.operations import Call, Fields, answers, follows, refuse, refuses
from rehearsal.aws.quotas import VALUES
from trainyard.catalog.aws.instances import ADDRESS_QUOTA
from trainyard.catalog.aws.quotas import VPC_QUOTA

VPCS, ADDRESSES = VALUES[VPC_QUOTA], VALUES[ADDRESS_QUOTA]
"""Quotas of a new account, of whose VPCs one is the default VPC."""
SERVICES = ("10.100.0.0/16", "172.20.0.0/16")
"""Ranges of services of clusters whose owner names none."""
PRIVATE = ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")
"""In which a range of services is."""


def own_interface(region: str, subnet: str, groups: Iterable[str], description: str) -> str:
    """A network interface that an AWS service puts into a subnet; its id."""
    place = backends.ec2(region).get_subnet(subnet)
    eni = backends.ec2(region).create_network_interface(
        place, place.get_available_subnet_ip(None), group_ids=list(groups), description=description
    )
    eni.requester_managed, eni.status = True, "in-use"
    return eni.id


def control_plane_interfaces(region: str, cluster: Fields, subnets: Sequence[Any]) -> list[str]:
    """Ids of interfaces that EKS puts into two zones to reach nodes. `cluster`: as EKS tells it."""
    config = cluster["resourcesVpcConfig"]
    groups = [config["clusterSecurityGroupId"], *config.get("securityGroupIds", ())]
    zones = {subnet.availability_zone: subnet.id for subnet in reversed(subnets)}
    about = f"Amazon EKS {cluster['name']}"
    return [own_interface(region, one, groups, about) for one in [*zones.values()][:2]]


def drop_interfaces(region: str, ids: Iterable[str]) -> None:
    """Take back what own_interface made."""
    for eni in [backends.ec2(region).enis[id_] for id_ in ids]:
        eni.delete()


def placed(region: str, subnets: Iterable[str], groups: Iterable[str], code: str) -> list[Any]:
    """The subnets, if they and the groups exist in one VPC; else Refused with the service's code."""
    ec2 = backends.ec2(region)
    known = {id_: subnet for zone in ec2.subnets.values() for id_, subnet in zone.items()}
    found: dict[str, Any] = {id_: known.get(id_) for id_ in subnets}
    parts = found | {id_: ec2.get_security_group_from_id(id_) for id_ in groups}
    missing = [id_ for id_, part in parts.items() if part is None]
    refuse(missing, code, f"The IDs {missing} do not exist")
    refuse(
        not found or len({part.vpc_id for part in parts.values()}) != 1,
        code,
        "There must be subnets, and they and the security groups must belong to one VPC",
    )
    return list(found.values())


def services(given: str | None, vpc: Any, code: str) -> str:
    """The range of a cluster's services. Where the caller gives none, EKS takes the one of two that the VPC does not
    overlap (EKS API, KubernetesNetworkConfigRequest, which also says what it refuses)."""
    own = [ipaddress.IPv4Network(one["cidr_block"]) for one in vpc.get_cidr_block_association_set()]
    first, other = map(ipaddress.IPv4Network, SERVICES)
    chosen = other if any(map(first.overlaps, own)) else first
    cidr = ipaddress.IPv4Network(given) if given else chosen
    private = any(cidr.subnet_of(ipaddress.IPv4Network(one)) for one in PRIVATE)
    refuse(
        not private or not 12 <= cidr.prefixlen <= 24,
        code,
        f"The service CIDR {cidr} is not between /12 and /24 in {', '.join(PRIVATE)}",
    )
    for one in filter(cidr.overlaps, own):
        refuse(True, code, f"The service CIDR {cidr} overlaps with the CIDR of the VPC, {one}")
    return str(cidr)


def group_in_use(ec2: Any, group: str) -> bool:
    """True where an interface has the security group or a rule of another one refers to it."""
    rules = [
        rule
        for of_vpc in ec2.groups.values()
        for other in of_vpc.values()
        if other.id != group
        for rule in (*other.ingress_rules, *other.egress_rules)
    ]
    return any(group in {used.id for used in eni.group_set} for eni in ec2.enis.values()) or any(
        rule.source_group.get("GroupId") == group for rule in rules
    )


def _vpc_in_use(call: Call) -> bool:
    vpc, ec2 = call["VpcId"], call.ec2
    return (
        bool(_gateway(ec2, vpc))
        or any(not group.is_default for group in ec2.groups.get(vpc, {}).values())
        or any(one.vpc_id == vpc for one in (*ec2.vpc_end_points.values(), *ec2.enis.values()))
    )


def _gateway(ec2: Any, vpc: str) -> Any:
    return next(
        (one for one in ec2.internet_gateways.values() if one.vpc and one.vpc.id == vpc), None
    )


refuses(
    "ec2",
    "CreateVpc",
    "VpcLimitExceeded",
    "The maximum number of VPCs has been reached.",
    lambda call: len(call.ec2.vpcs) >= VPCS,
)
refuses(
    "ec2",
    "DeleteVpc",
    "DependencyViolation",
    "The vpc '{VpcId}' has dependencies and cannot be deleted.",
    _vpc_in_use,
)
refuses(
    "ec2",
    "CreateSubnet",
    "InvalidParameterValue",
    "Value ({AvailabilityZone}) for availabilityZone is invalid.",
    lambda call: not call["AvailabilityZone"].startswith(call.region),
)
refuses(
    "ec2",
    "DeleteSubnet",
    "DependencyViolation",
    "The subnet '{SubnetId}' has dependencies and cannot be deleted.",
    lambda call: any(eni.subnet.id == call["SubnetId"] for eni in call.ec2.enis.values()),
)
refuses(
    "ec2",
    "DeleteSecurityGroup",
    "DependencyViolation",
    "resource {GroupId} has a dependent object",
    lambda call: group_in_use(call.ec2, call["GroupId"]),
)
refuses(
    "ec2",
    "DetachInternetGateway",
    "DependencyViolation",
    "Network {VpcId} has some mapped public address(es).",
    lambda call: any(
        eni.public_ip and eni.vpc_id == call["VpcId"] for eni in call.ec2.enis.values()
    ),
)
refuses(
    "ec2",
    "AllocateAddress",
    "AddressLimitExceeded",
    "The maximum number of addresses has been reached.",
    lambda call: len(call.ec2.addresses) >= ADDRESSES,
)
refuses(
    "ec2",
    "ReleaseAddress",
    "InvalidIPAddress.InUse",
    "The address {AllocationId} is in use.",
    lambda call: any(
        one.allocation_id == call["AllocationId"] and one.association_id
        for one in call.ec2.addresses
    ),
)
refuses(
    "ec2",
    "AssociateRouteTable",
    "Resource.AlreadyAssociated",
    "the specified association for route table "
    "{RouteTableId} conflicts with an existing association",
    lambda call: any(
        call["SubnetId"] in table._associations.values() and table.id != call["RouteTableId"]
        for table in call.ec2.route_tables.values()
    ),
)
refuses(
    "ec2",
    "CreateRoute ReplaceRoute",
    "InvalidParameterValue",
    "route table {RouteTableId} and network gateway {GatewayId} belong to different networks",
    lambda call: (
        (call["GatewayId"] or "").startswith("igw-")
        and call["GatewayId"]
        != getattr(
            _gateway(call.ec2, call.ec2.get_route_table(call["RouteTableId"]).vpc_id), "id", ""
        )
    ),
)


@follows("ec2", "CreateNatGateway")
def _nat_comes_up(call: Call, answer: Fields) -> None:
    nat = call.ec2.nat_gateways[answer["NatGateway"]["NatGatewayId"]]
    nat.state = answer["NatGateway"]["State"] = "pending"

    def up() -> None:
        nat.state = "available"
        if not _gateway(call.ec2, nat.vpc_id):
            nat.state, nat.failure_code = "failed", "Gateway.NotAttached"
            nat.failure_message = f"Network {nat.vpc_id} has no Internet gateway attached"

    CLOCK.later("ec2.nat-gateway", up)


@answers("ec2", "DeleteNatGateway")
def _delete_nat(call: Call) -> Fields:
    nat = call.ec2.nat_gateways.get(call["NatGatewayId"])
    refuse(
        nat is None, "NatGatewayNotFound", f"The Nat Gateway {call['NatGatewayId']} was not found"
    )

    def gone() -> None:
        for address in [one for one in call.ec2.addresses if one.eni and one.eni.id == nat._eni.id]:
            call.ec2.disassociate_address(association_id=address.association_id)
        drop_interfaces(call.region, [nat._eni.id])
        nat.state = "deleted"

    if nat.state not in ("deleting", "deleted"):
        nat.state = "deleting"
        CLOCK.later("ec2.nat-gateway.delete", gone)
    return {"NatGatewayId": nat.id}


def cluster_group(region: str, vpc: str, cluster: str) -> str:
    """The security group that EKS makes for a cluster: open within itself; its id."""
    ec2, name = backends.ec2(region), f"eks-cluster-sg-{cluster}-{secrets.randbelow(10**9)}"
    tags = {
        "Name": name,
        "aws:eks:cluster-name": cluster,
        f"kubernetes.io/cluster/{cluster}": "owned",
    }
    group = ec2.create_security_group(name, "EKS created security group", vpc, tags)
    ec2.authorize_security_group_ingress(
        group.id, "-1", None, None, [], source_groups=[{"GroupId": group.id}]
    )
    return group.id
