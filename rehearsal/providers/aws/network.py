"""EC2's network types: VPC, subnets, gateways, routes, endpoints, security groups, placement
groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from zlib import crc32

from rehearsal.providers.aws.account import Account
from rehearsal.providers.aws.resource_type import Kind, Tagging, lower, snake, upper
from rehearsal.providers.wire import Properties, words


def tagged(noun: str, by: str = "id") -> Tagging:
    return Tagging(
        target="Resources", by=by, tag="create_tags", untag="delete_tags", keys="Tags", noun=noun
    )


def ec2_resource(word: str, noun: str, *, key: str = "", **more: Any) -> dict[str, Any]:
    """Row of most types: create_x with tags, describe_xs by ids, delete_x."""
    key, name = key or f"{word}Id", snake(word)
    return {
        "token": f"aws:ec2/{lower(word)}:{word}",
        "service": "ec2",
        "create": f"create_{name}",
        "read": f"describe_{name}s",
        "delete": f"delete_{name}",
        "made": word,
        "found": f"{word}s.0",
        "id": f"{{{key}}}",
        "asks": {f"{key}s": "id"},
        "status": "State",
        "tagging": tagged(noun),
        **more,
    }


@dataclass(frozen=True, kw_only=True)
class Vpc(Kind):
    def details(self, aws: Account, found: dict[str, Any]) -> Properties:
        vpc = found["VpcId"]
        told = {
            key: aws.call("ec2", "describe_vpc_attribute", VpcId=vpc, Attribute=key)
            for key in self.later
        }
        return {key: answer[upper(key)]["Value"] for key, answer in told.items()}


@dataclass(frozen=True, kw_only=True)
class SecurityGroup(Kind):
    def finish(self, aws: Account, id_: str, new: Properties) -> None:
        """Take away the rule that lets everything out, which AWS adds to every new group."""
        of_group = [{"Name": "group-id", "Values": [id_]}]
        rules = aws.call("ec2", "describe_security_group_rules", Filters=of_group)[
            "SecurityGroupRules"
        ]
        if out := [rule["SecurityGroupRuleId"] for rule in rules if rule["IsEgress"]]:
            aws.call("ec2", "revoke_security_group_egress", GroupId=id_, SecurityGroupRuleIds=out)


@dataclass(frozen=True, kw_only=True)
class SecurityGroupRule(Kind):
    def arguments(self, new: Properties, only: Any = None) -> dict[str, Any]:
        """A description belongs to the rule's source."""
        given = super().arguments(
            {key: value for key, value in new.items() if key != "description"}, only
        )
        sources = (
            given["IpPermissions"][0].get("IpRanges")
            or given["IpPermissions"][0]["UserIdGroupPairs"]
        )
        sources[0] |= {"Description": new["description"]} if new.get("description") else {}
        return given

    def change(
        self, aws: Account, id_: str, changed: frozenset[str], new: Properties, state: Properties
    ) -> None:
        """EC2 takes the whole rule anew."""
        if not changed:
            return
        wanted = {
            "IpProtocol": new["ipProtocol"],
            "FromPort": new.get("fromPort", -1),
            "ToPort": new.get("toPort", -1),
            "CidrIpv4": new.get("cidrIpv4"),
            "ReferencedGroupId": new.get("referencedSecurityGroupId"),
            "Description": new.get("description"),
        }
        rule = {key: value for key, value in wanted.items() if value is not None}
        aws.call(
            "ec2",
            "modify_security_group_rules",
            GroupId=new["securityGroupId"],
            SecurityGroupRules=[{"SecurityGroupRuleId": id_, "SecurityGroupRule": rule}],
        )


def rule(way: str) -> Kind:
    word = f"SecurityGroup{way}Rule"
    return SecurityGroupRule(
        **ec2_resource(
            "SecurityGroupRule",
            "security-group-rule",
            token=f"aws:vpc/{lower(word)}:{word}",
            made="SecurityGroupRules.0",
            create=f"authorize_security_group_{way.lower()}",
            delete=f"revoke_security_group_{way.lower()}",
            drops={"GroupId": "securityGroupId", "SecurityGroupRuleIds": "id"},
            import_id="{id}",
            chosen=words("fromPort toPort"),
            updates=dict.fromkeys(
                words("ipProtocol fromPort toPort cidrIpv4 referencedSecurityGroupId description"),
                "modify_security_group_rules",
            ),
            names={
                "securityGroupId": "GroupId",
                "ipProtocol": "IpPermissions.0.IpProtocol",
                "fromPort": "IpPermissions.0.FromPort",
                "toPort": "IpPermissions.0.ToPort",
                "cidrIpv4": "IpPermissions.0.IpRanges.0.CidrIp",
                "referencedSecurityGroupId": "IpPermissions.0.UserIdGroupPairs.0.GroupId",
            },
            outputs={
                "ipProtocol": "IpProtocol",
                "fromPort": "FromPort",
                "toPort": "ToPort",
                "cidrIpv4": "CidrIpv4",
                "referencedSecurityGroupId": "ReferencedGroupInfo.GroupId",
                "securityGroupRuleId": "SecurityGroupRuleId",
            },
        )
    )


MOVED = {
    "routeTableIds": "RouteTableIds",
    "securityGroupIds": "SecurityGroupIds",
    "subnetIds": "SubnetIds",
}
"""Input of an endpoint → what EC2 adds and removes."""


