"""EC2's network types: VPC, subnets, gateways, routes, endpoints, security groups."""

from __future__ import annotations

import re
from typing import Any, ClassVar
from zlib import crc32

from rehearsal.plugins.aws.account import Account
from rehearsal.plugins.aws.kind import Minutes, Pascal, Seen, Tagging, pairs, snake, text, unpaired, upper
from rehearsal.plugins.wire import Properties, words


class Ec2(Pascal):
    """A type with the usual quartet: create_x with tags, describe_xs by ids, delete_x, create_tags."""

    service = "ec2"
    tagging = Tagging(target="Resources", wrap=lambda id_: [id_], tag="create_tags", untag="delete_tags", keys="Tags")
    word: ClassVar[str]
    """Its name in answers, as "InternetGateway"."""
    noun: ClassVar[str]
    """Its name in ARNs and tag specifications, as "internet-gateway"."""
    id_field: ClassVar[str]
    verbs: ClassVar[tuple[str, str]] = ("create", "delete")

    def create(self, aws: Account, new: Properties) -> str:
        operation = f"{self.verbs[0]}_{snake(self.word)}"
        answer = aws.call("ec2", operation, **self.arguments(new), TagSpecifications=self.specified(new))
        return answer.get(self.word, answer)[self.id_field]

    def specified(self, new: Properties) -> list[dict[str, Any]] | None:
        return [{"ResourceType": self.noun, "Tags": pairs(new["tags"])}] if new["tags"] else None

    def find(self, aws: Account, id_: str, hint: Properties) -> Seen | None:
        words_ = "addresses" if self.word == "Address" else snake(self.word) + "s"
        answer = aws.seen("ec2", f"describe_{words_}", **{self.id_field + "s": [id_]})
        found = next(iter((answer or {}).get(upper(words_) if self.word == "Address" else self.word + "s", [])), None)
        if not found or found.get("State") == "deleted":
            return None
        owner = found.get("OwnerId") or found.get("GroupOwnerId") or aws.identity["Account"]
        state = {"arn": aws.arn("ec2", owner, f"{self.noun}/{id_}"), "ownerId": owner}
        state |= self.known(found) | self.details(aws, found)
        status, reason = str(found.get("State", "")).lower(), found.get("FailureMessage", "")
        return Seen(state=state, tags=unpaired(found.get("Tags")), status=status, reason=reason)

    def details(self, aws: Account, found: dict[str, Any]) -> Properties:
        """State beyond the inputs."""
        return {}

    def remove(self, aws: Account, id_: str, state: Properties) -> None:
        aws.call("ec2", f"{self.verbs[1]}_{snake(self.word)}", **{self.id_field: id_})


class Vpc(Ec2):
    token = "aws:ec2/vpc:Vpc"
    word, noun, id_field = "Vpc", "vpc", "VpcId"
    later = words("enableDnsSupport enableDnsHostnames enableNetworkAddressUsageMetrics")
    inputs = words("cidrBlock instanceTenancy") | later
    replaces = words("cidrBlock instanceTenancy")
    defaults = {
        "enableDnsSupport": True,
        "enableDnsHostnames": False,
        "enableNetworkAddressUsageMetrics": False,
        "instanceTenancy": "default",
    }
    minutes = Minutes(delete=5)

    def change(self, aws: Account, id_: str, changed: frozenset[str], new: Properties, state: Properties) -> None:
        for key in sorted(changed):
            value = {"Value": new.get(key, self.defaults[key])}
            aws.call("ec2", "modify_vpc_attribute", VpcId=id_, **{upper(key): value})

    def details(self, aws: Account, found: dict[str, Any]) -> Properties:
        vpc = found["VpcId"]
        attributes = {key: aws.call("ec2", "describe_vpc_attribute", VpcId=vpc, Attribute=key) for key in self.later}
        tables, acls, groups = (
            aws.call("ec2", f"describe_{kind}", Filters=where(**{"vpc-id": vpc}, **more))
            for kind, more in (
                ("route_tables", {"association.main": "true"}),
                ("network_acls", {"default": "true"}),
                ("security_groups", {"group-name": "default"}),
            )
        )
        table = tables["RouteTables"][0]["RouteTableId"]
        return {
            **{key: answer[upper(key)]["Value"] for key, answer in attributes.items()},
            "dhcpOptionsId": found.get("DhcpOptionsId"),
            "mainRouteTableId": table,
            "defaultRouteTableId": table,
            "defaultNetworkAclId": acls["NetworkAcls"][0]["NetworkAclId"],
            "defaultSecurityGroupId": groups["SecurityGroups"][0]["GroupId"],
        }


