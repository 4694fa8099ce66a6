"""Recorded AWS resources in CloudFormation's words, so that cfn-lint can judge them.

Most inputs have the name that CloudFormation gives them, but for the case of the first letter. What is
named or shaped otherwise is in the tables below; an input that is in no table and that
CloudFormation does not know fails the test.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from tests.support.cloudformation_s3 import BUCKETS
from tests.support.recording import Node
from trainyard.catalog.aws_types.table import AWS_TYPES

Properties = dict[str, Any]
ACCOUNT, REGION = "123456789012", "ap-northeast-2"
CLUSTER = "eks:index:Cluster"
TAGS_ELSEWHERE = {
    "AWS::EC2::SecurityGroupEgress",
    "AWS::EC2::SecurityGroupIngress",
    "AWS::IAM::InstanceProfile",
}
"""Types whose tags CloudFormation has no property for."""
TAGS_AS_MAP = {"AWS::EKS::Nodegroup", "AWS::SSM::Parameter"}
RENAMED: dict[str, dict[str, str]] = {
    "AWS::EC2::SecurityGroup": {"Name": "GroupName", "Description": "GroupDescription"},
    "AWS::EC2::SecurityGroupEgress": {
        "SecurityGroupId": "GroupId",
        "ReferencedSecurityGroupId": "DestinationSecurityGroupId",
        "CidrIpv4": "CidrIp",
    },
    "AWS::EC2::SecurityGroupIngress": {
        "SecurityGroupId": "GroupId",
        "ReferencedSecurityGroupId": "SourceSecurityGroupId",
        "CidrIpv4": "CidrIp",
    },
    "AWS::ECR::Repository": {"Name": "RepositoryName", "ForceDelete": "EmptyOnDelete"},
    "AWS::EFS::AccessPoint": {"Tags": "AccessPointTags"},
    "AWS::EFS::FileSystem": {"Tags": "FileSystemTags"},
    "AWS::EKS::Addon": {"ResolveConflictsOnCreate": "ResolveConflicts"},
    "AWS::EKS::Nodegroup": {
        "NodeGroupName": "NodegroupName",
        "NodeRoleArn": "NodeRole",
        "SubnetIds": "Subnets",
    },
    "AWS::IAM::InstanceProfile": {"Name": "InstanceProfileName", "Role": "Roles"},
    "AWS::IAM::Role": {"Name": "RoleName", "AssumeRolePolicy": "AssumeRolePolicyDocument"},
    "AWS::IAM::RolePolicy": {
        "Name": "PolicyName",
        "Role": "RoleName",
        "Policy": "PolicyDocument",
    },
    "AWS::Logs::LogGroup": {"Name": "LogGroupName"},
    "AWS::SNS::Subscription": {"Topic": "TopicArn"},
    "AWS::SNS::Topic": {"Name": "TopicName"},
    "AWS::SQS::Queue": {
        "Name": "QueueName",
        "MessageRetentionSeconds": "MessageRetentionPeriod",
    },
    "AWS::SSM::Parameter": {"InsecureValue": "Value"},
    "AWS::SQS::QueuePolicy": {"QueueUrl": "Queues", "Policy": "PolicyDocument"},
}
"""Type → input → property."""
ABSENT: dict[str, set[str]] = {
    "AWS::EC2::InternetGateway": {"VpcId"},
    "AWS::EC2::PlacementGroup": {"Name"},
    "AWS::EFS::FileSystem": {"CreationToken"},
    "AWS::EKS::Addon": {"ResolveConflictsOnUpdate"},
    "AWS::FSx::DataRepositoryAssociation": {"DeleteDataInFilesystem"},
}
"""Type → inputs that CloudFormation has no property for."""
SPELLED = {"transitionToIa": "TransitionToIA"}
"""Words that CloudFormation writes otherwise than in its own case."""
LISTS = {"Roles", "Queues"}
"""Properties that are lists where the input is one value."""
LUSTRE = {
    "AutomaticBackupRetentionDays",
    "DataCompressionType",
    "DeploymentType",
    "EfaEnabled",
    "MetadataConfiguration",
    "PerUnitStorageThroughput",
    "WeeklyMaintenanceStartTime",
}
"""Properties inside LustreConfiguration."""


def template(nodes: list[Node]) -> Properties:
    """A CloudFormation template with every resource of the list; those that are equal but for their
    tags are one."""
    resources: dict[str, Properties] = {}
    for node in nodes:
        kind, properties = resource(node)
        untagged = {key: value for key, value in properties.items() if "Tags" not in key}
        text = json.dumps([kind, untagged], sort_keys=True)
        digest = hashlib.sha256(text.encode()).hexdigest()[:8]
        name = re.sub(r"[\W_]", "", node.name.title()) + digest
        resources[name] = {"Type": kind, "Properties": properties}
    return {"AWSTemplateFormatVersion": "2010-09-09", "Resources": resources}


def resource(node: Node) -> tuple[str, Properties]:
    """CloudFormation's type and properties of one recorded resource."""
    kind = "AWS::EKS::Cluster" if node.kind == CLUSTER else AWS_TYPES[node.kind].cloudformation
    inputs = filled(node.inputs)
    special = SPECIAL.get(node.kind)
    return kind, special(inputs) if special else _properties(kind, inputs)


