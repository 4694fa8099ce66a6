"""The questions that `trainyard check --live` asks an AWS account about a VPC and its subnets. They read and
never write. Their meaning: trainyard/live/existing/vpc.py and free_addresses.py."""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainyard.catalog.aws.endpoints import S3, service_name
from trainyard.catalog.aws.quotas import VPC_QUOTA
from trainyard.existing.store_faults import RuleFound
from trainyard.existing.vpc_faults import EVERYWHERE, SubnetFound, VpcFound
from trainyard.live.questions.caller import Caller, Filters
from trainyard.plans.identity import Identity

NETWORKS = ("TransitGatewayId", "VpcPeeringConnectionId", "CoreNetworkArn")
"""Keys of a route that name what leads to other networks, beside GatewayId with a virtual private gateway."""


@dataclass(frozen=True, kw_only=True)
class SubnetRoom:
    """Room of a subnet: free addresses, and nodes of the stack that run in it."""

    free: int
    """Addresses."""
    pool_nodes: int
    """Nodes of the stack's pools that run in it."""
    system_nodes: int


@dataclass(frozen=True, kw_only=True)
class EndpointFound:
    """An interface endpoint as EC2 describes it."""

    id: str
    api: str
    """As trainyard/catalog/aws/endpoints.py names it."""
    state: str
    private_dns: bool
    """It gives the public name of the API to its own addresses."""
    groups: tuple[str, ...]
    rules: tuple[RuleFound, ...]
    """The rules of all its security groups."""
    policy: str = ""
    """As JSON; empty where nobody tells."""


@dataclass(frozen=True, kw_only=True)
class InterfaceFound:
    """A network interface that has an address of a pod."""

    address: str
    """Address of the pod."""
    groups: tuple[str, ...]
    rules: tuple[RuleFound, ...]
    """The rules of all its security groups."""


@dataclass(frozen=True, kw_only=True)
class AclRule:
    """A rule of a network ACL."""

    acl_id: str
    number: int
    egress: bool
    allows: bool
    protocol: str
    ports: tuple[int, int]
    """From and to."""
    cidr: str


