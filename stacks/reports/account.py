"""The questions that `make check LIVE=1` asks an AWS account. They read and never write; AWS's policy
ReadOnlyAccess answers all of them. Those about stores: account_stores.py. What the answers mean:
preflight.py."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from typing import Any

from catalog.endpoints import S3, service_name
from catalog.instances import ADDRESS_QUOTA, QUOTAS
from plans.cluster_faults import AddOnFound, ClusterFound
from plans.parts import Identity
from plans.policies import same_role
from plans.vpc_faults import EVERYWHERE, SubnetFound, VpcFound
from stacks.derive.capacity import TYPES
from stacks.reports.account_stores import StoreQuestions
from stacks.reports.caller import TIMEOUTS, Filters, NotAnswered

OWN_ADDRESS = "https://checkip.amazonaws.com"
_AMIS = "/aws/service/eks/optimized-ami/{kubernetes}/amazon-linux-2023/x86_64/{variant}"
"""Folder of AWS's public parameters about EKS's AMIs (EKS user guide, retrieve-ami-id)."""


class Account(StoreQuestions):
    """The account that the AWS provider would work in. Each method is a question."""

    def caller_arn(self) -> str:
        """The ARN of the caller; NotAssumed where AWS refuses a role of the stack file."""
        return self._ask("sts:GetCallerIdentity")["Arn"]

    def own_address(self) -> str:
        """The public IPv4 address of this machine, as AWS sees it. Whatever stands for AWS's services
        (AWS_ENDPOINT_URL) is asked instead of this one, too."""
        from botocore.awsrequest import AWSRequest
        from botocore.exceptions import HTTPClientError
        from botocore.httpsession import URLLib3Session

        aws = self._clients["sts"].meta.endpoint_url
        url = OWN_ADDRESS if ".amazonaws." in aws else f"{aws}/checkip"
        try:
            asked = AWSRequest(method="GET", url=url).prepare()
            answer = URLLib3Session(timeout=TIMEOUTS["read_timeout"]).send(asked)
            return str(ipaddress.IPv4Address(answer.text.strip()))
        except (HTTPClientError, ValueError) as error:
            raise NotAnswered(f"{url}: {type(error).__name__}") from error

    def has_cluster(self, name: str) -> bool:
        return bool(self._ask("eks:DescribeCluster", unless="ResourceNotFound", name=name))

    def cluster(self, name: str, add_ons: Sequence[str], caller: str) -> ClusterFound | None:
        """A cluster with those of the add-ons that it has; None where there is none."""
        answer = self._ask("eks:DescribeCluster", unless="ResourceNotFound", name=name)
        if not answer:
            return None
        found, vpc = answer["cluster"], answer["cluster"]["resourcesVpcConfig"]
        entries = self._ask("eks:ListAccessEntries", clusterName=name)
        mine = [entry for entry in entries["accessEntries"] if same_role(entry, caller)]
        return ClusterFound(
            status=found["status"],
            version=found["version"],
            authentication_mode=found["accessConfig"]["authenticationMode"],
            vpc_id=vpc["vpcId"],
            public=vpc["endpointPublicAccess"],
            private=vpc["endpointPrivateAccess"],
            public_ranges=tuple(vpc.get("publicAccessCidrs", ())),
            add_ons={one: it for one in add_ons if (it := self._add_on(name, one))},
            caller=mine[0] if mine else caller,
            caller_enters=bool(mine),
        )

    def _add_on(self, cluster: str, name: str) -> AddOnFound | None:
        answer = self._ask(
            "eks:DescribeAddon", unless="ResourceNotFound", clusterName=cluster, addonName=name
        )
        found = answer.get("addon")
        return found and AddOnFound(
            version=found["addonVersion"],
            configuration=found.get("configurationValues") or "",
            tags=found.get("tags", {}),
        )

    def access_policies(self, cluster: str, principal: str) -> list[str]:
        """ARNs of the access policies that hold for the whole cluster."""
        call = "eks:ListAssociatedAccessPolicies"
        found = self._ask(call, clusterName=cluster, principalArn=principal)
        every = found["associatedAccessPolicies"]
        return [one["policyArn"] for one in every if one["accessScope"]["type"] == "cluster"]

    def karpenter_nodes(self, cluster: str) -> list[dict[str, str]]:
        """The tags of each running node that some Karpenter has launched for the cluster."""
        filters: Filters = {
            "tag-key": ["karpenter.sh/nodepool"],
            f"tag:kubernetes.io/cluster/{cluster}": ["owned"],
        }
        return [{t["Key"]: t["Value"] for t in one["Tags"]} for one in self._running(filters)]

    def has_role(self, name: str) -> bool:
        return bool(self._ask("iam:GetRole", unless="NoSuchEntity", RoleName=name))

    def has_policy(self, arn: str) -> bool:
        return bool(self._ask("iam:GetPolicy", unless="NoSuchEntity", PolicyArn=arn))

    def has_entry(self, cluster: str, role: str) -> bool:
        """Whether the role may enter the cluster."""
        return bool(
            self._ask(
                "eks:DescribeAccessEntry",
                unless="ResourceNotFound",
                clusterName=cluster,
                principalArn=role,
            )
        )

    def add_on_builds(self, kubernetes: str, name: str) -> list[str]:
        """The builds of an add-on that EKS offers for a minor release of Kubernetes."""
        found = self._ask(
            "eks:DescribeAddonVersions",
            unless="ResourceNotFound",
            kubernetesVersion=kubernetes,
            addonName=name,
        )
        add_ons = found.get("addons", ())
        return [build["addonVersion"] for one in add_ons for build in one["addonVersions"]]

    def has_ami(self, kubernetes: str, variant: str, release: str) -> bool:
        """Whether the region has EKS's AMI of a release: v20261012. `variant`: standard or nvidia."""
        image = f"amazon-eks-node-al2023-x86_64-{variant}-{kubernetes}-{release}"
        name = f"{_AMIS.format(kubernetes=kubernetes, variant=variant)}/{image}/image_id"
        return bool(self._ask("ssm:GetParameter", unless="ParameterNotFound", Name=name))

    def recommended_ami(self, kubernetes: str, variant: str) -> str:
        """Release of the AMI that EKS recommends, such as 1.35.8-20261012."""
        at = f"{_AMIS.format(kubernetes=kubernetes, variant=variant)}/recommended/release_version"
        return self._ask("ssm:GetParameter", Name=at)["Parameter"]["Value"]

    def zones(self) -> dict[str, str]:
        """Name → id of the zones that are available."""
        found = self._ask("ec2:DescribeAvailabilityZones")["AvailabilityZones"]
        return {zone["ZoneName"]: zone["ZoneId"] for zone in found if zone["State"] == "available"}

    def offers(self, types: Sequence[str]) -> dict[str, list[str]]:
        """Instance type → names of the zones that have it."""
        found = self._ask(
            "ec2:DescribeInstanceTypeOfferings",
            LocationType="availability-zone",
            filters={"instance-type": types},
        )["InstanceTypeOfferings"]
        return {
            kind: [one["Location"] for one in found if one["InstanceType"] == kind]
            for kind in types
        }

    def quota(self, me: Identity, node_group: str, code: str) -> tuple[float, int]:
        """vCPUs, and how many of them others than this stack take with On-Demand instances of the
        catalogue's types."""
        quota = self._ask("servicequotas:GetServiceQuota", ServiceCode="ec2", QuotaCode=code)[
            "Quota"
        ]["Value"]
        if code not in QUOTAS.values():
            return quota, 0
        types: Filters = {
            "instance-type": [kind.name for kind in TYPES.values() if QUOTAS[kind.quota] == code]
        }
        group: Filters = {"tag:eks:nodegroup-name": [node_group]}
        return quota, self._vcpus(types) - self._vcpus(types | _tags(me)) - self._vcpus(
            types | group
        )

    def reservation(self, id_: str) -> dict[str, Any]:
        """As EC2 describes it; empty where it knows none."""
        found = self._ask(
            "ec2:DescribeCapacityReservations",
            unless="InvalidCapacityReservationId",
            CapacityReservationIds=[id_],
        )
        return next(iter(found.get("CapacityReservations", ())), {})

    def key(self, arn: str) -> dict[str, Any]:
        """As KMS describes the key; empty where it knows none."""
        found = self._ask("kms:DescribeKey", unless="NotFound", KeyId=arn)
        return found.get("KeyMetadata", {})

    def key_policy(self, arn: str) -> str:
        """The policy of a key, as JSON; empty where KMS knows no such key."""
        found = self._ask("kms:GetKeyPolicy", unless="NotFound", KeyId=arn, PolicyName="default")
        return found.get("Policy", "")

    def secret(self, name: str) -> dict[str, Any]:
        """As Secrets Manager describes the secret, without its value; empty where it knows none."""
        return self._ask("secretsmanager:DescribeSecret", unless="ResourceNotFound", SecretId=name)

    def addresses(
        self, me: Identity, subnet: str, node_pools: Sequence[str]
    ) -> tuple[int | None, int]:
        """Free ones of a subnet, None where there is none yet; and how many nodes of the NodePools
        run. `subnet`: its id, or the logical name of one that the stack makes."""
        at: Filters = {"subnet-id": [subnet]} if subnet.startswith("subnet-") else _tags(me, subnet)
        found = self._ask("ec2:DescribeSubnets", filters=at)["Subnets"]
        nodes = self._running(_tags(me, *(f"{name}-node" for name in node_pools)))
        return (found[0]["AvailableIpAddressCount"] if found else None), len(nodes)

    def public_addresses(self, me: Identity) -> tuple[float, int]:
        """How many the region gives the account, and how many of them others than this stack have."""
        quota = self._ask(
            "servicequotas:GetServiceQuota", ServiceCode="ec2", QuotaCode=ADDRESS_QUOTA
        )["Quota"]["Value"]
        every, own = (
            self._ask("ec2:DescribeAddresses", filters=filters)["Addresses"]
            for filters in ({}, _tags(me))
        )
        return quota, len(every) - len(own)

    def vpc(self, id_: str, subnets: Sequence[str]) -> VpcFound | None:
        """A VPC with those of the subnets that exist; None where the region has no such VPC."""
        vpcs = self._ask("ec2:DescribeVpcs", filters={"vpc-id": [id_]})["Vpcs"]
        if not vpcs:
            return None
        tables = self._route_tables(id_, subnets)
        known = self._ask("ec2:DescribeSubnets", filters={"subnet-id": subnets})["Subnets"]
        return VpcFound(
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

    def group_ids(self, vpc: str, name: str) -> tuple[str, ...]:
        """Ids of the security groups with that name."""
        asked: Filters = {"vpc-id": [vpc], "group-name": [name]}
        found = self._ask("ec2:DescribeSecurityGroups", filters=asked)["SecurityGroups"]
        return tuple(one["GroupId"] for one in found)

    def without_s3(self, vpc: str, subnets: Sequence[str]) -> list[str]:
        """Those of the subnets whose route table has no gateway endpoint for S3."""
        filters: Filters = {
            "vpc-id": [vpc],
            "service-name": [service_name(self._access.region, S3)],
            "vpc-endpoint-type": ["Gateway"],
        }
        found = self._ask("ec2:DescribeVpcEndpoints", filters=filters)["VpcEndpoints"]
        served = {table for one in found for table in one["RouteTableIds"]}
        tables = self._route_tables(vpc, subnets)
        return [id_ for id_ in subnets if (tables[id_] or {}).get("RouteTableId") not in served]

    def endpoint_apis(self, vpc: str) -> set[str]:
        """APIs that an interface endpoint of the VPC gives their own names to."""
        filters: Filters = {"vpc-id": [vpc], "vpc-endpoint-type": ["Interface"]}
        found = self._ask("ec2:DescribeVpcEndpoints", filters=filters)["VpcEndpoints"]
        start = service_name(self._access.region, "")
        return {
            one["ServiceName"].removeprefix(start) for one in found if one.get("PrivateDnsEnabled")
        }

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

    def _vcpus(self, filters: Filters) -> int:
        return sum(
            TYPES[one["InstanceType"]].vcpus
            for one in self._running(filters)
            if "InstanceLifecycle" not in one
        )

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


def _tags(me: Identity, *names: str) -> Filters:
    """Filters for what the stack has created, by logical names."""
    named = {"tag:trainyard:name": names} if names else {}
    return {"tag:trainyard:project": [me.project], "tag:trainyard:stack": [me.stack], **named}
