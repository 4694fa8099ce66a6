"""How to find an object in the account from what the program wants it to be: by its name, or by its
tags.

A type that is not listed is one that AWS lets us create again with the same result (policy
attachments, queue and role policies, event rules and targets), so nothing has to be found.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import boto3
from botocore.exceptions import ClientError
from pulumi.runtime.rpc import UNKNOWN

Inputs = dict[str, Any]
TAGS = ("trainyard:project", "trainyard:stack", "trainyard:name")
ABSENT = ("NotFound", "NoSuchEntity", "ResourceNotFound", "NonExistentQueue", "DoesNotExist")
MAKING, GONE = ("creating", "pending", "updating"), ("deleting", "deleted", "delete_complete")


@dataclass(frozen=True, kw_only=True)
class Found:
    """An object that exists."""

    id: str
    """As `pulumi import` wants it."""
    settled: bool = True
    """False while AWS is still making it."""


def find(session: boto3.Session, kind: str, inputs: Inputs) -> Found | None:
    """The object that the inputs describe, or None where there is none (or nothing needs
    finding)."""
    finder = _FINDERS.get(kind)
    if finder is None or _unknown(inputs):
        return None
    try:
        return finder(session, inputs)
    except ClientError as error:
        if any(word in error.response["Error"]["Code"] for word in ABSENT):
            return None
        raise


def _unknown(value: Any) -> bool:
    """Whether an input will only be known later; such an object cannot exist yet."""
    if isinstance(value, dict):
        return any(map(_unknown, value.values()))
    if isinstance(value, list):
        return any(map(_unknown, value))
    return value == UNKNOWN


def _state(found: str, state: str) -> Found | None:
    return None if state.lower() in GONE else Found(id=found, settled=state.lower() not in MAKING)


def _by_tags(
    call: str, items: str, key: str, argument: str = "Filters"
) -> Callable[..., Found | None]:
    """For EC2: the object that carries project, stack and logical name."""

    def finder(session: boto3.Session, inputs: Inputs) -> Found | None:
        filters = [{"Name": f"tag:{tag}", "Values": [inputs["tags"][tag]]} for tag in TAGS]
        found = getattr(session.client("ec2"), call)(**{argument: filters})[items]
        alive = [item for item in found if item.get("State", "available") not in GONE]
        return _state(alive[0][key], str(alive[0].get("State", "available"))) if alive else None

    return finder


def _route(session: boto3.Session, inputs: Inputs) -> Found | None:
    table = session.client("ec2").describe_route_tables(RouteTableIds=[inputs["routeTableId"]])[
        "RouteTables"
    ][0]
    cidr = inputs["destinationCidrBlock"]
    exists = any(route.get("DestinationCidrBlock") == cidr for route in table["Routes"])
    return Found(id=f"{inputs['routeTableId']}_{cidr}") if exists else None


def _route_table_association(session: boto3.Session, inputs: Inputs) -> Found | None:
    table = session.client("ec2").describe_route_tables(RouteTableIds=[inputs["routeTableId"]])[
        "RouteTables"
    ][0]
    exists = any(a.get("SubnetId") == inputs["subnetId"] for a in table["Associations"])
    return Found(id=f"{inputs['subnetId']}/{inputs['routeTableId']}") if exists else None


def _role(session: boto3.Session, inputs: Inputs) -> Found | None:
    return Found(id=session.client("iam").get_role(RoleName=inputs["name"])["Role"]["RoleName"])


def _instance_profile(session: boto3.Session, inputs: Inputs) -> Found | None:
    return Found(
        id=session.client("iam").get_instance_profile(InstanceProfileName=inputs["name"])[
            "InstanceProfile"
        ]["InstanceProfileName"]
    )


def _queue(session: boto3.Session, inputs: Inputs) -> Found | None:
    return Found(id=session.client("sqs").get_queue_url(QueueName=inputs["name"])["QueueUrl"])


def _cluster(session: boto3.Session, inputs: Inputs) -> Found | None:
    made = session.client("eks").describe_cluster(name=inputs["name"])["cluster"]
    return _state(made["name"], made["status"])


def _node_group(session: boto3.Session, inputs: Inputs) -> Found | None:
    cluster, name = inputs["clusterName"], inputs["nodeGroupName"]
    made = session.client("eks").describe_nodegroup(clusterName=cluster, nodegroupName=name)[
        "nodegroup"
    ]
    return _state(f"{cluster}:{name}", made["status"])


def _add_on(session: boto3.Session, inputs: Inputs) -> Found | None:
    cluster, name = inputs["clusterName"], inputs["addonName"]
    made = session.client("eks").describe_addon(clusterName=cluster, addonName=name)["addon"]
    return _state(f"{cluster}:{name}", made["status"])


def _access_entry(session: boto3.Session, inputs: Inputs) -> Found | None:
    cluster, principal = inputs["clusterName"], inputs["principalArn"]
    session.client("eks").describe_access_entry(clusterName=cluster, principalArn=principal)
    return Found(id=f"{cluster}:{principal}")


def _pod_identity(session: boto3.Session, inputs: Inputs) -> Found | None:
    cluster = inputs["clusterName"]
    made = session.client("eks").list_pod_identity_associations(
        clusterName=cluster, namespace=inputs["namespace"], serviceAccount=inputs["serviceAccount"]
    )["associations"]
    return Found(id=f"{cluster},{made[0]['associationId']}") if made else None


def _of_fsx(call: str, items: str, key: str) -> Callable[..., Found | None]:
    """For FSx: the object that carries project, stack and logical name, and is not on its way
    out."""

    def finder(session: boto3.Session, inputs: Inputs) -> Found | None:
        asked, token = getattr(session.client("fsx"), call), {}
        while True:
            page = asked(**token)
            for found in page[items]:
                tags = {tag["Key"]: tag["Value"] for tag in found.get("Tags", [])}
                if (
                    all(tags.get(tag) == inputs["tags"][tag] for tag in TAGS)
                    and found["Lifecycle"] != "DELETING"
                ):
                    return _state(found[key], found["Lifecycle"])
            if not (following := page.get("NextToken")):
                return None
            token = {"NextToken": following}

    return finder


def _efs(session: boto3.Session, inputs: Inputs) -> Found | None:
    made = session.client("efs").describe_file_systems(CreationToken=inputs["creationToken"])[
        "FileSystems"
    ]
    return _state(made[0]["FileSystemId"], made[0]["LifeCycleState"]) if made else None


def _mount_target(session: boto3.Session, inputs: Inputs) -> Found | None:
    for target in session.client("efs").describe_mount_targets(FileSystemId=inputs["fileSystemId"])[
        "MountTargets"
    ]:
        if target["SubnetId"] == inputs["subnetId"]:
            return _state(target["MountTargetId"], target["LifeCycleState"])
    return None


def _repository(session: boto3.Session, inputs: Inputs) -> Found | None:
    session.client("ecr").describe_repositories(repositoryNames=[inputs["name"]])
    return Found(id=inputs["name"])


def unfinished(session: boto3.Session, kind: str, id_: str) -> list[str]:
    """What the provider removes after the create call and a killed one has not: the ids of the
    egress rules that AWS gives every new security group. Rules that carry tags are somebody's."""
    if kind != "aws:ec2/securityGroup:SecurityGroup":
        return []
    rules = session.client("ec2").describe_security_group_rules(
        Filters=[{"Name": "group-id", "Values": [id_]}]
    )["SecurityGroupRules"]
    return [
        rule["SecurityGroupRuleId"]
        for rule in rules
        if rule["IsEgress"]
        and not rule.get("Tags")
        and (rule["IpProtocol"], rule.get("CidrIpv4")) == ("-1", "0.0.0.0/0")
    ]


