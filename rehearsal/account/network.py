"""What AWS refuses about VPCs where moto lets it pass, and the time NAT gateways take.

Nearly everything that blocks a delete on AWS does so through a network interface: NAT gateways, mount targets, file
systems, clusters and instances all own some here too.
"""

from __future__ import annotations

import ipaddress
import secrets
from collections.abc import Iterable
from typing import Any

from rehearsal.account import backends
from rehearsal.account.clock import CLOCK
from rehearsal.account.operations import Call, Fields, NotBuilt, Refused, answers, checks, follows, refuses

VPCS, ADDRESSES = 5, 5
"""Quotas of a new account, the default VPC not counted."""
_DEPENDS = "DependencyViolation"


def own_interface(region: str, subnet: str, groups: Iterable[str], description: str) -> str:
    """A network interface that an AWS service puts into a subnet; its id."""
    place = backends.ec2(region).get_subnet(subnet)
    eni = backends.ec2(region).create_network_interface(place, place.get_available_subnet_ip(None),
                                                        group_ids=list(groups), description=description)
    eni.requester_managed, eni.status = True, "in-use"
    return eni.id


def drop_interfaces(region: str, ids: Iterable[str]) -> None:
    """Take back what own_interface made."""
    for eni in [backends.ec2(region).enis.get(id_) for id_ in ids]:
        if eni:
            eni.delete()


def placed(region: str, subnets: Iterable[str], groups: Iterable[str], code: str) -> list[Any]:
    """The subnets, if they and the groups exist in one VPC; else Refused with the service's code."""
    ec2, known = backends.ec2(region), {id_ for zone in backends.ec2(region).subnets.values() for id_ in zone}
    for id_ in subnets:
        if id_ not in known:
            raise Refused(code, f"The subnet ID '{id_}' does not exist")
    found = [ec2.get_subnet(id_) for id_ in subnets]
    for id_ in groups:
        if ec2.get_security_group_from_id(id_) is None:
            raise Refused(code, f"The security group '{id_}' does not exist")
    if len({one.vpc_id for one in (*found, *map(ec2.get_security_group_from_id, groups))}) != 1:
        raise Refused(code, "There must be subnets, and they and the security groups must belong to one VPC")
    return found


def group_in_use(ec2: Any, group: str) -> bool:
    """Whether an interface has the security group or a rule of another one refers to it."""
    rules = [rule for of_vpc in ec2.groups.values() for other in of_vpc.values() if other.id != group
             for rule in (*other.ingress_rules, *other.egress_rules)]
    return (any(group in {used.id for used in eni.group_set} for eni in ec2.enis.values())
            or any(rule.source_group.get("GroupId") == group for rule in rules))


def _prefix(cidr: str | None) -> int:
    """Its length; 0 where it is no network, as with host bits set."""
    try:
        return ipaddress.IPv4Network(cidr or "").prefixlen
    except ValueError:
        return 0


def _vpc_in_use(call: Call) -> bool:
    vpc, ec2 = call["VpcId"], call.ec2
    return (bool(_gateway(ec2, vpc)) or any(not group.is_default for group in ec2.groups.get(vpc, {}).values())
            or any(one.vpc_id == vpc for one in (*ec2.vpc_end_points.values(), *ec2.enis.values())))


def _gateway(ec2: Any, vpc: str) -> Any:
    return next((one for one in ec2.internet_gateways.values() if one.vpc and one.vpc.id == vpc), None)


def _taken(call: Call) -> list[str]:
    """The addresses of the call that something holds."""
    return [one.public_ip for one in call.ec2.addresses
            if one.allocation_id and one.allocation_id == call["AllocationId"] and one.association_id]


def _bad_ports(call: Call) -> list[str]:
    ports = [(rule["IpProtocol"], rule.get("FromPort", -1), rule.get("ToPort", -1))
             for rule in call["IpPermissions"] or ()]
    return [f"{low}-{high}" for protocol, low, high in ports if not -1 <= min(low, high) <= max(low, high) <= 65535
            or (protocol in ("tcp", "udp") and low > high)]


def _unknown_nats(call: Call) -> list[str]:
    ids = [*(call["NatGatewayIds"] or ()), *([call["NatGatewayId"]] if call["NatGatewayId"] else [])]
    return [id_ for id_ in ids if id_ not in call.ec2.nat_gateways]


refuses("ec2", "CreateVpc", "VpcLimitExceeded", "The maximum number of VPCs has been reached.",
        lambda call: sum(not vpc.is_default for vpc in call.ec2.vpcs.values()) >= VPCS)
