"""Find an object in the account from the inputs that the program gives it: by its name or its tags.

Types that are not listed can be created twice with the same result, and end with what they belong to
(policies of queues and buckets, subscriptions of topics), so they need no finder.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

import boto3
from botocore.exceptions import ClientError

Inputs = dict[str, Any]
TAGS = ("trainyard:project", "trainyard:stack", "trainyard:name")
ABSENT = (
    "NotFound",
    "NoSuchEntity",
    "NoSuchBucket",
    "ResourceNotFound",
    "NonExistentQueue",
    "DoesNotExist",
)
UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
"""How Pulumi writes a value that is not known yet (pulumi 3.259, sdk/python/lib/pulumi/runtime/rpc.py)."""
CREATING, DELETING = ("creating", "pending", "updating"), "deleting"
DELETED = ("deleted", "delete_complete")


@dataclass(frozen=True, kw_only=True)
class ExistingObject:
    """An object that exists."""

    id: str
    """The id that `pulumi import` takes."""
    settled: bool = True
    """False while AWS is still creating it."""
    leaving: bool = False
    """True while AWS is still deleting it."""


def find(
    session: boto3.Session, kind: str, inputs: Inputs, held: Collection[str] = ()
) -> ExistingObject | None:
    """The object that the inputs describe; None where it does not exist, or leaves, or its type needs
    no finder. `held`: ids of other objects, which can have the same tags."""
    every = _every(session, kind, inputs)
    return next((it for it in every if not it.leaving and it.id not in held), None)


def leaves(session: boto3.Session, kind: str, inputs: Inputs, id_: str) -> bool:
    """Whether AWS is still deleting the object with this id, which the inputs describe."""
    return any(it.leaving and it.id == id_ for it in _every(session, kind, inputs))


def _every(session: boto3.Session, kind: str, inputs: Inputs) -> list[ExistingObject]:
    """What the inputs describe: one object, or several with the same tags."""
    finder = _FINDERS.get(kind)
    if finder is None or _unknown(inputs):
        return []
    try:
        found = finder(session, inputs)
    except ClientError as error:
        if any(word in error.response["Error"]["Code"] for word in ABSENT):
            return []
        raise
    return [it for it in (found if isinstance(found, list) else [found]) if it]


def _unknown(value: Any) -> bool:
    """Whether an input is not known yet; such an object cannot exist."""
    if isinstance(value, dict):
        return any(map(_unknown, value.values()))
    if isinstance(value, list):
        return any(map(_unknown, value))
    return value == UNKNOWN


def _state(id_: str, state: str) -> ExistingObject | None:
    now = state.lower()
    if now in DELETED:
        return None
    return ExistingObject(id=id_, settled=now not in CREATING, leaving=now == DELETING)


def _by_tags(
    call: str, items: str, key: str, argument: str = "Filters"
) -> Callable[..., list[ExistingObject | None]]:
    """A finder for EC2: by the tags for project, stack and logical name."""

    def finder(session: boto3.Session, inputs: Inputs) -> list[ExistingObject | None]:
        filters = [{"Name": f"tag:{tag}", "Values": [inputs["tags"][tag]]} for tag in TAGS]
        objects = getattr(session.client("ec2"), call)(**{argument: filters})[items]
        return [_state(item[key], str(item.get("State", "available"))) for item in objects]

    return finder


def _route(session: boto3.Session, inputs: Inputs) -> ExistingObject | None:
    table = session.client("ec2").describe_route_tables(RouteTableIds=[inputs["routeTableId"]])[
        "RouteTables"
    ][0]
    cidr = inputs["destinationCidrBlock"]
    exists = any(route.get("DestinationCidrBlock") == cidr for route in table["Routes"])
    return ExistingObject(id=f"{inputs['routeTableId']}_{cidr}") if exists else None


def _route_table_association(session: boto3.Session, inputs: Inputs) -> ExistingObject | None:
    table = session.client("ec2").describe_route_tables(RouteTableIds=[inputs["routeTableId"]])[
        "RouteTables"
    ][0]
    exists = any(a.get("SubnetId") == inputs["subnetId"] for a in table["Associations"])
    return ExistingObject(id=f"{inputs['subnetId']}/{inputs['routeTableId']}") if exists else None


def _role(session: boto3.Session, inputs: Inputs) -> ExistingObject | None:
    return ExistingObject(
        id=session.client("iam").get_role(RoleName=inputs["name"])["Role"]["RoleName"]
    )


def _instance_profile(session: boto3.Session, inputs: Inputs) -> ExistingObject | None:
    return ExistingObject(
        id=session.client("iam").get_instance_profile(InstanceProfileName=inputs["name"])[
            "InstanceProfile"
        ]["InstanceProfileName"]
    )


def _role_policy(session: boto3.Session, inputs: Inputs) -> ExistingObject | None:
    role, name = inputs["role"], inputs["name"]
    session.client("iam").get_role_policy(RoleName=role, PolicyName=name)
    return ExistingObject(id=f"{role}:{name}")


def _attached_policy(session: boto3.Session, inputs: Inputs) -> ExistingObject | None:
    role, arn = inputs["role"], inputs["policyArn"]
    pages = session.client("iam").get_paginator("list_attached_role_policies")
    attached = (each for page in pages.paginate(RoleName=role) for each in page["AttachedPolicies"])
    found = any(each["PolicyArn"] == arn for each in attached)
    return ExistingObject(id=f"{role}/{arn}") if found else None


def _event_rule(session: boto3.Session, inputs: Inputs) -> ExistingObject | None:
    return ExistingObject(id=session.client("events").describe_rule(Name=inputs["name"])["Name"])


def _event_target(session: boto3.Session, inputs: Inputs) -> ExistingObject | None:
    rule, target = inputs["rule"], inputs["targetId"]
    targets = session.client("events").list_targets_by_rule(Rule=rule)["Targets"]
    found = any(each["Id"] == target for each in targets)
    return ExistingObject(id=f"{rule}/{target}") if found else None


def _topic(session: boto3.Session, inputs: Inputs) -> ExistingObject | None:
    region, account = session.region_name, session.client("sts").get_caller_identity()["Account"]
    partition = session.get_partition_for_region(region)
    arn = f"arn:{partition}:sns:{region}:{account}:{inputs['name']}"
    session.client("sns").get_topic_attributes(TopicArn=arn)
    return ExistingObject(id=arn)


def _workspace(session: boto3.Session, inputs: Inputs) -> ExistingObject | None:
    """By its name, which is the stack's own: AWS lists those whose names begin with it."""
    for page in (
        session.client("amp").get_paginator("list_workspaces").paginate(alias=inputs["alias"])
    ):
        for one in page["workspaces"]:
            if one["alias"] == inputs["alias"]:
                return _state(one["workspaceId"], one["status"]["statusCode"])
    return None


