"""Look-ups of EC2, EKS and STS, as the genuine provider's data sources answer them: those of many by filters,
those of one by id."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from botocore.exceptions import ClientError

from rehearsal.providers.aws.account import Clients
from rehearsal.providers.aws.resource_type import lower, upper
from rehearsal.providers.problems import Refused
from rehearsal.providers.wire import Properties, words

TARGETS = words(
    "CarrierGatewayId CoreNetworkArn EgressOnlyInternetGatewayId GatewayId InstanceId"
    " LocalGatewayId NatGatewayId NetworkInterfaceId TransitGatewayId VpcPeeringConnectionId"
)
"""Targets of a route, in EC2's words."""
Lookup = Callable[[Clients, str, Properties], Properties]


def _asked(clients: Clients, region: str, service: str, operation: str, **asked: Any) -> Any:
    try:
        return getattr(clients.get(service, region), operation)(**asked)
    except ClientError as fault:
        raise Refused(str(fault)) from None


def _filters(arguments: Properties) -> list[dict[str, Any]]:
    found = [
        {"Name": one["name"], "Values": one["values"]} for one in arguments.get("filters") or ()
    ]
    if vpc := arguments.get("vpcId"):
        found.append({"Name": "vpc-id", "Values": [vpc]})
    return found


def _ids(word: str, operation: str) -> Lookup:
    """The ids of the objects that the filters let through; none is no error."""

    def look_up(clients: Clients, region: str, arguments: Properties) -> Properties:
        found = _asked(clients, region, "ec2", operation, Filters=_filters(arguments))
        return {
            **arguments,
            "id": region,
            "ids": sorted(one[f"{word}Id"] for one in found[f"{word}s"]),
            "region": region,
            "tags": {},
        }

    return look_up


def _one(answer: Any, key: str, what: str) -> Any:
    """The object that was found; Refused with the genuine provider's words where there is none."""
    if len(answer[key]) != 1:
        raise Refused(f"no matching EC2 {what} found")
    return answer[key][0]


def _shared(found: Any, region: str) -> Properties:
    return {
        "ownerId": found.get("OwnerId", ""),
        "tags": {tag["Key"]: tag["Value"] for tag in found.get("Tags", ())},
        "region": region,
    }


def _vpc(clients: Clients, region: str, arguments: Properties) -> Properties:
    id_ = arguments["id"]
    found = _one(_asked(clients, region, "ec2", "describe_vpcs", VpcIds=[id_]), "Vpcs", "VPC")
    attributes = {
        name: _asked(clients, region, "ec2", "describe_vpc_attribute", VpcId=id_, Attribute=name)[
            upper(name)
        ]["Value"]
        for name in ("enableDnsSupport", "enableDnsHostnames")
    }
    return {
        **arguments,
        **_shared(found, region),
        **attributes,
        "cidrBlock": found["CidrBlock"],
        "cidrBlockAssociations": [
            {
                "associationId": one["AssociationId"],
                "cidrBlock": one["CidrBlock"],
                "state": one["CidrBlockState"]["State"],
            }
            for one in found["CidrBlockAssociationSet"]
        ],
        "default": found["IsDefault"],
        "instanceTenancy": found["InstanceTenancy"],
        "state": found["State"],
    }


def _subnet(clients: Clients, region: str, arguments: Properties) -> Properties:
    asked = _asked(clients, region, "ec2", "describe_subnets", SubnetIds=[arguments["id"]])
    found = _one(asked, "Subnets", "Subnet")
    told = [
        "AvailabilityZone",
        "AvailabilityZoneId",
        "AvailableIpAddressCount",
        "CidrBlock",
        "MapPublicIpOnLaunch",
        "State",
        "VpcId",
    ]
    return {**arguments, **_shared(found, region), **{lower(key): found[key] for key in told}}


def _route_table(clients: Clients, region: str, arguments: Properties) -> Properties:
    id_ = arguments["routeTableId"]
    asked = _asked(clients, region, "ec2", "describe_route_tables", RouteTableIds=[id_])
    found = _one(asked, "RouteTables", "Route Table")
    return {
        **arguments,
        **_shared(found, region),
        "id": id_,
        "vpcId": found["VpcId"],
        "routes": [_route(one) for one in found["Routes"] if _is_told(one)],
        "associations": [
            {
                "routeTableAssociationId": one.get("RouteTableAssociationId", ""),
                "routeTableId": id_,
                "subnetId": one.get("SubnetId", ""),
                "gatewayId": one.get("GatewayId", ""),
                "main": one.get("Main", False),
            }
            for one in found["Associations"]
        ],
    }