refuses("ec2", "CreateVpc", "InvalidVpc.Range", "The CIDR '{CidrBlock}' is invalid.",
        lambda call: not 16 <= _prefix(call["CidrBlock"]) <= 28)
refuses("ec2", "DeleteVpc", _DEPENDS, "The vpc '{VpcId}' has dependencies and cannot be deleted.", _vpc_in_use)
refuses("ec2", "CreateSubnet", "InvalidSubnet.Range", "The CIDR '{CidrBlock}' is invalid.",
        lambda call: not 16 <= _prefix(call["CidrBlock"]) <= 28)
refuses("ec2", "CreateSubnet", "InvalidParameterValue", "Value ({AvailabilityZone}) for parameter availabilityZone is "
        "invalid.", lambda call: call["AvailabilityZone"] and call["AvailabilityZone"] not in {
            zone.name for zone in call.ec2.describe_availability_zones()})
refuses("ec2", "DeleteSubnet", _DEPENDS, "The subnet '{SubnetId}' has dependencies and cannot be deleted.",
        lambda call: any(eni.subnet.id == call["SubnetId"] for eni in call.ec2.enis.values()))
refuses("ec2", "CreateSecurityGroup", "InvalidVpcID.NotFound", "The vpc ID '{VpcId}' does not exist",
        lambda call: call["VpcId"] not in call.ec2.vpcs)
refuses("ec2", "CreateSecurityGroup", "InvalidParameterValue", "Value ({GroupName}) for GroupName is invalid.",
        lambda call: call["GroupName"].startswith("sg-") or len(call["GroupName"]) > 255)
refuses("ec2", "AuthorizeSecurityGroupIngress AuthorizeSecurityGroupEgress", "InvalidParameterValue",
        "Invalid value '{hit}' for portRange.", _bad_ports)
refuses("ec2", "DeleteSecurityGroup", "CannotDelete", "the specified group: \"{GroupId}\" cannot be deleted by a user",
        lambda call: getattr(call.ec2.get_security_group_from_id(call["GroupId"]), "is_default", False))
refuses("ec2", "DeleteSecurityGroup", _DEPENDS, "resource {GroupId} has a dependent object",
        lambda call: call["GroupId"] and group_in_use(call.ec2, call["GroupId"]))
refuses("ec2", "AttachInternetGateway", "InvalidParameterValue", "Network {VpcId} already has an internet gateway "
        "attached", lambda call: _gateway(call.ec2, call["VpcId"]))
refuses("ec2", "DetachInternetGateway", _DEPENDS, "Network {VpcId} has some mapped public address(es). Please unmap "
        "those public address(es) before detaching the gateway.",
        lambda call: any(eni.public_ip and eni.vpc_id == call["VpcId"] for eni in call.ec2.enis.values()))
refuses("ec2", "AllocateAddress", "AddressLimitExceeded", "The maximum number of addresses has been reached.",
        lambda call: len(call.ec2.addresses) >= ADDRESSES)
refuses("ec2", "ReleaseAddress", "InvalidIPAddress.InUse", "The address {hit} is in use.", _taken)
refuses("ec2", "CreateNatGateway", "MissingParameter", "The request must include the AllocationId parameter.",
        lambda call: call["ConnectivityType"] != "private" and not call["AllocationId"])
refuses("ec2", "CreateNatGateway", "InvalidAllocationID.NotFound", "The allocation ID '{AllocationId}' does not exist",
        lambda call: call["AllocationId"] and call["AllocationId"] not in {
            one.allocation_id for one in call.ec2.addresses})
refuses("ec2", "CreateNatGateway", "Resource.AlreadyAssociated", "Elastic IP address [{AllocationId}] is already "
        "associated", _taken)
refuses("ec2", "DescribeNatGateways DeleteNatGateway CreateRoute ReplaceRoute", "NatGatewayNotFound",
        "The Nat Gateway {hit} was not found", _unknown_nats)
refuses("ec2", "DeleteNetworkInterface", "InvalidParameterValue", "'{NetworkInterfaceId}' is currently in use.",
        lambda call: getattr(call.ec2.enis.get(call["NetworkInterfaceId"]), "status", "") == "in-use")
refuses("ec2", "AssociateRouteTable", "Resource.AlreadyAssociated", "the specified association for route table "
        "{RouteTableId} conflicts with an existing association",
        lambda call: any(call["SubnetId"] in table._associations.values() and table.id != call["RouteTableId"]
                         for table in call.ec2.route_tables.values()))


