"""Invents the answers of AWS and of other stacks, where there is neither: every existing resource
that a stack names is found and sound, and every environment is deployed from its file in this
checkout.

A policy judges what the stack would create then. Whether the VPC, cluster or store really is sound,
`trainyard check --live` and the preview on the account say.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from trainyard.catalog import versions
from trainyard.plan import EnvironmentPlan, TeamPlan
from trainyard.plans.clusters import NETWORK_POLICY, ExistingClusterPlan
from trainyard.plans.networks import SERVICE_CIDRS, ExistingNetworkPlan
from trainyard.plans.stores import ExistingStorePlan

NOBODY = "000000000000"
"""The account, where the stack file names none."""
ROLE, GROUP, TABLE, NAT = "role/deployer", "sg-existing", "rtb-existing", "nat-existing"
NOT_THERE = "couldn't find resource"
"""Text of the AWS provider for an object that does not exist."""
AT = "@"
"""Between a file system and the zone of one of its interfaces."""
Answer = dict[str, Any]


class AsksAnAccount(Exception):
    """The program looks something up that has no answer here."""


class NotThere(Exception):
    """The look-up finds nothing."""


class InventedAccount:
    """The account of one stack, as its plan needs it."""

    def __init__(self, plan: EnvironmentPlan | TeamPlan) -> None:
        self._plan = plan
        self.id = min(plan.access.accounts, default=NOBODY)

    def look_up(self, token: str, arguments: Mapping[str, Any]) -> Answer:
        """The answer to a look-up. AsksAnAccount, NotThere."""
        return {**arguments, "region": "", "tags": {}, **self._answer(token)(arguments)}

    def read(self, kind: str, id_: str) -> Answer:
        """Properties of an existing resource, or outputs of another stack. Raises AsksAnAccount."""
        return self._answer(f"read:{kind}")({"id": id_})

    def _answer(self, token: str) -> Any:
        found = getattr(self, f"_{token.rpartition(':')[2]}", None)
        if found is None:
            raise AsksAnAccount(token)
        return found

    # ---- the caller

    def _getCallerIdentity(self, _: Answer) -> Answer:
        return {"id": self.id, "accountId": self.id, "arn": self._arn(), "userId": ""}

    def _getSessionContext(self, asked: Answer) -> Answer:
        return {"id": asked["arn"], "issuerArn": self._arn(), "issuerId": "", "issuerName": ""}

    def _getRole(self, asked: Answer) -> Answer:
        """Each role that enters the cluster is there."""
        return {"arn": f"arn:aws:iam::{self.id}:role/{asked['name']}"}

    def _arn(self) -> str:
        return f"arn:aws:iam::{self.id}:{ROLE}"

    # ---- a VPC: one range for each zone, as large as a subnet can be

    @property
    def _network(self) -> ExistingNetworkPlan:
        assert isinstance(self._plan, EnvironmentPlan)
        assert isinstance(self._plan.network, ExistingNetworkPlan)
        return self._plan.network

    def _range(self, zone: str) -> str:
        names = [each.name for each in self._network.zones]
        return f"10.{names.index(zone)}.0.0/16"

    def _getVpcs(self, _: Answer) -> Answer:
        return {"id": "", "ids": [self._network.vpc_id]}

    def _getVpc(self, _: Answer) -> Answer:
        ranges = [
            {"associationId": "", "cidrBlock": self._range(zone.name), "state": "associated"}
            for zone in self._network.zones
        ]
        dns = {"enableDnsSupport": True, "enableDnsHostnames": True}
        return {"id": self._network.vpc_id, "cidrBlockAssociations": ranges, **dns}

    def _getSubnets(self, _: Answer) -> Answer:
        return {"id": "", "ids": [zone.subnet_id for zone in self._network.zones]}

    def _getSubnet(self, asked: Answer) -> Answer:
        [zone] = [each for each in self._network.zones if each.subnet_id == asked["id"]]
        in_training = zone == self._network.training_zone
        return {
            "vpcId": self._network.vpc_id,
            "availabilityZone": zone.name,
            "availabilityZoneId": (in_training and self._network.zone_id) or f"id of {zone.name}",
            "cidrBlock": self._range(zone.name),
            "mapPublicIpOnLaunch": False,
        }

    def _getRouteTables(self, asked: Answer) -> Answer:
        main = any(each["name"] == "association.main" for each in asked["filters"])
        return {"id": "", "ids": [] if main else [TABLE]}

    def _getRouteTable(self, _: Answer) -> Answer:
        of = {"routeTableId": TABLE, "routeTableAssociationId": "", "gatewayId": "", "main": False}
        return {
            "id": TABLE,
            "routes": [{"cidrBlock": "0.0.0.0/0", "natGatewayId": NAT}],
            "associations": [{**of, "subnetId": zone.subnet_id} for zone in self._network.zones],
        }

    # ---- a cluster

    @property
    def _cluster(self) -> ExistingClusterPlan:
        assert isinstance(self._plan, EnvironmentPlan)
        assert isinstance(self._plan.cluster, ExistingClusterPlan)
        return self._plan.cluster

    def _getClusters(self, _: Answer) -> Answer:
        return {"id": "", "names": [self._cluster.name]}

    def _getCluster(self, _: Answer) -> Answer:
        plan = self._cluster
        vpc = {
            "clusterSecurityGroupId": GROUP,
            "vpcId": plan.vpc_id,
            "endpointPublicAccess": plan.public,
            "endpointPrivateAccess": True,
            "publicAccessCidrs": [],
        }
        reached = _reached(plan.name, self._plan.access.region, self.id)
        return {
            "id": plan.name,
            "arn": reached["arn"],
            "status": "ACTIVE",
            "version": plan.version,
            "endpoint": reached["endpoint"],
            "certificateAuthorities": [{"data": reached["certificate_authority"]}],
            "accessConfigs": [{"authenticationMode": "API"}],
            "kubernetesNetworkConfigs": [{"serviceIpv4Cidr": SERVICE_CIDRS[0], "ipFamily": "ipv4"}],
            "computeConfigs": [],
            "vpcConfig": vpc,
        }

    def _getAddon(self, asked: Answer) -> Answer:
        name = asked["addonName"]
        if name not in self._cluster.add_ons:
            raise NotThere
        return {
            "id": name,
            "addonVersion": versions.KUBERNETES[self._cluster.version].add_ons[name],
            "configurationValues": json.dumps({NETWORK_POLICY: "true"}),
        }

    def _getAccessEntry(self, _: Answer) -> Answer:
        return {"id": "", "type": "STANDARD"}

    # ---- file systems: their servers let everything in and out

    def _LustreFileSystem(self, asked: Answer) -> Answer:
        zone = self._zones_of(asked["id"])[0]
        [subnet] = [each.subnet_id for each in self._network.zones if each.name == zone]
        return {
            "dnsName": f"{asked['id']}.fsx",
            "mountName": "existing",
            "networkInterfaceIds": [f"{asked['id']}{AT}{zone}"],
            "subnetIds": subnet,
            "vpcId": self._network.vpc_id,
            "fileSystemTypeVersion": versions.LUSTRE,
        }

    def _zones_of(self, file_system: str) -> tuple[str, ...]:
        assert isinstance(self._plan, EnvironmentPlan)
        existing = [
            each for each in self._plan.stores.values() if isinstance(each, ExistingStorePlan)
        ]
        return next(each.zones for each in existing if each.file_system_id == file_system)

    def _getNetworkInterfaces(self, asked: Answer) -> Answer:
        """Interfaces of the EFS file system whose id is in a description."""
        [wanted] = asked["filters"]
        [id_] = [word for word in wanted["values"][0].split() if word.startswith("fs-")]
        return {"id": "", "ids": [f"{id_}{AT}{zone}" for zone in self._zones_of(id_)]}

    def _getNetworkInterface(self, asked: Answer) -> Answer:
        return {
            "availabilityZone": asked["id"].partition(AT)[2],
            "vpcId": self._network.vpc_id,
            "securityGroups": [GROUP],
        }

    def _getSecurityGroups(self, _: Answer) -> Answer:
        return {"id": "", "ids": [], "arns": [], "vpcIds": []}

    def _getSecurityGroupRules(self, _: Answer) -> Answer:
        return {"id": "", "ids": ["in", "out"]}

    def _getSecurityGroupRule(self, asked: Answer) -> Answer:
        every = {"ipProtocol": "-1", "fromPort": -1, "toPort": -1, "cidrIpv4": "0.0.0.0/0"}
        out = asked["securityGroupRuleId"] == "out"
        return {"id": "", "isEgress": out, "referencedSecurityGroupId": "", **every}

    # ---- a bucket: in the region of the stack

    def _getBucket(self, asked: Answer) -> Answer:
        return {"id": asked["bucket"], "bucketRegion": self._plan.access.region}

    # ---- other stacks

    def _StackReference(self, asked: Answer) -> Answer:
        name = asked["id"].rpartition("/")[2]
        plan, region = self._plan, self._plan.access.region
        contract: dict[str, Any] = {"cluster": _reached(name, region, self.id)}
        if isinstance(plan, TeamPlan):
            contract = {**plan.contract, **contract, "volumes": _volumes(plan)}
        outputs = {"contract": contract}
        return {"name": asked["id"], "outputs": outputs, "secretOutputNames": []}

    def _getParameter(self, asked: Answer) -> Answer:
        """The contract of a team that its environment lists."""
        assert isinstance(self._plan, TeamPlan)
        if asked["name"] != self._plan.parameter:
            raise AsksAnAccount(f"parameter {asked['name']}")
        at = _reached(self._plan.environment, self._plan.access.region, self.id)
        return {"insecureValue": json.dumps({**self._plan.contract, "cluster": at})}


def _reached(cluster: str, region: str, account: str) -> dict[str, str]:
    """Coordinates of a cluster, in the form of a contract."""
    return {
        "name": cluster,
        "arn": f"arn:aws:eks:{region}:{account}:cluster/{cluster}",
        "endpoint": "https://cluster",
        "certificate_authority": "",
    }


def _volumes(plan: TeamPlan) -> dict[str, Any]:
    """Volumes of the stores that the team mounts."""
    return {
        claim.store: {
            "handle": claim.store,
            "attributes": dict.fromkeys(claim.driver.attributes, claim.store),
        }
        for claim in plan.workspace.claims
    }
