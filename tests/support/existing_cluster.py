"""An existing cluster in an existing VPC, as the AWS provider's look-ups answer
for both."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.support.existing_vpc import ACCOUNT, NETWORK, VPC, ExistingVpc
from tests.support.stackfile import Edit, at, without

NAME = "research"
ROLE = f"arn:aws:iam::{ACCOUNT}:role/teams/deployer"
SERVICES = "10.96.0.0/16"
GROUP = "sg-of-research"
BUILDS = {
    "vpc-cni": "v1.20.1-eksbuild.1",
    "kube-proxy": "v1.34.6-eksbuild.1",
    "coredns": "v1.13.2-eksbuild.4",
    "eks-pod-identity-agent": "v1.3.8-eksbuild.2",
}
"""Add-ons that the cluster has."""
CLUSTER: dict[str, Any] = {
    "name": NAME,
    "version": "1.35",
    "existing_add_ons": ["eks-pod-identity-agent"],
}
IN_CLUSTER: tuple[Edit, ...] = (
    at("network", NETWORK),
    without("cluster.public_access_cidrs"),
    without("cluster.log_retention_days"),
    *(at(f"cluster.{key}", value) for key, value in CLUSTER.items()),
)
"""Edits that make a stack use this cluster, in its VPC."""
NOT_THERE = "couldn't find resource"


class Failed(Exception):
    """Answer of the provider in the place of an object."""


@dataclass
class ExistingCluster(ExistingVpc):
    """The cluster and its VPC; a test changes what they tell."""

    names: tuple[str, ...] = (NAME, "other")
    cluster: dict[str, Any] = field(default_factory=dict)
    """Outputs of getCluster that differ from those of a sound one."""
    place: dict[str, Any] = field(default_factory=dict)
    """Outputs of its vpcConfig that differ."""
    builds: dict[str, str] = field(default_factory=lambda: dict(BUILDS))
    tags: dict[str, dict[str, str]] = field(default_factory=dict)
    """Add-on → its tags."""
    configuration: dict[str, str] = field(default_factory=dict)
    """Add-on → its configuration."""
    admits: tuple[str, ...] = (ROLE,)

    def __call__(self, token: str, arguments: dict[str, Any]) -> Any:
        try:
            return super().__call__(token, arguments)
        except Failed as failure:
            return {}, [("", str(failure))]

    def _getCallerIdentity(self, arguments: dict[str, Any]) -> dict[str, Any]:
        session = f"arn:aws:sts::{ACCOUNT}:assumed-role/deployer/me"
        return super()._getCallerIdentity(arguments) | {"arn": session}

    def _getSessionContext(self, arguments: dict[str, Any]) -> dict[str, Any]:
        return {"id": arguments["arn"], "issuerArn": ROLE, "issuerId": "", "issuerName": ""}

    def _getClusters(self, arguments: dict[str, Any]) -> dict[str, Any]:
        return {"id": "", "names": [*self.names]}

    def _getCluster(self, arguments: dict[str, Any]) -> dict[str, Any]:
        assert arguments["name"] == NAME
        vpc = {
            "clusterSecurityGroupId": GROUP,
            "vpcId": VPC,
            "endpointPublicAccess": True,
            "endpointPrivateAccess": True,
            "publicAccessCidrs": ["203.0.113.7/32"],
            **self.place,
        }
        return {
            "id": NAME,
            "arn": f"arn:aws:eks:ap-northeast-2:{ACCOUNT}:cluster/{NAME}",
            "status": "ACTIVE",
            "version": "1.35",
            "endpoint": "https://research",
            "certificateAuthorities": [{"data": "Y2E="}],
            "accessConfigs": [{"authenticationMode": "API"}],
            "kubernetesNetworkConfigs": [{"serviceIpv4Cidr": SERVICES, "ipFamily": "ipv4"}],
            "computeConfigs": [{"enabled": False, "nodePools": [], "nodeRoleArn": ""}],
            "vpcConfig": vpc,
            **self.cluster,
        }

    def _getAddon(self, arguments: dict[str, Any]) -> Any:
        name = arguments["addonName"]
        if name not in self.builds:
            raise Failed(f"reading EKS Add-On ({NAME}:{name}): {NOT_THERE}")
        return {
            "id": f"{NAME}:{name}",
            "addonVersion": self.builds[name],
            "configurationValues": self.configuration.get(name, ""),
            "tags": self.tags.get(name, {}),
        }

    def _getAccessEntry(self, arguments: dict[str, Any]) -> Any:
        principal = arguments["principalArn"]
        if principal not in self.admits:
            raise Failed(f"reading EKS Access Entry ({NAME}:{principal}): {NOT_THERE}")
        return {"id": "", "type": "STANDARD"}