@checks("ec2", "CreateRoute", "ReplaceRoute")
def _route_leads_out(call: Call) -> None:
    table, id_ = call.ec2.get_route_table(call["RouteTableId"]), call["GatewayId"] or ""
    if id_.startswith("igw-") and id_ not in call.ec2.internet_gateways:
        raise Refused("InvalidGatewayID.NotFound", f"The gateway ID '{id_}' does not exist")
    if id_.startswith("igw-") and _gateway(call.ec2, table.vpc_id) is not call.ec2.internet_gateways[id_]:
        raise Refused("InvalidParameterValue", f"route table {table.id} and network gateway {id_} belong to different "
                      "networks")


@checks("ec2", "CreateVpcEndpoint")
def _gateway_endpoint(call: Call) -> None:
    if (call["VpcEndpointType"] or "Gateway") != "Gateway":
        raise NotBuilt(f"VPC endpoints of type {call['VpcEndpointType']}")
    if call["ServiceName"] not in {f"com.amazonaws.{call.region}.{name}" for name in ("s3", "dynamodb")}:
        raise Refused("InvalidServiceName", f"The Vpc Endpoint Service '{call['ServiceName']}' does not exist")
    tables = {call.ec2.get_route_table(id_).id for id_ in call["RouteTableIds"] or ()}
    for endpoint in call.ec2.vpc_end_points.values():
        if endpoint.service_name == call["ServiceName"] and tables & set(endpoint.route_table_ids or ()):
            raise Refused("RouteAlreadyExists", f"a route table of {sorted(tables)} already has a route to the service")


@follows("ec2", "DeleteVpcEndpoints")
def _endpoints_go(call: Call, answer: Fields) -> None:
    """moto keeps a deleted endpoint for ever, and in the way of its VPC."""
    for id_ in call["VpcEndpointIds"]:
        call.ec2.vpc_end_points.pop(id_, None)


@follows("ec2", "CreateVpcEndpoint")
def _name_its_type(call: Call, answer: Fields) -> None:
    """moto leaves it open and cannot delete the endpoint then."""
    endpoint = call.ec2.vpc_end_points[answer["VpcEndpoint"]["VpcEndpointId"]]
    endpoint.vpc_endpoint_type = answer["VpcEndpoint"]["VpcEndpointType"] = "Gateway"


@follows("ec2", "DeleteVpcEndpoints")
def _forget_endpoints(call: Call, answer: Fields) -> None:
    for id_ in call["VpcEndpointIds"]:
        call.ec2.vpc_end_points.pop(id_, None)


@answers("ec2", "ModifySecurityGroupRules")
def _modify_rules(call: Call) -> Fields:
    """moto refuses rules of all protocols, which have no ports. What a rule refers to cannot change here."""
    group = call.ec2.get_security_group_from_id(call["GroupId"])
    for change in call["SecurityGroupRules"]:
        rule, wanted = group and group.get_rule(change["SecurityGroupRuleId"]), change["SecurityGroupRule"]
        if not rule:
            raise Refused("InvalidSecurityGroupRuleId.NotFound", f"{change['SecurityGroupRuleId']} does not exist")
        rule.ip_protocol, rule.from_port, rule.to_port = map(wanted.get, ("IpProtocol", "FromPort", "ToPort"))
        (rule.source_group or rule.ip_range)["Description"] = wanted.get("Description")
        if wanted.get("CidrIpv4"):
            rule.ip_range["CidrIp"] = wanted["CidrIpv4"]
    return {"Return": True}


@follows("ec2", "CreateNatGateway")
def _nat_comes_up(call: Call, answer: Fields) -> None:
    nat = call.ec2.nat_gateways[answer["NatGateway"]["NatGatewayId"]]
    nat.state = answer["NatGateway"]["State"] = "pending"

    def up() -> None:
        nat.state = "available"
        if nat.connectivity_type != "private" and not _gateway(call.ec2, nat.vpc_id):
            nat.state, nat.failure_code = "failed", "Gateway.NotAttached"
            nat.failure_message = f"Network {nat.vpc_id} has no Internet gateway attached"

    CLOCK.later("ec2.nat-gateway", up)


@answers("ec2", "DeleteNatGateway")
def _delete_nat(call: Call) -> Fields:
    nat = call.ec2.nat_gateways[call["NatGatewayId"]]

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
    name, owner = f"eks-cluster-sg-{cluster}-{secrets.randbelow(10**9)}", f"kubernetes.io/cluster/{cluster}"
    group = backends.ec2(region).create_security_group(
        name, "EKS created security group applied to ENI that is attached to EKS Control Plane master nodes, as well "
        "as any managed workloads.", vpc, {"Name": name, "aws:eks:cluster-name": cluster, owner: "owned"})
    backends.ec2(region).authorize_security_group_ingress(group.id, "-1", None, None, [],
                                                          source_groups=[{"GroupId": group.id}])
    return group.id