def _is_told(route: Any) -> bool:
    """The genuine provider leaves out the VPC's own ranges and the routes of gateway endpoints."""
    return not route.get("GatewayId", "").startswith(("local", "vpce-"))


def _route(route: Any) -> Properties:
    """A route; a target that it does not have is an empty text."""
    targets = {lower(key): route.get(key, "") for key in TARGETS}
    targets["egressOnlyGatewayId"] = targets.pop("egressOnlyInternetGatewayId")
    return {
        **targets,
        "cidrBlock": route.get("DestinationCidrBlock", ""),
        "ipv6CidrBlock": route.get("DestinationIpv6CidrBlock", ""),
        "destinationPrefixListId": route.get("DestinationPrefixListId", ""),
        "odbNetworkArn": "",
        "vpcEndpointId": "",
    }


def _interface(clients: Clients, region: str, arguments: Properties) -> Properties:
    id_ = arguments["id"]
    asked = _asked(clients, region, "ec2", "describe_network_interfaces", NetworkInterfaceIds=[id_])
    found = _one(asked, "NetworkInterfaces", "Network Interface")
    told = ["AvailabilityZone", "Description", "SubnetId", "VpcId"]
    return {
        **arguments,
        **_shared(found, region),
        **{lower(key): found[key] for key in told},
        "securityGroups": [group["GroupId"] for group in found["Groups"]],
    }


def _group_ids(clients: Clients, region: str, arguments: Properties) -> Properties:
    filters = _filters(arguments)
    asked = _asked(clients, region, "ec2", "describe_security_groups", Filters=filters)
    found = sorted(asked["SecurityGroups"], key=lambda group: group["GroupId"])
    return {
        **arguments,
        "id": region,
        "ids": [group["GroupId"] for group in found],
        "vpcIds": [group["VpcId"] for group in found],
        "arns": [group.get("SecurityGroupArn", "") for group in found],
        "region": region,
        "tags": {},
    }


def _group_rule(clients: Clients, region: str, arguments: Properties) -> Properties:
    id_ = arguments["securityGroupRuleId"]
    asked = _asked(
        clients, region, "ec2", "describe_security_group_rules", SecurityGroupRuleIds=[id_]
    )
    found = _one(asked, "SecurityGroupRules", "Security Group Rule")
    return {
        **arguments,
        **_shared(found, region),
        "id": id_,
        "isEgress": found["IsEgress"],
        "ipProtocol": found["IpProtocol"],
        "fromPort": found["FromPort"],
        "toPort": found["ToPort"],
        "cidrIpv4": found.get("CidrIpv4", ""),
        "cidrIpv6": found.get("CidrIpv6", ""),
        "prefixListId": found.get("PrefixListId", ""),
        "referencedSecurityGroupId": found.get("ReferencedGroupInfo", {}).get("GroupId", ""),
        "securityGroupId": found["GroupId"],
        "description": found.get("Description", ""),
    }


def _caller(clients: Clients, region: str, arguments: Properties) -> Properties:
    found = _asked(clients, region, "sts", "get_caller_identity")
    account = found["Account"]
    return {
        **arguments,
        "id": account,
        "accountId": account,
        "arn": found["Arn"],
        "userId": found["UserId"],
    }


def _role(clients: Clients, region: str, arguments: Properties) -> Properties:
    found = _asked(clients, region, "iam", "get_role", RoleName=arguments["name"])
    return {**arguments, "arn": found["Role"]["Arn"]}


def _session(clients: Clients, region: str, arguments: Properties) -> Properties:
    """The role behind a session, with its path, which IAM knows; anything else is its own issuer."""
    arn, name, session = arguments["arn"], "", ""
    if ":assumed-role/" in arn:
        name, session = arn.split("/")[1:3]
        arn = _role(clients, region, {"name": name})["arn"]
    issuer = {"issuerArn": arn, "issuerId": "", "issuerName": name, "sessionName": session}
    return {**arguments, **issuer, "id": arguments["arn"]}


def _clusters(clients: Clients, region: str, arguments: Properties) -> Properties:
    names = _asked(clients, region, "eks", "list_clusters")["clusters"]
    return {**arguments, "id": region, "names": names, "region": region}