def _properties(kind: str, inputs: Properties) -> Properties:
    absent = ABSENT.get(kind, set()) | ({"Tags"} if kind in TAGS_ELSEWHERE else set())
    named = {_title(key): value for key, value in inputs.items() if _title(key) not in absent}
    if "Tags" in named and kind not in TAGS_AS_MAP:
        named["Tags"] = [{"Key": key, "Value": value} for key, value in named["Tags"].items()]
    for key in [key for key in named if key.startswith(("Policy", "AssumeRolePolicy", "Event"))]:
        named[key] = json.loads(named[key])
    renamed = {RENAMED.get(kind, {}).get(key, key): value for key, value in named.items()}
    return {
        key: [value] if key in LISTS else value if key in ("Tags", "Labels") else _titled(value)
        for key, value in renamed.items()
        if value is not None
    }


def _title(key: str) -> str:
    return SPELLED.get(key) or key[0].upper() + key[1:]


def _titled(value: Any) -> Any:
    """Keys inside an object, too; not those of an IAM document or of an event pattern."""
    if isinstance(value, dict) and not {"Statement", "source"} & value.keys():
        return {_title(key): _titled(inner) for key, inner in value.items()}
    return [_titled(one) for one in value] if isinstance(value, list) else value


def _target(inputs: Properties) -> Properties:
    target = {"Id": inputs["targetId"], "Arn": inputs["arn"]}
    pattern = {"source": ["aws.ec2"]}
    return {"Name": inputs["rule"], "EventPattern": pattern, "Targets": [target]}


def _attachment(inputs: Properties) -> Properties:
    trust = {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Effect": "Allow",
                "Principal": {"Service": "ec2.amazonaws.com"},
                "Action": "sts:AssumeRole",
            }
        ],
    }
    return {
        "RoleName": inputs["role"],
        "AssumeRolePolicyDocument": trust,
        "ManagedPolicyArns": [inputs["policyArn"]],
    }


def _association(inputs: Properties) -> Properties:
    policy = {
        "PolicyArn": inputs["policyArn"],
        "AccessScope": _titled(inputs["accessScope"]),
    }
    named = {_title(key): inputs[key] for key in ("clusterName", "principalArn")}
    return {**named, "AccessPolicies": [policy]}


def _lifecycle(inputs: Properties) -> Properties:
    """A property of its repository."""
    policy = {"LifecyclePolicyText": inputs["policy"]}
    return {"RepositoryName": inputs["repository"], "LifecyclePolicy": policy}


def _kept(inputs: Properties) -> Properties:
    """A property of its workspace."""
    return {"WorkspaceConfiguration": {"RetentionPeriodInDays": inputs["retentionPeriodInDays"]}}


def _budget(inputs: Properties) -> Properties:
    """Notifications stand beside the budget."""
    told = [
        {
            "Notification": {
                _title(key): value
                for key, value in each.items()
                if key != "subscriberEmailAddresses"
            },
            "Subscribers": [
                {"SubscriptionType": "EMAIL", "Address": address}
                for address in each["subscriberEmailAddresses"]
            ],
        }
        for each in inputs["notifications"]
    ]
    budget = {
        "BudgetName": inputs["name"],
        "BudgetType": inputs["budgetType"],
        "TimeUnit": inputs["timeUnit"],
        "BudgetLimit": {"Amount": float(inputs["limitAmount"]), "Unit": inputs["limitUnit"]},
        "CostFilters": {each["name"]: each["values"] for each in inputs["costFilters"]},
    }
    return {"Budget": budget, "NotificationsWithSubscribers": told}