def finish(session: boto3.Session, kind: str, id_: str) -> None:
    """Remove what is `unfinished`."""
    if given := unfinished(session, kind, id_):
        session.client("ec2").revoke_security_group_egress(GroupId=id_, SecurityGroupRuleIds=given)


_FINDERS: dict[str, Callable[[boto3.Session, Inputs], Found | None]] = {
    "aws:ec2/vpc:Vpc": _by_tags("describe_vpcs", "Vpcs", "VpcId"),
    "aws:ec2/subnet:Subnet": _by_tags("describe_subnets", "Subnets", "SubnetId"),
    "aws:ec2/internetGateway:InternetGateway": _by_tags(
        "describe_internet_gateways", "InternetGateways", "InternetGatewayId"
    ),
    "aws:ec2/eip:Eip": _by_tags("describe_addresses", "Addresses", "AllocationId"),
    "aws:ec2/natGateway:NatGateway": _by_tags(
        "describe_nat_gateways", "NatGateways", "NatGatewayId", "Filter"
    ),
    "aws:ec2/routeTable:RouteTable": _by_tags(
        "describe_route_tables", "RouteTables", "RouteTableId"
    ),
    "aws:ec2/vpcEndpoint:VpcEndpoint": _by_tags(
        "describe_vpc_endpoints", "VpcEndpoints", "VpcEndpointId"
    ),
    "aws:ec2/securityGroup:SecurityGroup": _by_tags(
        "describe_security_groups", "SecurityGroups", "GroupId"
    ),
    "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule": _by_tags(
        "describe_security_group_rules", "SecurityGroupRules", "SecurityGroupRuleId"
    ),
    "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule": _by_tags(
        "describe_security_group_rules", "SecurityGroupRules", "SecurityGroupRuleId"
    ),
    "aws:ec2/route:Route": _route,
    "aws:ec2/routeTableAssociation:RouteTableAssociation": _route_table_association,
    "aws:iam/role:Role": _role,
    "aws:iam/instanceProfile:InstanceProfile": _instance_profile,
    "aws:sqs/queue:Queue": _queue,
    "aws:eks/cluster:Cluster": _cluster,
    "aws:eks/nodeGroup:NodeGroup": _node_group,
    "aws:eks/addon:Addon": _add_on,
    "aws:eks/accessEntry:AccessEntry": _access_entry,
    "aws:eks/podIdentityAssociation:PodIdentityAssociation": _pod_identity,
    "aws:fsx/lustreFileSystem:LustreFileSystem": _of_fsx(
        "describe_file_systems", "FileSystems", "FileSystemId"
    ),
    "aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation": _of_fsx(
        "describe_data_repository_associations", "Associations", "AssociationId"
    ),
    "aws:efs/fileSystem:FileSystem": _efs,
    "aws:efs/mountTarget:MountTarget": _mount_target,
    "aws:ecr/repository:Repository": _repository,
}
