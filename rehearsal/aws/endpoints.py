"""Interface endpoints of a VPC: what AWS refuses about them, the network interfaces that they are, and
the time they take.

Sources: EC2 API reference, CreateVpcEndpoint and DescribeVpcEndpointServices; PrivateLink guide,
create-interface-endpoint (one subnet of a zone; private DNS needs both DNS attributes of the VPC and no
other endpoint of the service with it); terraform-aws-modules/terraform-aws-vpc#785 (the answer to a
subnet in a zone without the service).
"""

from __future__ import annotations

from typing import Any

from rehearsal.aws import backends
from rehearsal.aws.clock import CLOCK
from rehearsal.aws.network import drop_interfaces, own_interface
from rehearsal.aws.operations import Call, Fields, NotBuilt, answers, follows, refuse, refuses

INTERFACE = "Interface"
SERVICES = {
    *(
        "aps-workspaces",
        "autoscaling",
        "ec2",
        "ec2messages",
        "ecr.api",
        "ecr.dkr",
        "eks",
        "eks-auth",
    ),
    *("elasticfilesystem", "elasticloadbalancing", "fsx", "kms", "logs", "monitoring", "s3"),
    *("secretsmanager", "sns", "sqs", "ssm", "ssmmessages", "sts"),
}
"""Services whose endpoints AWS offers in every region; Pricing and IAM are not among them
(PrivateLink guide, aws-services-privatelink-support)."""

GATEWAYS = ("s3",)
"""Services with a gateway endpoint, besides the interface endpoint."""
LACKING: dict[str, frozenset[str]] = {}
"""Service → ids of zones in which it has no endpoints. Empty: nobody here has seen which they are; tests
say some."""


def _interface(call: Call) -> bool:
    return call["VpcEndpointType"] == INTERFACE


def _api(service: str) -> str:
    """Name of the API of an endpoint service, behind com.amazonaws and the region."""
    return service.split(".", 3)[3]


def of_vpc(ec2: Any, vpc: str, service: str) -> list[Any]:
    """The interface endpoints of a VPC whose service ends like this and that give it its public name."""
    return [
        one
        for one in ec2.vpc_end_points.values()
        if one.vpc_id == vpc
        and one.vpc_endpoint_type == INTERFACE
        and one.service_name.endswith(f".{service}")
        and one.private_dns_enabled
    ]


def _conflict(call: Call) -> str:
    """The name that another endpoint has in the VPC."""
    api = _api(call["ServiceName"])
    taken = call["PrivateDnsEnabled"] and of_vpc(call.ec2, call["VpcId"], f"{call.region}.{api}")
    return f"{'.'.join(reversed(api.split('.')))}.{call.region}.amazonaws.com" if taken else ""


def _without_names(call: Call) -> bool:
    vpc = call.ec2.get_vpc(call["VpcId"])
    both = (vpc.enable_dns_support, vpc.enable_dns_hostnames)
    return call["PrivateDnsEnabled"] and any(str(each).lower() != "true" for each in both)


def _one_zone_twice(call: Call) -> str:
    zones: set[str] = set()
    for id_ in call["SubnetIds"] or ():
        zone = call.ec2.get_subnet(id_).availability_zone
        if zone in zones:
            return id_
        zones.add(zone)
    return ""


def _outside(call: Call) -> str:
    """The service and the subnet that is in a zone without it."""
    known = call.ec2.vpc_end_points.get(call["VpcEndpointId"])
    name = known.service_name if known else call["ServiceName"]
    lacking = LACKING.get(_api(name), frozenset())
    for id_ in call["SubnetIds"] or call["AddSubnetIds"] or ():
        if call.ec2.get_subnet(id_).availability_zone_id in lacking:
            return f"{name} does not support the availability zone of the subnet: {id_}"
    return ""


refuses(
    "ec2",
    "CreateVpcEndpoint",
    "InvalidServiceName",
    "The Vpc Endpoint Service '{ServiceName}' does not exist",
    lambda call: (
        call["ServiceName"] not in {f"com.amazonaws.{call.region}.{one}" for one in SERVICES}
    ),
)
refuses(
    "ec2",
    "CreateVpcEndpoint",
    "InvalidParameter",
    "private-dns-enabled cannot be set because there is already a conflicting DNS domain for {hit} in"
    " the VPC {VpcId}",
    lambda call: _interface(call) and _conflict(call),
)
refuses(
    "ec2",
    "CreateVpcEndpoint",
    "InvalidParameter",
    "Enabling private DNS requires both enableDnsSupport and enableDnsHostnames VPC attributes set to"
    " true for {VpcId}",
    lambda call: _interface(call) and _without_names(call),
)
refuses(
    "ec2",
    "CreateVpcEndpoint",
    "DuplicateSubnetsInSameZone",
    "Found another VPC endpoint subnet in the availability zone of {hit}",
    lambda call: _interface(call) and _one_zone_twice(call),
)

refuses(
    "ec2",
    "CreateVpcEndpoint ModifyVpcEndpoint",
    "InvalidParameter",
    "The VPC endpoint service {hit}.",
    _outside,
)