def _lustre(inputs: Properties) -> Properties:
    named = _properties("AWS::FSx::FileSystem", inputs)
    return {
        "FileSystemType": "LUSTRE",
        **{key: value for key, value in named.items() if key not in LUSTRE},
        "SubnetIds": [named["SubnetIds"]],
        "LustreConfiguration": {key: value for key, value in named.items() if key in LUSTRE},
    }


def _launch_template(inputs: Properties) -> Properties:
    """Properties of an instance are inside LaunchTemplateData."""
    disks = [
        {
            "DeviceName": disk["deviceName"],
            "Ebs": {
                _title(key): value == "true" if value in ("true", "false") else value
                for key, value in disk["ebs"].items()
            },
        }
        for disk in inputs["blockDeviceMappings"]
    ]
    tags = [
        {"ResourceType": each["resourceType"], "Tags": _tag_list(each["tags"])}
        for each in inputs["tagSpecifications"]
    ]
    own = [{"ResourceType": "launch-template", "Tags": _tag_list(inputs["tags"])}]
    data = {
        "BlockDeviceMappings": disks,
        "MetadataOptions": _titled(inputs["metadataOptions"]),
        "TagSpecifications": tags,
    }
    return {
        "LaunchTemplateName": inputs["name"],
        "LaunchTemplateData": data,
        "TagSpecifications": own,
    }


def _flow_log(inputs: Properties) -> Properties:
    same = ("trafficType", "logDestinationType", "logDestination")
    return {
        **{_title(key): inputs[key] for key in same},
        "DeliverLogsPermissionArn": inputs["iamRoleArn"],
        "ResourceId": inputs["vpcId"],
        "ResourceType": "VPC",
        "Tags": _tag_list(inputs["tags"]),
    }


def _vault(inputs: Properties) -> Properties:
    """Deleting the backups first is the provider's."""
    return {"BackupVaultName": inputs["name"], "BackupVaultTags": inputs["tags"]}


def _backup_plan(inputs: Properties) -> Properties:
    rules = [
        {
            "RuleName": each["ruleName"],
            "TargetBackupVault": each["targetVaultName"],
            "ScheduleExpression": each["schedule"],
            "Lifecycle": {"DeleteAfterDays": each["lifecycle"]["deleteAfter"]},
            "RecoveryPointTags": each["recoveryPointTags"],
        }
        for each in inputs["rules"]
    ]
    plan = {"BackupPlanName": inputs["name"], "BackupPlanRule": rules}
    return {"BackupPlan": plan, "BackupPlanTags": inputs["tags"]}


def _selection(inputs: Properties) -> Properties:
    selected = {
        "SelectionName": inputs["name"],
        "IamRoleArn": inputs["iamRoleArn"],
        "Resources": inputs["resources"],
    }
    return {"BackupPlanId": inputs["planId"], "BackupSelection": selected}


def _tag_list(tags: dict[str, str]) -> list[Properties]:
    return [{"Key": key, "Value": value} for key, value in tags.items()]


def _cluster(inputs: Properties) -> Properties:
    """Properties that pulumi-eks makes of its inputs (nodejs/eks/cluster/cluster.ts,
    createCore)."""
    network = {
        "SubnetIds": [*inputs["publicSubnetIds"], *inputs["privateSubnetIds"]],
        "EndpointPrivateAccess": inputs["endpointPrivateAccess"],
        "EndpointPublicAccess": inputs["endpointPublicAccess"],
    }
    if inputs.get("publicAccessCidrs"):
        network["PublicAccessCidrs"] = inputs["publicAccessCidrs"]
    logs = [{"Type": each} for each in inputs["enabledClusterLogTypes"]]
    same = ("name", "version", "tags", "bootstrapSelfManagedAddons", "upgradePolicy")
    same += ("deletionProtection",)
    key = {"Resources": ["secrets"], "Provider": {"KeyArn": inputs.get("encryptionConfigKeyArn")}}
    return {
        **({"EncryptionConfig": [key]} if inputs.get("encryptionConfigKeyArn") else {}),
        **_properties("AWS::EKS::Cluster", {key: inputs[key] for key in same if key in inputs}),
        "RoleArn": f"arn:aws:iam::{ACCOUNT}:role/cluster-eksRole-role-0a1b2c3",
        "Logging": {"ClusterLogging": {"EnabledTypes": logs}},
        "ResourcesVpcConfig": network,
        "AccessConfig": {"AuthenticationMode": inputs["authenticationMode"]},
        "KubernetesNetworkConfig": {"ServiceIpv4Cidr": inputs["kubernetesServiceIpAddressRange"]},
    }