@dataclass(frozen=True, kw_only=True)
class Endpoint(Kind):
    def change(
        self, aws: Account, id_: str, changed: frozenset[str], new: Properties, state: Properties
    ) -> None:
        """EC2 takes what comes and what goes: route tables, subnets, groups."""
        for key in sorted(changed & MOVED.keys()):
            before, after = ({*each.get(key, ())} for each in (state, new))
            aws.call(
                "ec2",
                "modify_vpc_endpoint",
                VpcEndpointId=id_,
                **{
                    f"Add{MOVED[key]}": sorted(after - before),
                    f"Remove{MOVED[key]}": sorted(before - after),
                },
            )

    def known(self, found: dict[str, Any]) -> Properties:
        """Security groups have their names beside them."""
        groups = [group["GroupId"] for group in found.get("Groups") or ()]
        return super().known(found) | {"securityGroupIds": groups}


@dataclass(frozen=True, kw_only=True)
class Route(Kind):
    def identify(self, form: str, values: Properties) -> str:
        """The genuine provider's id hides the destination in a checksum."""
        return f"r-{values['routeTableId']}{crc32(values['destinationCidrBlock'].encode())}"


KINDS = (
    Vpc(
        **ec2_resource(
            "Vpc",
            "vpc",
            outputs={"ownerId": "OwnerId"},
            later=words("enableDnsSupport enableDnsHostnames"),
            updates=dict.fromkeys(
                ("enableDnsSupport", "enableDnsHostnames"), "modify_vpc_attribute"
            ),
            names={
                "enableDnsSupport": "EnableDnsSupport.Value",
                "enableDnsHostnames": "EnableDnsHostnames.Value",
            },
            defaults={
                "enableDnsSupport": True,
                "enableDnsHostnames": False,
                "instanceTenancy": "default",
            },
        )
    ),
    Kind(
        **ec2_resource(
            "Subnet",
            "subnet",
            chosen=words("availabilityZone"),
            later=words("mapPublicIpOnLaunch"),
            updates={"mapPublicIpOnLaunch": "modify_subnet_attribute"},
            names={"mapPublicIpOnLaunch": "MapPublicIpOnLaunch.Value"},
            outputs={"mapPublicIpOnLaunch": "MapPublicIpOnLaunch"},
            defaults={"mapPublicIpOnLaunch": False},
        )
    ),
    Kind(
        **ec2_resource(
            "InternetGateway",
            "internet-gateway",
            later=words("vpcId"),
            updates={"vpcId": "attach_internet_gateway"},
            undo={"vpcId": "detach_internet_gateway"},
            outputs={"vpcId": "Attachments.0.VpcId"},
        )
    ),
    Kind(
        **ec2_resource(
            "Address",
            "elastic-ip",
            key="AllocationId",
            token="aws:ec2/eip:Eip",
            create="allocate_address",
            made="",
            read="describe_addresses",
            found="Addresses.0",
            delete="release_address",
            defaults={"domain": "vpc"},
            outputs={"allocationId": "AllocationId", "publicIp": "PublicIp"},
        )
    ),
    Kind(
        **ec2_resource(
            "NatGateway",
            "natgateway",
            minutes=10,
            defaults={"connectivityType": "public"},
            reason="FailureMessage",
            outputs={
                "allocationId": "NatGatewayAddresses.0.AllocationId",
                "publicIp": "NatGatewayAddresses.0.PublicIp",
            },
        )
    ),
    Kind(**ec2_resource("RouteTable", "route-table")),
    Route(
        token="aws:ec2/route:Route",
        service="ec2",
        create="create_route",
        read="describe_route_tables",
        delete="delete_route",
        found="RouteTables.0.Routes",
        among="destinationCidrBlock",
        id="",
        import_id="{routeTableId}_{destinationCidrBlock}",
        asks={"RouteTableIds": "routeTableId"},
        drops={"RouteTableId": "routeTableId", "DestinationCidrBlock": "destinationCidrBlock"},
        status="State",
        minutes=5,
        updates={"gatewayId": "replace_route", "natGatewayId": "replace_route"},
    ),
    Kind(
        token="aws:ec2/routeTableAssociation:RouteTableAssociation",
        service="ec2",
        create="associate_route_table",
        read="describe_route_tables",
        delete="disassociate_route_table",
        found="RouteTables.0.Associations",
        among="subnetId",
        id="{AssociationId}",
        lasting="{RouteTableAssociationId}",
        import_id="{subnetId}/{routeTableId}",
        asks={"RouteTableIds": "routeTableId"},
        drops={"AssociationId": "id"},
        alone=True,
        minutes=5,
    ),
    Endpoint(
        **ec2_resource(
            "VpcEndpoint",
            "vpc-endpoint",
            delete="delete_vpc_endpoints",
            drops={"VpcEndpointIds": "id"},
            minutes=10,
            updates=dict.fromkeys(MOVED, "modify_vpc_endpoint"),
            fixed=words("privateDnsEnabled"),
            chosen=words("routeTableIds subnetIds securityGroupIds privateDnsEnabled"),
            defaults={"vpcEndpointType": "Gateway"},
        )
    ),
    SecurityGroup(
        **ec2_resource(
            "SecurityGroup",
            "security-group",
            key="GroupId",
            made="",
            minutes=10,
            chosen=words("vpcId"),
            names={"name": "GroupName"},
        )
    ),
    rule("Ingress"),
    rule("Egress"),
    Kind(
        **ec2_resource(
            "PlacementGroup",
            "placement-group",
            key="GroupName",
            id="{name}",
            names={"name": "GroupName"},
            outputs={"placementGroupId": "GroupId", "arn": "GroupArn"},
            tagging=tagged("placement-group", by="placementGroupId"),
            minutes=5,
        )
    ),
)