@answers("ec2", "DescribeVpcEndpointServices")
def _services(call: Call) -> Fields:
    """moto tells of services that no region has, in zones that it makes up."""
    every = [
        *(_service(call, api, INTERFACE) for api in sorted(SERVICES)),
        *(_service(call, api, "Gateway") for api in GATEWAYS),
    ]
    names = {one["ServiceName"] for one in every}
    for name in call["ServiceNames"] or ():
        words = f"The Vpc Endpoint Service '{name}' does not exist"
        refuse(name not in names, "InvalidServiceName", words)
    found = [one for one in every if _is_asked_for(call, one)]
    return {"ServiceNames": sorted({one["ServiceName"] for one in found}), "ServiceDetails": found}


def _is_asked_for(call: Call, service: Fields) -> bool:
    """By its name, and by all filters."""
    told = {
        "service-name": service["ServiceName"],
        "service-type": service["ServiceType"][0]["ServiceType"],
    }
    filters = {one["Name"]: one["Values"] for one in call["Filters"] or ()}
    if unknown := filters.keys() - told.keys():
        raise NotBuilt(f"the filter {', '.join(sorted(unknown))}")
    named = told["service-name"] in (call["ServiceNames"] or [told["service-name"]])
    return named and all(told[name] in values for name, values in filters.items())


def _service(call: Call, api: str, kind: str) -> Fields:
    lacking = LACKING.get(api, frozenset()) if kind == INTERFACE else frozenset()
    zones = [one for one in call.ec2.describe_availability_zones() if one.zone_id not in lacking]
    return {
        "ServiceName": f"com.amazonaws.{call.region}.{api}",
        "ServiceType": [{"ServiceType": kind}],
        "ServiceRegion": call.region,
        "AvailabilityZones": [one.name for one in zones],
        "AvailabilityZoneIds": [one.zone_id for one in zones],
        "Owner": "amazon",
        "AcceptanceRequired": False,
    }


@follows("ec2", "CreateVpcEndpoint")
def _comes_up(call: Call, answer: Fields) -> None:
    """moto leaves the type of a gateway endpoint open and cannot delete it then. Of an interface
    endpoint it makes interfaces without groups, outside of their subnets."""
    endpoint = call.ec2.vpc_end_points[answer["VpcEndpoint"]["VpcEndpointId"]]
    kind = call["VpcEndpointType"] or "Gateway"
    endpoint.vpc_endpoint_type = answer["VpcEndpoint"]["VpcEndpointType"] = kind
    if kind != INTERFACE:
        return
    for id_ in endpoint.network_interface_ids:
        call.ec2.enis.pop(id_, None)
    endpoint.network_interface_ids = []
    _place(call, endpoint)
    endpoint.state = answer["VpcEndpoint"]["State"] = "pending"
    CLOCK.later("ec2.interface-endpoint", lambda: setattr(endpoint, "state", "available"))


@follows("ec2", "ModifyVpcEndpoint")
def _moves(call: Call, answer: Fields) -> None:
    endpoint = call.ec2.vpc_end_points[call["VpcEndpointId"]]
    if endpoint.vpc_endpoint_type == INTERFACE:
        drop_interfaces(call.region, endpoint.network_interface_ids)
        _place(call, endpoint)
        return
    # moto writes its routes when it is made only, and cannot delete it where one is missing.
    prefix = endpoint.destination_prefix_list_id
    for table in call["AddRouteTableIds"] or ():
        call.ec2.create_route(
            table, None, gateway_id=endpoint.id, destination_prefix_list_id=prefix
        )
    for table in call["RemoveRouteTableIds"] or ():
        call.ec2.delete_route(table, prefix)


def _place(call: Call, endpoint: Any) -> None:
    """Its interface in each of its subnets."""
    words = f"VPC Endpoint Interface {endpoint.id}"
    endpoint.network_interface_ids = [
        own_interface(call.region, subnet, endpoint.security_group_ids, words)
        for subnet in endpoint.subnet_ids or ()
    ]


@answers("ec2", "DeleteVpcEndpoints")
def _delete(call: Call) -> Fields:
    """moto keeps a deleted endpoint for ever, and in the way of its VPC."""
    for id_ in call["VpcEndpointIds"]:
        endpoint = call.ec2.vpc_end_points.get(id_)
        refuse(
            endpoint is None,
            "InvalidVpcEndpointId.NotFound",
            f"The Vpc Endpoint Id '{id_}' does not exist",
        )
        if endpoint.vpc_endpoint_type != INTERFACE:
            call.ec2.delete_vpc_endpoints([id_])
            call.ec2.vpc_end_points.pop(id_)
        elif endpoint.state != "deleting":
            endpoint.state = "deleting"
            CLOCK.later("ec2.interface-endpoint.delete", lambda gone=id_: _gone(call.region, gone))
    return {"Unsuccessful": []}


def _gone(region: str, id_: str) -> None:
    endpoint = backends.ec2(region).vpc_end_points.pop(id_)
    drop_interfaces(region, endpoint.network_interface_ids)