SPECIAL: Mapping[str, Callable[[Properties], Properties]] = {
    "aws:amp/workspaceConfiguration:WorkspaceConfiguration": _kept,
    "aws:backup/plan:Plan": _backup_plan,
    "aws:backup/selection:Selection": _selection,
    "aws:backup/vault:Vault": _vault,
    "aws:budgets/budget:Budget": _budget,
    "aws:cloudwatch/eventTarget:EventTarget": _target,
    "aws:ec2/flowLog:FlowLog": _flow_log,
    "aws:ec2/launchTemplate:LaunchTemplate": _launch_template,
    "aws:ecr/lifecyclePolicy:LifecyclePolicy": _lifecycle,
    "aws:efs/fileSystemPolicy:FileSystemPolicy": lambda inputs: {
        "FileSystemPolicy": json.loads(inputs["policy"])
    },
    "aws:eks/accessPolicyAssociation:AccessPolicyAssociation": _association,
    "aws:fsx/lustreFileSystem:LustreFileSystem": _lustre,
    "aws:iam/rolePolicyAttachment:RolePolicyAttachment": _attachment,
    CLUSTER: _cluster,
    **BUCKETS,
}
"""Types that CloudFormation shapes otherwise."""

IDS = {
    "vpcId": "vpc",
    "subnetId": "subnet",
    "subnetIds": "subnet",
    "publicSubnetIds": "subnet",
    "privateSubnetIds": "subnet",
    "securityGroupId": "sg",
    "referencedSecurityGroupId": "sg",
    "securityGroupIds": "sg",
    "securityGroups": "sg",
    "routeTableId": "rtb",
    "routeTableIds": "rtb",
    "gatewayId": "igw",
    "natGatewayId": "nat",
    "allocationId": "eipalloc",
    "fileSystemId": "fs",
}
"""Input → what the id that AWS gives begins with. The recording engine gives ids without a form."""


def filled(inputs: Properties) -> Properties:
    """The inputs with ids and ARNs as AWS gives them."""
    text = json.dumps({key: _identified(IDS.get(key), value) for key, value in inputs.items()})
    text = re.sub(r"arn:aws:iam:::(?!instance-profile)", f"arn:aws:iam::{ACCOUNT}:role/", text)
    text = re.sub(r"arn:aws:cloudwatch:::", f"arn:aws:events:{REGION}:{ACCOUNT}:rule/", text)
    text = re.sub(r"arn:aws:(sns|sqs):::", rf"arn:aws:\1:{REGION}:{ACCOUNT}:", text)
    text = text.replace("arn:aws:backup:::", f"arn:aws:backup:{REGION}:{ACCOUNT}:backup-vault:")
    text = re.sub(r"arn:aws:eks:::", f"arn:aws:eks:{REGION}:{ACCOUNT}:", text)
    text = re.sub(rf"(arn:aws:eks:{REGION}|arn:aws:iam:)::", rf"\1:{ACCOUNT}:", text)
    text = text.replace(
        '\\"aws:SourceAccount\\": \\"\\"', f'\\"aws:SourceAccount\\": \\"{ACCOUNT}\\"'
    )
    text = text.replace("https://sqs/", f"https://sqs.{REGION}.amazonaws.com/{ACCOUNT}/")
    return json.loads(text)


def _identified(prefix: str | None, value: Any) -> Any:
    if prefix is None:
        return value
    if isinstance(value, list):
        return [_identified(prefix, one) for one in value]
    return f"{prefix}-0{hashlib.sha256(str(value).encode()).hexdigest()[:16]}"