class Subnet(Ec2):
    token = "aws:ec2/subnet:Subnet"
    word, noun, id_field = "Subnet", "subnet", "SubnetId"
    later = words("mapPublicIpOnLaunch")
    replaces = chosen = words("vpcId cidrBlock availabilityZone availabilityZoneId")
    inputs = replaces | later
    defaults = {"mapPublicIpOnLaunch": False}

    def change(self, aws: Account, id_: str, changed: frozenset[str], new: Properties, state: Properties) -> None:
        public = {"Value": new.get("mapPublicIpOnLaunch", False)}
        aws.call("ec2", "modify_subnet_attribute", SubnetId=id_, MapPublicIpOnLaunch=public)


class InternetGateway(Ec2):
    token = "aws:ec2/internetGateway:InternetGateway"
    word, noun, id_field = "InternetGateway", "internet-gateway", "InternetGatewayId"
    inputs = later = words("vpcId")

    def change(self, aws: Account, id_: str, changed: frozenset[str], new: Properties, state: Properties) -> None:
        self.detach(aws, id_, state)
        if new.get("vpcId"):
            aws.call("ec2", "attach_internet_gateway", InternetGatewayId=id_, VpcId=new["vpcId"])

    def detach(self, aws: Account, id_: str, state: Properties) -> None:
        if state.get("vpcId"):
            aws.seen("ec2", "detach_internet_gateway", InternetGatewayId=id_, VpcId=state["vpcId"])

    def details(self, aws: Account, found: dict[str, Any]) -> Properties:
        attached = found.get("Attachments")
        return {"vpcId": attached[0]["VpcId"]} if attached else {}

    def remove(self, aws: Account, id_: str, state: Properties) -> None:
        now = self.find(aws, id_, state)
        self.detach(aws, id_, now.state if now else {})
        super().remove(aws, id_, state)


class Eip(Ec2):
    token = "aws:ec2/eip:Eip"
    word, noun, id_field, verbs = "Address", "elastic-ip", "AllocationId", ("allocate", "release")
    inputs = replaces = chosen = words("domain networkBorderGroup publicIpv4Pool")
    defaults = {"domain": "vpc"}

    def details(self, aws: Account, found: dict[str, Any]) -> Properties:
        address = found["PublicIp"]
        return {
            "allocationId": found["AllocationId"],
            "associationId": found.get("AssociationId", ""),
            "privateIp": found.get("PrivateIpAddress", ""),
            "publicIp": address,
            "publicDns": f"ec2-{address.replace('.', '-')}.{aws.region}.compute.amazonaws.com",
        }


class NatGateway(Ec2):
    token = "aws:ec2/natGateway:NatGateway"
    word, noun, id_field = "NatGateway", "natgateway", "NatGatewayId"
    inputs = replaces = words("allocationId subnetId connectivityType privateIp")
    chosen = words("privateIp")
    names = {"privateIp": "PrivateIpAddress"}
    defaults = {"connectivityType": "public"}
    minutes = Minutes(create=10, delete=30)

    def details(self, aws: Account, found: dict[str, Any]) -> Properties:
        address = next(iter(found.get("NatGatewayAddresses", [])), {})
        fields = "allocationId associationId networkInterfaceId publicIp"
        told = {key: address.get(upper(key)) for key in words(fields)} | {"privateIp": address.get("PrivateIp")}
        return {key: value for key, value in told.items() if value}


class RouteTable(Ec2):
    token = "aws:ec2/routeTable:RouteTable"
    word, noun, id_field = "RouteTable", "route-table", "RouteTableId"
    inputs = replaces = words("vpcId")


class VpcEndpoint(Ec2):
    token = "aws:ec2/vpcEndpoint:VpcEndpoint"
    word, noun, id_field = "VpcEndpoint", "vpc-endpoint", "VpcEndpointId"
    replaces = words("vpcId serviceName vpcEndpointType")
    lists = words("routeTableIds subnetIds securityGroupIds")
    inputs = replaces | lists | words("policy privateDnsEnabled")
    chosen = words("policy subnetIds securityGroupIds routeTableIds privateDnsEnabled")
    names = {"policy": "PolicyDocument"}
    defaults = {"vpcEndpointType": "Gateway"}
    minutes = Minutes(create=10, update=10, delete=10)

    def change(self, aws: Account, id_: str, changed: frozenset[str], new: Properties, state: Properties) -> None:
        parts = self.arguments(new, changed - self.lists)
        for key in changed & self.lists:
            was, wanted = set(state.get(key) or []), set(new.get(key) or [])
            parts |= {f"Add{upper(key)}": sorted(wanted - was), f"Remove{upper(key)}": sorted(was - wanted)}
        aws.call("ec2", "modify_vpc_endpoint", VpcEndpointId=id_, **parts)

    def details(self, aws: Account, found: dict[str, Any]) -> Properties:
        lists = aws.call("ec2", "describe_prefix_lists", Filters=where(**{"prefix-list-name": found["ServiceName"]}))
        prefix = next(iter(lists["PrefixLists"]), {})
        return {
            "state": found.get("State"),
            "securityGroupIds": [group["GroupId"] for group in found.get("Groups", [])],
            "networkInterfaceIds": found.get("NetworkInterfaceIds", []),
            "prefixListId": prefix.get("PrefixListId"),
            "cidrBlocks": prefix.get("Cidrs", []),
            **({"policy": text(found["PolicyDocument"])} if found.get("PolicyDocument") else {}),
        }

    def remove(self, aws: Account, id_: str, state: Properties) -> None:
        aws.call("ec2", "delete_vpc_endpoints", VpcEndpointIds=[id_])