def _cluster(clients: Clients, region: str, arguments: Properties) -> Properties:
    found = _asked(clients, region, "eks", "describe_cluster", name=arguments["name"])["cluster"]
    told = ["arn", "deletionProtection", "platformVersion", "roleArn", "status", "tags", "version"]
    vpc = found["resourcesVpcConfig"]
    authority = found.get("certificateAuthority")
    return {
        **arguments,
        **{key: found[key] for key in told},
        "id": found["name"],
        "region": region,
        "endpoint": found.get("endpoint", ""),
        "certificateAuthorities": [authority] if authority else [],
        "accessConfigs": [found["accessConfig"]],
        "kubernetesNetworkConfigs": [{"ipFamily": "ipv4", **found["kubernetesNetworkConfig"]}],
        "computeConfigs": [found["computeConfig"]] if found.get("computeConfig") else [],
        "vpcConfig": {**vpc, "securityGroupIds": vpc.get("securityGroupIds", [])},
    }


def _part_of_cluster(operation: str, word: str, what: str, *names: str) -> Lookup:
    """Something that belongs to a cluster; where there is none, the genuine provider's words."""

    def look_up(clients: Clients, region: str, arguments: Properties) -> Properties:
        which = {name: arguments[name] for name in ("clusterName", *names)}
        id_ = ":".join(which.values())
        try:
            found = getattr(clients.get("eks", region), operation)(**which)[word]
        except ClientError as fault:
            missing = fault.response["Error"]["Code"] == "ResourceNotFoundException"
            why = "couldn't find resource" if missing else str(fault)
            raise Refused(f"reading EKS {what} ({id_}): {why}") from None
        plain = {key: value for key, value in found.items() if not key.endswith("At")}
        return {**arguments, **plain, "id": id_, "region": region}

    return look_up


def _bucket(clients: Clients, region: str, arguments: Properties) -> Properties:
    """As the genuine provider answers of a bucket that it may list; else in its words."""
    name = arguments["bucket"]
    try:
        told = clients.get("s3", region).head_bucket(Bucket=name)["ResponseMetadata"]
    except ClientError as fault:
        status = fault.response["Error"]["Code"]
        why = "couldn't find resource"
        if status != "404":
            why = f"operation error S3: HeadBucket, https response error StatusCode: {status}"
        raise Refused(f"reading S3 Bucket ({name}): {why}") from None
    there = told["HTTPHeaders"]["x-amz-bucket-region"]
    return {
        **arguments,
        "id": name,
        "arn": f"arn:aws:s3:::{name}",
        "bucketDomainName": f"{name}.s3.amazonaws.com",
        "bucketRegion": there,
        "bucketRegionalDomainName": f"{name}.s3.{there}.amazonaws.com",
        "hostedZoneId": "",
        "region": region,
    }


LOOKUPS: dict[str, Lookup] = {
    "aws:eks/getAccessEntry:getAccessEntry": _part_of_cluster(
        "describe_access_entry", "accessEntry", "Access Entry", "principalArn"
    ),
    "aws:eks/getAddon:getAddon": _part_of_cluster("describe_addon", "addon", "Add-On", "addonName"),
    "aws:eks/getCluster:getCluster": _cluster,
    "aws:eks/getClusters:getClusters": _clusters,
    "aws:iam/getRole:getRole": _role,
    "aws:iam/getSessionContext:getSessionContext": _session,
    "aws:index/getCallerIdentity:getCallerIdentity": _caller,
    "aws:ec2/getNetworkInterface:getNetworkInterface": _interface,
    "aws:ec2/getNetworkInterfaces:getNetworkInterfaces": _ids(
        "NetworkInterface", "describe_network_interfaces"
    ),
    "aws:ec2/getRouteTable:getRouteTable": _route_table,
    "aws:ec2/getRouteTables:getRouteTables": _ids("RouteTable", "describe_route_tables"),
    "aws:ec2/getSecurityGroups:getSecurityGroups": _group_ids,
    "aws:ec2/getSubnet:getSubnet": _subnet,
    "aws:ec2/getSubnets:getSubnets": _ids("Subnet", "describe_subnets"),
    "aws:ec2/getVpc:getVpc": _vpc,
    "aws:ec2/getVpcs:getVpcs": _ids("Vpc", "describe_vpcs"),
    "aws:s3/getBucket:getBucket": _bucket,
    "aws:vpc/getSecurityGroupRule:getSecurityGroupRule": _group_rule,
    "aws:vpc/getSecurityGroupRules:getSecurityGroupRules": _ids(
        "SecurityGroupRule", "describe_security_group_rules"
    ),
}
"""Token of a data source → its answer."""
