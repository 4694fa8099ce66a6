"""Existing file systems, as the AWS provider answers for them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.support.existing_vpc import SUBNETS, VPC, ExistingVpc
from tests.support.stackfile import Edit, at

LUSTRE, EFS = "fs-0123456789abcdef1", "fs-0123456789abcdef2"
GROUP = "sg-0123456789abcdef0"
RANGE = "10.20.0.0/16"
ZONE = "ap-northeast-2a"
STORES: dict[str, Any] = {
    "scratch": {"lustre": {"file_system_id": LUSTRE}},
    "home": {"efs": {"file_system_id": EFS}},
}
EXISTING_STORES: Edit = at("storage", STORES)
"""An edit that makes a stack use both existing file systems."""


def rule(ports: tuple[int, int], *, egress: bool = False, **changes: Any) -> dict[str, Any]:
    """A rule for TCP ports of the whole VPC."""
    return {
        "isEgress": egress,
        "ipProtocol": "tcp",
        "fromPort": ports[0],
        "toPort": ports[1],
        "cidrIpv4": RANGE,
        "referencedSecurityGroupId": "",
        **changes,
    }


def _open() -> dict[str, dict[str, Any]]:
    every = rule((-1, -1), egress=True, ipProtocol="-1", cidrIpv4="0.0.0.0/0")
    return {
        "sgr-1": rule((988, 988)),
        "sgr-2": rule((1018, 1023)),
        "sgr-3": rule((2049, 2049)),
        "sgr-4": every,
    }


@dataclass
class ExistingStores(ExistingVpc):
    """The VPC and the file systems in it; a test changes what they tell."""

    lustre: dict[str, Any] = field(default_factory=dict)
    """Outputs of the read Lustre file system that differ."""
    interfaces: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Interface → outputs of getNetworkInterface that differ."""
    targets: tuple[str, ...] = ("eni-home",)
    """Interfaces of EFS mount targets."""
    rules: dict[str, dict[str, Any]] = field(default_factory=_open)
    """Of the group of both file systems."""
    nodes: tuple[str, ...] = ()
    """Ids of the nodes' group: none before the first update."""

    def _LustreFileSystem(self, arguments: dict[str, Any]) -> dict[str, Any]:
        return {
            "dnsName": f"{LUSTRE}.fsx",
            "mountName": "existing1",
            "networkInterfaceIds": ["eni-scratch"],
            "subnetIds": SUBNETS[ZONE],
            "vpcId": VPC,
            "fileSystemTypeVersion": "2.15",
            **self.lustre,
        }

    def _getNetworkInterfaces(self, arguments: dict[str, Any]) -> dict[str, Any]:
        assert arguments["filters"] == [
            {"name": "description", "values": [f"EFS mount target for {EFS} (*"]}
        ]
        return {"id": "", "ids": [*self.targets]}

    def _getNetworkInterface(self, arguments: dict[str, Any]) -> dict[str, Any]:
        told = {"availabilityZone": ZONE, "vpcId": VPC, "securityGroups": [GROUP]}
        return {**told, **self.interfaces.get(arguments["id"], {})}

    def _getSecurityGroups(self, arguments: dict[str, Any]) -> dict[str, Any]:
        names = {one["name"] for one in arguments["filters"]}
        assert names == {"group-name", "vpc-id"}
        return {"id": "", "ids": [*self.nodes], "arns": [], "vpcIds": []}

    def _getSecurityGroupRules(self, arguments: dict[str, Any]) -> dict[str, Any]:
        assert arguments["filters"] == [{"name": "group-id", "values": [GROUP]}]
        return {"id": "", "ids": [*self.rules]}

    def _getSecurityGroupRule(self, arguments: dict[str, Any]) -> dict[str, Any]:
        return {"id": "", **self.rules[arguments["securityGroupRuleId"]]}