class SecurityGroup(Ec2):
    token = "aws:ec2/securityGroup:SecurityGroup"
    word, noun, id_field = "SecurityGroup", "security-group", "GroupId"
    inputs = words("name description vpcId revokeRulesOnDelete")
    replaces = words("name description vpcId")
    local = words("revokeRulesOnDelete")
    chosen = words("vpcId")
    names = {"name": "GroupName"}
    defaults = {"description": "Managed by Pulumi"}
    auto_name = "name"
    minutes = Minutes(create=10, delete=15)

    def create(self, aws: Account, new: Properties) -> str:
        given = {"description": self.defaults["description"], **new}
        arguments = self.arguments(given, self.replaces)
        return aws.call("ec2", "create_security_group", **arguments, TagSpecifications=self.specified(new))["GroupId"]

    def finish(self, aws: Account, id_: str, new: Properties, state: Properties) -> None:
        """Take away the rule that lets everything out, which AWS adds to every new group."""
        rules = aws.call("ec2", "describe_security_group_rules", Filters=where(**{"group-id": id_}))
        if out := [rule["SecurityGroupRuleId"] for rule in rules["SecurityGroupRules"] if rule["IsEgress"]]:
            aws.call("ec2", "revoke_security_group_egress", GroupId=id_, SecurityGroupRuleIds=out)

    def change(self, aws: Account, id_: str, changed: frozenset[str], new: Properties, state: Properties) -> None:
        """revokeRulesOnDelete is only remembered."""

    def remove(self, aws: Account, id_: str, state: Properties) -> None:
        if state.get("revokeRulesOnDelete"):
            rules = aws.call("ec2", "describe_security_group_rules", Filters=where(**{"group-id": id_}))
            for way, egress in (("ingress", False), ("egress", True)):
                ids = [r["SecurityGroupRuleId"] for r in rules["SecurityGroupRules"] if r["IsEgress"] is egress]
                if ids:
                    aws.call("ec2", f"revoke_security_group_{way}", GroupId=id_, SecurityGroupRuleIds=ids)
        super().remove(aws, id_, state)


class SecurityGroupRule(Ec2):
    word, noun, id_field = "SecurityGroupRule", "security-group-rule", "SecurityGroupRuleId"
    way: ClassVar[str]
    replaces = words("securityGroupId")
    inputs = replaces | words(
        "ipProtocol fromPort toPort cidrIpv4 cidrIpv6 prefixListId referencedSecurityGroupId description"
    )
    names = {"securityGroupId": "GroupId", "referencedSecurityGroupId": "ReferencedGroupId"}

    def create(self, aws: Account, new: Properties) -> str:
        note = {"Description": new["description"]} if new.get("description") else {}
        sources = {
            "IpRanges": ("CidrIp", "cidrIpv4"),
            "Ipv6Ranges": ("CidrIpv6", "cidrIpv6"),
            "PrefixListIds": ("PrefixListId", "prefixListId"),
            "UserIdGroupPairs": ("GroupId", "referencedSecurityGroupId"),
        }
        permission = self.arguments(new, words("ipProtocol fromPort toPort"))
        permission |= {key: [{field: new[p], **note}] for key, (field, p) in sources.items() if new.get(p)}
        where_, operation = new["securityGroupId"], f"authorize_security_group_{self.way}"
        tags = self.specified(new)
        answer = aws.call("ec2", operation, GroupId=where_, IpPermissions=[permission], TagSpecifications=tags)
        return answer["SecurityGroupRules"][0]["SecurityGroupRuleId"]

    def details(self, aws: Account, found: dict[str, Any]) -> Properties:
        referenced = found.get("ReferencedGroupInfo", {}).get("GroupId")
        every = {"fromPort": None, "toPort": None} if found["IpProtocol"] == "-1" else {}
        ids = {"securityGroupRuleId": found["SecurityGroupRuleId"]}
        return {**ids, **every, **({"referencedSecurityGroupId": referenced} if referenced else {})}

    def change(self, aws: Account, id_: str, changed: frozenset[str], new: Properties, state: Properties) -> None:
        rule = {"SecurityGroupRuleId": id_, "SecurityGroupRule": self.arguments(new, self.inputs - self.replaces)}
        aws.call("ec2", "modify_security_group_rules", GroupId=new["securityGroupId"], SecurityGroupRules=[rule])

    def remove(self, aws: Account, id_: str, state: Properties) -> None:
        group, operation = state["securityGroupId"], f"revoke_security_group_{self.way}"
        aws.call("ec2", operation, GroupId=group, SecurityGroupRuleIds=[id_])