def _budget(session: boto3.Session, inputs: Inputs) -> ExistingObject | None:
    account, name = session.client("sts").get_caller_identity()["Account"], inputs["name"]
    session.client("budgets").describe_budget(AccountId=account, BudgetName=name)
    return ExistingObject(id=f"{account}:{name}")


def _queue(session: boto3.Session, inputs: Inputs) -> ExistingObject | None:
    return ExistingObject(
        id=session.client("sqs").get_queue_url(QueueName=inputs["name"])["QueueUrl"]
    )


def _cluster(session: boto3.Session, inputs: Inputs) -> ExistingObject | None:
    cluster = session.client("eks").describe_cluster(name=inputs["name"])["cluster"]
    return _state(cluster["name"], cluster["status"])


def _node_group(session: boto3.Session, inputs: Inputs) -> ExistingObject | None:
    cluster, name = inputs["clusterName"], inputs["nodeGroupName"]
    answer = session.client("eks").describe_nodegroup(clusterName=cluster, nodegroupName=name)
    return _state(f"{cluster}:{name}", answer["nodegroup"]["status"])


def _add_on(session: boto3.Session, inputs: Inputs) -> ExistingObject | None:
    cluster, name = inputs["clusterName"], inputs["addonName"]
    answer = session.client("eks").describe_addon(clusterName=cluster, addonName=name)
    return _state(f"{cluster}:{name}", answer["addon"]["status"])


def _access_entry(session: boto3.Session, inputs: Inputs) -> ExistingObject | None:
    cluster, principal = inputs["clusterName"], inputs["principalArn"]
    session.client("eks").describe_access_entry(clusterName=cluster, principalArn=principal)
    return ExistingObject(id=f"{cluster}:{principal}")


def _pod_identity(session: boto3.Session, inputs: Inputs) -> ExistingObject | None:
    cluster = inputs["clusterName"]
    associations = session.client("eks").list_pod_identity_associations(
        clusterName=cluster, namespace=inputs["namespace"], serviceAccount=inputs["serviceAccount"]
    )["associations"]
    return (
        ExistingObject(id=f"{cluster},{associations[0]['associationId']}") if associations else None
    )


def _of_fsx(call: str, items: str, key: str) -> Callable[..., list[ExistingObject | None]]:
    """A finder for FSx: by the tags for project, stack and logical name."""

    def finder(session: boto3.Session, inputs: Inputs) -> list[ExistingObject | None]:
        describe, token = getattr(session.client("fsx"), call), {}
        found: list[ExistingObject | None] = []
        while True:
            page = describe(**token)
            for item in page[items]:
                tags = {tag["Key"]: tag["Value"] for tag in item.get("Tags", [])}
                if all(tags.get(tag) == inputs["tags"][tag] for tag in TAGS):
                    found.append(_state(item[key], item["Lifecycle"]))
            if not (following := page.get("NextToken")):
                return found
            token = {"NextToken": following}

    return finder