class NetworkQuestions(Caller):
    """Each method is a question."""

    def addresses(
        self, me: Identity, subnets: Sequence[str], node_pools: Sequence[str], node_group: str
    ) -> dict[str, SubnetRoom]:
        """Zone → its subnet, as far as there is one. `subnets`: their ids, or the logical names of
        those that the stack makes. `node_pools`: names of the NodePools."""
        named = [subnet for subnet in subnets if not subnet.startswith("subnet-")]
        at = tagged(me, *named) if named else Filters({"subnet-id": subnets})
        found = self._ask("ec2:DescribeSubnets", filters=at)["Subnets"]
        if not found:
            return {}
        launched = tagged(me, *(f"{name}-node" for name in node_pools))
        pools = self._running(launched) if node_pools else []
        system = self._running({"tag:eks:nodegroup-name": [node_group]})
        of_pools, of_system = (Counter(one["SubnetId"] for one in each) for each in (pools, system))
        return {
            one["AvailabilityZone"]: SubnetRoom(
                free=one["AvailableIpAddressCount"],
                pool_nodes=of_pools[one["SubnetId"]],
                system_nodes=of_system[one["SubnetId"]],
            )
            for one in found
        }

    def pod_subnet_zones(self, vpc: str) -> set[str]:
        """Zones with a subnet for further interfaces of nodes, beside that of the node (amazon-vpc-cni-k8s v1.20.4,
        README.md, ENABLE_SUBNET_DISCOVERY and "CNI role tag")."""
        asked: Filters = {"vpc-id": [vpc], "tag-key": ["kubernetes.io/role/cni"]}
        found = self._ask("ec2:DescribeSubnets", filters=asked)["Subnets"]
        return {one["AvailabilityZone"] for one in found}

    def vpc(self, id_: str, subnets: Sequence[str]) -> VpcFound | None:
        """A VPC with those of the subnets that exist; None where the account has no such VPC in the
        region, and none is shared with it."""
        vpcs = self._ask("ec2:DescribeVpcs", filters={"vpc-id": [id_]})["Vpcs"]
        if not vpcs:
            return None
        tables = self._route_tables(id_, subnets)
        known = self._ask("ec2:DescribeSubnets", filters={"subnet-id": subnets})["Subnets"]
        owner, caller = vpcs[0]["OwnerId"], self._ask("sts:GetCallerIdentity")["Account"]
        return VpcFound(
            shared_by="" if owner == caller else owner,
            cidrs=tuple(one["CidrBlock"] for one in vpcs[0]["CidrBlockAssociationSet"]),
            dns_support=self._has(id_, "enableDnsSupport"),
            dns_hostnames=self._has(id_, "enableDnsHostnames"),
            subnets={
                one["SubnetId"]: SubnetFound(
                    vpc_id=one["VpcId"],
                    zone=one["AvailabilityZone"],
                    zone_id=one["AvailabilityZoneId"],
                    cidr=one["CidrBlock"],
                    public_addresses=one["MapPublicIpOnLaunch"],
                    way_out=_way_out(tables.get(one["SubnetId"]) or {}),
                )
                for one in known
            },
        )

    def vpcs(self, me: Identity) -> tuple[float, int]:
        """Number of VPCs that the region gives the account, and of its VPCs that others than this stack have. Those
        that another account shares do not count."""
        quota = self._ask("servicequotas:GetServiceQuota", ServiceCode="vpc", QuotaCode=VPC_QUOTA)
        mine = [self._ask("sts:GetCallerIdentity")["Account"]]
        every = self._ask("ec2:DescribeVpcs", filters={"owner-id": mine})["Vpcs"]
        return quota["Quota"]["Value"], sum(not me.owns(tags_of(one)) for one in every)

    def without_s3(self, vpc: str, subnets: Sequence[str]) -> list[str]:
        """Subnets whose route table has no gateway endpoint for S3."""
        served = {table for one in self._gateways(vpc) for table in one["RouteTableIds"]}
        tables = self._route_tables(vpc, subnets)
        return [id_ for id_ in subnets if (tables[id_] or {}).get("RouteTableId") not in served]

    def ways_to_networks(self, vpc: str, subnets: Sequence[str]) -> dict[str, str]:
        """IPv4 range or prefix list → the gateway or peering connection to other networks that a route of one of the
        subnets has for it. EC2 API, Route; a Core Network is that of Cloud WAN."""
        routes = [
            route
            for table in self._route_tables(vpc, subnets).values()
            for route in (table or {}).get("Routes", ())
            if route.get("State") != "blackhole"
        ]
        return {
            range_: target
            for route in routes
            if (range_ := route.get("DestinationCidrBlock") or route.get("DestinationPrefixListId"))
            if (target := _network(route))
        }

    def s3_policies(self, vpc: str, subnets: Sequence[str]) -> dict[str, str]:
        """Gateway endpoint for S3 of one of the subnets → its policy, as JSON."""
        tables = {
            (one or {}).get("RouteTableId") for one in self._route_tables(vpc, subnets).values()
        }
        return {
            one["VpcEndpointId"]: one.get("PolicyDocument", "")
            for one in self._gateways(vpc)
            if tables & {*one["RouteTableIds"]}
        }

    def _gateways(self, vpc: str) -> list[dict[str, Any]]:
        """The gateway endpoints for S3."""
        filters: Filters = {
            "vpc-id": [vpc],
            "service-name": [service_name(self._access.region, S3)],
            "vpc-endpoint-type": ["Gateway"],
        }
        return self._ask("ec2:DescribeVpcEndpoints", filters=filters)["VpcEndpoints"]

    def endpoints(self, vpc: str) -> list[EndpointFound]:
        """The interface endpoints of the VPC for AWS APIs of the region."""
        filters: Filters = {"vpc-id": [vpc], "vpc-endpoint-type": ["Interface"]}
        found = self._ask("ec2:DescribeVpcEndpoints", filters=filters)["VpcEndpoints"]
        groups = {one["VpcEndpointId"]: [g["GroupId"] for g in one["Groups"]] for one in found}
        rules = {id_: self._rules(each) for id_, each in groups.items() if each}
        return [
            EndpointFound(
                id=(id_ := one["VpcEndpointId"]),
                api=one["ServiceName"].removeprefix(service_name(self._access.region, "")),
                state=one["State"],
                private_dns=one.get("PrivateDnsEnabled", False),
                groups=tuple(groups[id_]),
                rules=rules.get(id_, ()),
                policy=one.get("PolicyDocument", ""),
            )
            for one in found
        ]

    def endpoint_offers(self, apis: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """API → names of the zones in which the region offers an interface endpoint for it; an API for
        which it offers none is not in it. By a filter, because EC2 refuses a name that it does not know."""
        region = self._access.region
        filters: Filters = {
            "service-name": [service_name(region, api) for api in apis],
            "service-type": ["Interface"],
        }
        found = self._ask("ec2:DescribeVpcEndpointServices", filters=filters)["ServiceDetails"]
        return {
            one["ServiceName"].removeprefix(service_name(region, "")): tuple(
                one["AvailabilityZones"]
            )
            for one in found
        }

    def name_servers(self, vpc: str) -> list[str]:
        """The DNS servers that the DHCP options of the VPC name; empty without options, and for
        those of Amazon."""
        vpcs = self._ask("ec2:DescribeVpcs", filters={"vpc-id": [vpc]})["Vpcs"]
        if not vpcs or vpcs[0]["DhcpOptionsId"] == "default":
            return []
        ids: Filters = {"dhcp-options-id": [vpcs[0]["DhcpOptionsId"]]}
        options = self._ask("ec2:DescribeDhcpOptions", filters=ids)["DhcpOptions"]
        return [
            value["Value"]
            for one in options
            for each in one["DhcpConfigurations"]
            if each["Key"] == "domain-name-servers"
            for value in each["Values"]
        ]

    def acls(self, subnets: Sequence[str]) -> dict[str, list[AclRule]]:
        """Subnet → the rules of its network ACL, in the order in which they hold."""
        asked: Filters = {"association.subnet-id": subnets}
        found = self._ask("ec2:DescribeNetworkAcls", filters=asked)["NetworkAcls"]
        return {
            one["SubnetId"]: [_acl_rule(acl["NetworkAclId"], entry) for entry in _entries(acl)]
            for acl in found
            for one in acl["Associations"]
            if one["SubnetId"] in subnets
        }

    def interfaces_of(self, vpc: str, pods: Mapping[str, str]) -> list[InterfaceFound]:
        """The interfaces that have these pods' addresses, as far as EC2 knows them. `pods`: address → address of
        the node. An address of a prefix that an interface of the node has is no address of the interface for EC2
        (EKS user guide, cni-increase-ip-addresses)."""
        found = {
            address: one["Groups"]
            for one in self._interfaces(vpc, pods)
            for each in one["PrivateIpAddresses"]
            if (address := each["PrivateIpAddress"]) in pods
        }
        others = {address: node for address, node in pods.items() if address not in found}
        found |= self._by_prefix(vpc, others) if others else {}
        groups = {
            address: sorted(one["GroupId"] for one in each) for address, each in found.items()
        }
        rules = {tuple(each): self._rules(each) for each in groups.values() if each}
        return [
            InterfaceFound(address=address, groups=tuple(each), rules=rules.get(tuple(each), ()))
            for address, each in sorted(groups.items())
        ]

    def _by_prefix(self, vpc: str, pods: Mapping[str, str]) -> dict[str, list[Any]]:
        """Address of a pod → the groups of the interface that has its prefix."""
        nodes = {
            one["Attachment"]["InstanceId"]
            for one in self._interfaces(vpc, {*pods.values()})
            if "InstanceId" in one.get("Attachment", {})
        }
        if not nodes:
            return {}
        asked: Filters = {"attachment.instance-id": sorted(nodes)}
        every = self._ask("ec2:DescribeNetworkInterfaces", filters=asked)["NetworkInterfaces"]
        return {
            pod: one["Groups"]
            for one in every
            for prefix in one.get("Ipv4Prefixes", ())
            for pod in pods
            if ipaddress.ip_address(pod) in ipaddress.ip_network(prefix["Ipv4Prefix"])
        }

    def _interfaces(self, vpc: str, addresses: Collection[str]) -> list[dict[str, Any]]:
        """The interfaces of a VPC with one of these addresses."""
        asked: Filters = {"vpc-id": [vpc], "addresses.private-ip-address": sorted(addresses)}
        return self._ask("ec2:DescribeNetworkInterfaces", filters=asked)["NetworkInterfaces"]

    def group_rules(self, groups: Sequence[str]) -> tuple[RuleFound, ...]:
        """The rules of security groups; empty without any."""
        return self._rules(groups) if groups else ()

    def _rules(self, groups: Sequence[str]) -> tuple[RuleFound, ...]:
        """The rules of security groups."""
        asked: Filters = {"group-id": groups}
        rules = self._ask("ec2:DescribeSecurityGroupRules", filters=asked)["SecurityGroupRules"]
        return tuple(
            RuleFound(
                egress=rule["IsEgress"],
                protocol=rule["IpProtocol"],
                ports=(rule["FromPort"], rule["ToPort"]),
                cidr=rule.get("CidrIpv4", ""),
                group_id=rule.get("ReferencedGroupInfo", {}).get("GroupId", ""),
            )
            for rule in rules
        )

    def _has(self, vpc: str, attribute: str) -> bool:
        answer = self._ask("ec2:DescribeVpcAttribute", VpcId=vpc, Attribute=attribute)
        return answer[attribute[0].upper() + attribute[1:]]["Value"]

    def _route_tables(self, vpc: str, subnets: Sequence[str]) -> dict[str, dict[str, Any] | None]:
        """Subnet → the route table that holds for it: its own, or the main one of the VPC."""
        tables = self._ask("ec2:DescribeRouteTables", filters={"vpc-id": [vpc]})["RouteTables"]
        named = [(one, table) for table in tables for one in table["Associations"]]
        main = next((table for one, table in named if one.get("Main")), None)
        own = {one["SubnetId"]: table for one, table in named if "SubnetId" in one}
        return {id_: own.get(id_, main) for id_ in subnets}

    def _running(self, filters: Filters) -> list[dict[str, Any]]:
        found = self._ask(
            "ec2:DescribeInstances",
            filters=filters | {"instance-state-name": ["pending", "running"]},
        )
        return [one for launched in found["Reservations"] for one in launched["Instances"]]


def _way_out(table: Mapping[str, Any]) -> str:
    """The target of the default route; empty without one, and where the target is gone."""
    for route in table.get("Routes", ()):
        if route.get("DestinationCidrBlock") == EVERYWHERE and route.get("State") != "blackhole":
            return next((str(v) for k, v in route.items() if k.endswith(("Id", "Arn"))), "")
    return ""


def _network(route: Mapping[str, Any]) -> str:
    """Target of a route to other networks; empty where it is another one."""
    gateway = route.get("GatewayId", "")
    targets = (route.get(key) for key in NETWORKS)
    return next(filter(None, targets), gateway if gateway.startswith("vgw-") else "")


def _entries(acl: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Entries of a network ACL about IPv4; the lowest number first."""
    entries = [one for one in acl["Entries"] if "CidrBlock" in one]
    return sorted(entries, key=lambda one: one["RuleNumber"])


def _acl_rule(id_: str, entry: Mapping[str, Any]) -> AclRule:
    ports = entry.get("PortRange", {})
    return AclRule(
        acl_id=id_,
        number=entry["RuleNumber"],
        egress=entry["Egress"],
        allows=entry["RuleAction"] == "allow",
        protocol=entry["Protocol"],
        ports=(ports.get("From", 0), ports.get("To", 65535)),
        cidr=entry["CidrBlock"],
    )


def tags_of(found: Mapping[str, Any]) -> dict[str, str]:
    """The tags of something as EC2 and FSx describe it."""
    return {tag["Key"]: tag["Value"] for tag in found.get("Tags", ())}


def tagged(me: Identity, *names: str) -> Filters:
    """Filters for what the stack has created, by logical names."""
    named = {"tag:trainyard:name": names} if names else {}
    return {"tag:trainyard:project": [me.project], "tag:trainyard:stack": [me.stack], **named}