class IngressRule(SecurityGroupRule):
    token = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
    way = "ingress"


class EgressRule(SecurityGroupRule):
    token = "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule"
    way = "egress"


class Route(Pascal):
    token = "aws:ec2/route:Route"
    destinations = words("destinationCidrBlock destinationIpv6CidrBlock destinationPrefixListId")
    replaces = words("routeTableId") | destinations
    inputs = replaces | words(
        "gatewayId natGatewayId networkInterfaceId transitGatewayId egressOnlyGatewayId vpcPeeringConnectionId"
    )
    names = {"egressOnlyGatewayId": "EgressOnlyInternetGatewayId"}
    minutes = Minutes(create=5, update=2, delete=5)

    def create(self, aws: Account, new: Properties) -> str:
        aws.call("ec2", "create_route", **self.arguments(new))
        return self.id(new["routeTableId"], next(new[key] for key in self.destinations if new.get(key)))

    def id(self, table: str, destination: str) -> str:
        return f"r-{table}{crc32(destination.encode())}"

    def find(self, aws: Account, id_: str, hint: Properties) -> Seen | None:
        """By the genuine provider's id, which hides the destination in a checksum, or by its import id TABLE_DEST."""
        ids = re.findall(r"rtb-[0-9a-f]{17}|rtb-[0-9a-f]{8}", id_)
        tables = aws.seen("ec2", "describe_route_tables", RouteTableIds=ids) or {"RouteTables": []}
        for table, route in ((t["RouteTableId"], r) for t in tables["RouteTables"] for r in t["Routes"]):
            state = self.known(route) | {"routeTableId": table, "state": route.get("State", "active")}
            destination = next((state[key] for key in self.destinations if state.get(key)), "")
            lasting = self.id(table, destination)
            if id_ in (lasting, f"{table}_{destination}"):
                return Seen(state=state | {"origin": route.get("Origin")}, id=lasting)
        return None

    def change(self, aws: Account, id_: str, changed: frozenset[str], new: Properties, state: Properties) -> None:
        aws.call("ec2", "replace_route", **self.arguments(new))

    def remove(self, aws: Account, id_: str, state: Properties) -> None:
        aws.call("ec2", "delete_route", **self.arguments(state, self.replaces))


class RouteTableAssociation(Pascal):
    token = "aws:ec2/routeTableAssociation:RouteTableAssociation"
    inputs = replaces = words("routeTableId subnetId gatewayId")
    alone = True
    minutes = Minutes(create=5, update=2, delete=5)

    def create(self, aws: Account, new: Properties) -> str:
        return aws.call("ec2", "associate_route_table", **self.arguments(new))["AssociationId"]

    def find(self, aws: Account, id_: str, hint: Properties) -> Seen | None:
        """By its id, or by the import id SUBNET/TABLE."""
        subnet = id_.split("/")[0]
        name, field = (
            ("subnet-id", "SubnetId") if "/" in id_ else ("route-table-association-id", "RouteTableAssociationId")
        )
        tables = aws.call("ec2", "describe_route_tables", Filters=where(**{f"association.{name}": subnet}))
        for table in tables["RouteTables"]:
            for association in table["Associations"]:
                if association.get(field) == subnet:
                    return Seen(state=self.known(association), id=association["RouteTableAssociationId"])
        return None

    def remove(self, aws: Account, id_: str, state: Properties) -> None:
        aws.call("ec2", "disassociate_route_table", AssociationId=id_)


def where(**conditions: str) -> list[dict[str, Any]]:
    return [{"Name": name, "Values": [value]} for name, value in conditions.items()]


KINDS = (
    Vpc, Subnet, InternetGateway, Eip, NatGateway, RouteTable, Route, RouteTableAssociation, VpcEndpoint, SecurityGroup,
    IngressRule, EgressRule,
)  # fmt: skip