def _efs(session: boto3.Session, inputs: Inputs) -> ExistingObject | None:
    answer = session.client("efs").describe_file_systems(CreationToken=inputs["creationToken"])
    if not answer["FileSystems"]:
        return None
    file_system = answer["FileSystems"][0]
    return _state(file_system["FileSystemId"], file_system["LifeCycleState"])


def _mount_target(session: boto3.Session, inputs: Inputs) -> ExistingObject | None:
    for target in session.client("efs").describe_mount_targets(FileSystemId=inputs["fileSystemId"])[
        "MountTargets"
    ]:
        if target["SubnetId"] == inputs["subnetId"]:
            return _state(target["MountTargetId"], target["LifeCycleState"])
    return None


def _access_point(session: boto3.Session, inputs: Inputs) -> ExistingObject | None:
    pages = session.client("efs").get_paginator("describe_access_points")
    for page in pages.paginate(FileSystemId=inputs["fileSystemId"]):
        for point in page["AccessPoints"]:
            if point["RootDirectory"]["Path"] == inputs["rootDirectory"]["path"]:
                return _state(point["AccessPointId"], point["LifeCycleState"])
    return None


def _log_group(session: boto3.Session, inputs: Inputs) -> ExistingObject | None:
    """Also one that EKS has made by that name."""
    pages = session.client("logs").get_paginator("describe_log_groups")
    for page in pages.paginate(logGroupNamePrefix=inputs["name"]):
        for group in page["logGroups"]:
            if group["logGroupName"] == inputs["name"]:
                return ExistingObject(id=inputs["name"])
    return None


def _repository(session: boto3.Session, inputs: Inputs) -> ExistingObject | None:
    session.client("ecr").describe_repositories(repositoryNames=[inputs["name"]])
    return ExistingObject(id=inputs["name"])


def _parameter(session: boto3.Session, inputs: Inputs) -> ExistingObject | None:
    session.client("ssm").get_parameter(Name=inputs["name"])
    return ExistingObject(id=inputs["name"])


def _bucket(session: boto3.Session, inputs: Inputs) -> ExistingObject | None:
    session.client("s3").get_bucket_location(Bucket=inputs["bucket"])
    return ExistingObject(id=inputs["bucket"])


def unwanted_egress_rules(session: boto3.Session, kind: str, id_: str) -> list[str]:
    """The ids of the egress rules that AWS adds to a new security group. The provider removes them
    after it has created the group; a killed provider has not. Rules with tags belong to a user."""
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


def remove_unwanted_egress_rules(session: boto3.Session, kind: str, id_: str) -> None:
    """Remove the unwanted egress rules."""
    if rules := unwanted_egress_rules(session, kind, id_):
        session.client("ec2").revoke_security_group_egress(GroupId=id_, SecurityGroupRuleIds=rules)


_Found = ExistingObject | list[ExistingObject | None] | None
_FINDERS: dict[str, Callable[[boto3.Session, Inputs], _Found]] = {
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
    "aws:ec2/flowLog:FlowLog": _by_tags("describe_flow_logs", "FlowLogs", "FlowLogId", "Filter"),
    "aws:ec2/launchTemplate:LaunchTemplate": _by_tags(
        "describe_launch_templates", "LaunchTemplates", "LaunchTemplateId"
    ),
    "aws:ec2/placementGroup:PlacementGroup": _by_tags(
        "describe_placement_groups", "PlacementGroups", "GroupName"
    ),
    "aws:ssm/parameter:Parameter": _parameter,
    "aws:cloudwatch/logGroup:LogGroup": _log_group,
    "aws:ec2/route:Route": _route,
    "aws:ec2/routeTableAssociation:RouteTableAssociation": _route_table_association,
    "aws:iam/role:Role": _role,
    "aws:iam/instanceProfile:InstanceProfile": _instance_profile,
    "aws:iam/rolePolicy:RolePolicy": _role_policy,
    "aws:iam/rolePolicyAttachment:RolePolicyAttachment": _attached_policy,
    "aws:cloudwatch/eventRule:EventRule": _event_rule,
    "aws:cloudwatch/eventTarget:EventTarget": _event_target,
    "aws:amp/workspace:Workspace": _workspace,
    "aws:budgets/budget:Budget": _budget,
    "aws:sns/topic:Topic": _topic,
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
    "aws:efs/accessPoint:AccessPoint": _access_point,
    "aws:ecr/repository:Repository": _repository,
    "aws:s3/bucket:Bucket": _bucket,
}
