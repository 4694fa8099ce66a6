"""An existing VPC, as the AWS provider's look-ups answer for it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.support.stackfile import Edit, at

VPC = "vpc-0123456789abcdef0"
SUBNETS = {
    "ap-northeast-2a": "subnet-0123456789abcdefa",
    "ap-northeast-2c": "subnet-0123456789abcdefc",
}
TABLE, NAT = "rtb-0123456789abcdef0", "nat-0123456789abcdef0"
ACCOUNT = "111122223333"
REGION = "ap-northeast-2"
NETWORK: dict[str, Any] = {"vpc_id": VPC, "private_subnets": SUBNETS}
EXISTING_VPC: Edit = at("network", NETWORK)
"""An edit that makes a stack use this VPC."""


@dataclass
class ExistingVpc:
    """The VPC; a test changes what it tells."""

    exists: bool = True
    vpc: dict[str, Any] = field(default_factory=dict)
    """Outputs of getVpc that differ from those of a sound one."""
    subnets: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Subnet → outputs of getSubnet that differ."""
    missing: tuple[str, ...] = ()
    """Subnets that do not exist."""
    route: dict[str, str] = field(default_factory=lambda: {"natGatewayId": NAT})
    """Target of the default route; nothing for none."""
    by_name: bool = True
    """The route table is associated with the subnets; else it is the main one."""
    asked: list[str] = field(default_factory=list)

    def __call__(self, token: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """The answer to a look-up; KeyError for any that is not about this VPC."""
        name = token.rpartition(":")[2]
        self.asked.append(name)
        return {**arguments, "region": "", "tags": {}, **getattr(self, f"_{name}")(arguments)}

    def _getCallerIdentity(self, arguments: dict[str, Any]) -> dict[str, Any]:
        return {"id": ACCOUNT, "accountId": ACCOUNT, "arn": "", "userId": ""}

    def _getRole(self, arguments: dict[str, Any]) -> dict[str, Any]:
        return {"arn": ""}

    def _getBucket(self, arguments: dict[str, Any]) -> dict[str, Any]:
        return {"id": arguments["bucket"], "bucketRegion": REGION}

    def _getVpcs(self, arguments: dict[str, Any]) -> dict[str, Any]:
        assert arguments["filters"] == [{"name": "vpc-id", "values": [VPC]}]
        return {"id": "", "ids": [VPC] if self.exists else []}

    def _getVpc(self, arguments: dict[str, Any]) -> dict[str, Any]:
        ranges = [{"associationId": "", "cidrBlock": "10.20.0.0/16", "state": "associated"}]
        dns = {"enableDnsSupport": True, "enableDnsHostnames": True}
        told = {"id": VPC, "ownerId": ACCOUNT, "cidrBlockAssociations": ranges}
        return {**told, **dns, **self.vpc}

    def _getSubnets(self, arguments: dict[str, Any]) -> dict[str, Any]:
        [only] = arguments["filters"]
        assert only["name"] == "subnet-id"
        return {"id": "", "ids": [id_ for id_ in only["values"] if id_ not in self.missing]}

    def _getSubnet(self, arguments: dict[str, Any]) -> dict[str, Any]:
        id_ = arguments["id"]
        [zone] = [zone for zone, subnet in SUBNETS.items() if subnet == id_]
        return {
            "vpcId": VPC,
            "availabilityZone": zone,
            "availabilityZoneId": {"a": "apne2-az1", "c": "apne2-az3"}[zone[-1]],
            "cidrBlock": f"10.20.{16 * (ord(zone[-1]) - ord('a'))}.0/20",
            "mapPublicIpOnLaunch": False,
            **self.subnets.get(id_, {}),
        }

    def _getRouteTables(self, arguments: dict[str, Any]) -> dict[str, Any]:
        [only] = arguments["filters"]
        named = only["name"] == "association.subnet-id"
        return {"id": "", "ids": [TABLE] if named == self.by_name else []}

    def _getRouteTable(self, arguments: dict[str, Any]) -> dict[str, Any]:
        route = {"cidrBlock": "0.0.0.0/0", **self.route}
        of = {"routeTableId": TABLE, "routeTableAssociationId": "", "gatewayId": ""}
        named = [{**of, "subnetId": subnet, "main": False} for subnet in SUBNETS.values()]
        return {
            "id": TABLE,
            "routes": [route] if self.route else [],
            "associations": named if self.by_name else [{**of, "subnetId": "", "main": True}],
        }
