"""Which calls of AWS a resource type needs: those of CloudFormation's own handlers, and what
Terraform's provider calls beside them.

permissions.json has the handlers' lists as AWS publishes them. They come with cfn-lint, which only
development installs: `python -m trainyard.catalog.aws.permissions > trainyard/catalog/aws/permissions.json`; a test compares.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from trainyard import command_line

FILE = Path(__file__).with_name("permissions.json")
HANDLERS = ("create", "read", "update", "delete")
READS = re.compile(r"[a-z0-9-]+:(Describe|Get|List|View)")

CLOUDFORMATION = {
    "aws:amp/workspace:Workspace": "AWS::APS::Workspace",
    "aws:amp/workspaceConfiguration:WorkspaceConfiguration": "AWS::APS::Workspace",
    "aws:budgets/budget:Budget": "AWS::Budgets::Budget",
    "aws:cloudwatch/eventRule:EventRule": "AWS::Events::Rule",
    "aws:cloudwatch/eventTarget:EventTarget": "AWS::Events::Rule",
    "aws:cloudwatch/logGroup:LogGroup": "AWS::Logs::LogGroup",
    "aws:ec2/eip:Eip": "AWS::EC2::EIP",
    "aws:ec2/flowLog:FlowLog": "AWS::EC2::FlowLog",
    "aws:ec2/internetGateway:InternetGateway": "AWS::EC2::InternetGateway",
    "aws:ec2/launchTemplate:LaunchTemplate": "AWS::EC2::LaunchTemplate",
    "aws:ec2/natGateway:NatGateway": "AWS::EC2::NatGateway",
    "aws:ec2/placementGroup:PlacementGroup": "AWS::EC2::PlacementGroup",
    "aws:ec2/route:Route": "AWS::EC2::Route",
    "aws:ec2/routeTable:RouteTable": "AWS::EC2::RouteTable",
    "aws:ec2/routeTableAssociation:RouteTableAssociation": "AWS::EC2::SubnetRouteTableAssociation",
    "aws:ec2/securityGroup:SecurityGroup": "AWS::EC2::SecurityGroup",
    "aws:ec2/subnet:Subnet": "AWS::EC2::Subnet",
    "aws:ec2/vpc:Vpc": "AWS::EC2::VPC",
    "aws:ec2/vpcEndpoint:VpcEndpoint": "AWS::EC2::VPCEndpoint",
    "aws:ecr/lifecyclePolicy:LifecyclePolicy": "AWS::ECR::Repository",
    "aws:ecr/repository:Repository": "AWS::ECR::Repository",
    "aws:efs/accessPoint:AccessPoint": "AWS::EFS::AccessPoint",
    "aws:efs/fileSystem:FileSystem": "AWS::EFS::FileSystem",
    "aws:efs/fileSystemPolicy:FileSystemPolicy": "AWS::EFS::FileSystem",
    "aws:efs/mountTarget:MountTarget": "AWS::EFS::MountTarget",
    "aws:eks/accessEntry:AccessEntry": "AWS::EKS::AccessEntry",
    "aws:eks/accessPolicyAssociation:AccessPolicyAssociation": "AWS::EKS::AccessEntry",
    "aws:eks/addon:Addon": "AWS::EKS::Addon",
    "aws:eks/cluster:Cluster": "AWS::EKS::Cluster",
    "aws:eks/nodeGroup:NodeGroup": "AWS::EKS::Nodegroup",
    "aws:eks/podIdentityAssociation:PodIdentityAssociation": "AWS::EKS::PodIdentityAssociation",
    "aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation": (
        "AWS::FSx::DataRepositoryAssociation"
    ),
    "aws:fsx/lustreFileSystem:LustreFileSystem": "AWS::FSx::FileSystem",
    "aws:iam/instanceProfile:InstanceProfile": "AWS::IAM::InstanceProfile",
    "aws:iam/role:Role": "AWS::IAM::Role",
    "aws:iam/rolePolicy:RolePolicy": "AWS::IAM::RolePolicy",
    "aws:iam/rolePolicyAttachment:RolePolicyAttachment": "AWS::IAM::Role",
    "aws:s3/bucket:Bucket": "AWS::S3::Bucket",
    "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration": "AWS::S3::Bucket",
    "aws:s3/bucketPolicy:BucketPolicy": "AWS::S3::BucketPolicy",
    "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock": "AWS::S3::Bucket",
    "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration": (
        "AWS::S3::Bucket"
    ),
    "aws:s3/bucketVersioning:BucketVersioning": "AWS::S3::Bucket",
    "aws:sns/topic:Topic": "AWS::SNS::Topic",
    "aws:sns/topicSubscription:TopicSubscription": "AWS::SNS::Subscription",
    "aws:sqs/queue:Queue": "AWS::SQS::Queue",
    "aws:sqs/queuePolicy:QueuePolicy": "AWS::SQS::QueuePolicy",
    "aws:ssm/parameter:Parameter": "AWS::SSM::Parameter",
    "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule": "AWS::EC2::SecurityGroupEgress",
    "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule": "AWS::EC2::SecurityGroupIngress",
}
"""Pulumi's resource type → CloudFormation's."""

_INTERFACES = "ec2:DescribeNetworkInterfaces ec2:DetachNetworkInterface ec2:DeleteNetworkInterface"
_FSX = "fsx:DescribeFileSystems fsx:ListTagsForResource"
_RULE = {
    "create": "ec2:CreateTags",
    "update": "ec2:ModifySecurityGroupRules ec2:CreateTags ec2:DeleteTags",
}
BESIDE: dict[str, dict[str, str]] = {
    # CloudFormation's handlers call for what no workspace of this program has: AWS's Alertmanager, and
    # deliveries of logs.
    "aws:amp/workspace:Workspace": {
        "create": "aps:CreateWorkspace aps:TagResource",
        "read": "aps:DescribeWorkspace aps:ListTagsForResource aps:ListWorkspaces",
        "update": "aps:UpdateWorkspaceAlias aps:TagResource aps:UntagResource",
        "delete": "aps:DeleteWorkspace",
    },
    # Its deletion leaves the workspace as it is.
    "aws:amp/workspaceConfiguration:WorkspaceConfiguration": {
        "create": "aps:UpdateWorkspaceConfiguration",
        "read": "aps:DescribeWorkspaceConfiguration",
        "update": "aps:UpdateWorkspaceConfiguration",
    },
    "aws:budgets/budget:Budget": {
        "create": "budgets:ModifyBudget budgets:TagResource",
        "read": "budgets:ViewBudget budgets:ListTagsForResource",
        "update": "budgets:ModifyBudget budgets:TagResource budgets:UntagResource",
        "delete": "budgets:ModifyBudget",
    },
    # CloudFormation's handlers call for what no group of this program has: policies, transformers,
    # deliveries to S3.
    "aws:cloudwatch/logGroup:LogGroup": {
        "create": "logs:AssociateKmsKey logs:CreateLogGroup logs:PutRetentionPolicy logs:TagResource",
        "read": "logs:DescribeLogGroups logs:ListTagsForResource",
        "update": "logs:AssociateKmsKey logs:DisassociateKmsKey logs:PutRetentionPolicy"
        " logs:TagResource logs:UntagResource",
        "delete": "logs:DeleteLogGroup",
    },
    "aws:ec2/flowLog:FlowLog": {
        "create": "ec2:CreateFlowLogs ec2:CreateTags iam:PassRole",
        "read": "ec2:DescribeFlowLogs",
        "update": "ec2:CreateTags ec2:DeleteTags",
        "delete": "ec2:DeleteFlowLogs",
    },
    "aws:ec2/eip:Eip": {"read": "ec2:DescribeAddressesAttribute"},
    "aws:ec2/internetGateway:InternetGateway": {
        "create": "ec2:AttachInternetGateway",
        "update": "ec2:AttachInternetGateway ec2:DetachInternetGateway",
        "delete": "ec2:DetachInternetGateway",
    },
    "aws:ec2/routeTable:RouteTable": {"delete": "ec2:DisassociateRouteTable"},
    # Deleting either looks for interfaces that a service has left behind in it.
    "aws:ec2/securityGroup:SecurityGroup": {"delete": _INTERFACES},
    "aws:ec2/subnet:Subnet": {"delete": _INTERFACES},
    "aws:ec2/vpc:Vpc": {"read": "ec2:DescribeRouteTables"},
    # For the private names of an interface endpoint (Service Authorization Reference, CreateVpcEndpoint,
    # dependent actions). Terraform's provider reads its interfaces.
    "aws:ec2/vpcEndpoint:VpcEndpoint": {
        "create": "route53:AssociateVPCWithHostedZone",
        "read": "ec2:DescribePrefixLists ec2:DescribeNetworkInterfaces",
    },
    "aws:ec2/launchTemplate:LaunchTemplate": {
        "read": "ec2:DescribeLaunchTemplateVersions",
        "update": "ec2:ModifyLaunchTemplate",
    },
    "aws:ecr/lifecyclePolicy:LifecyclePolicy": {
        "create": "ecr:PutLifecyclePolicy",
        "read": "ecr:GetLifecyclePolicy",
        "update": "ecr:PutLifecyclePolicy",
        "delete": "ecr:DeleteLifecyclePolicy",
    },
    "aws:efs/fileSystem:FileSystem": {"read": "elasticfilesystem:ListTagsForResource"},
    # EFS makes the interface as the caller (EFS API, CreateMountTarget, DeleteMountTarget).
    "aws:efs/mountTarget:MountTarget": {
        "create": "ec2:DescribeSubnets ec2:DescribeNetworkInterfaces ec2:CreateNetworkInterface",
        "update": "ec2:ModifyNetworkInterfaceAttribute",
        "delete": "ec2:DeleteNetworkInterface",
    },
    "aws:eks/accessEntry:AccessEntry": {"read": "eks:ListTagsForResource"},
    "aws:eks/addon:Addon": {"read": "eks:DescribeAddonVersions eks:ListTagsForResource"},
    "aws:eks/cluster:Cluster": {
        "read": "eks:ListTagsForResource",
        "update": "eks:AssociateEncryptionConfig",
    },
    "aws:eks/nodeGroup:NodeGroup": {"read": "eks:ListTagsForResource"},
    "aws:eks/podIdentityAssociation:PodIdentityAssociation": {
        "read": "eks:ListPodIdentityAssociations eks:ListTagsForResource"
    },
    "aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation": {
        "read": "fsx:ListTagsForResource"
    },
    # CloudFormation's schema of the file system names no calls (FSx user guide,
    # using-service-linked-roles and setting-up-for-FSx-Lustre).
    "aws:fsx/lustreFileSystem:LustreFileSystem": {
        "create": "fsx:CreateFileSystem fsx:CreateFileSystemFromBackup fsx:TagResource iam:CreateServiceLinkedRole"
        " ec2:DescribeSubnets ec2:DescribeVpcs ec2:DescribeSecurityGroups ec2:DescribeRouteTables"
        " ec2:DescribeNetworkInterfaces",
        "read": _FSX,
        "update": f"fsx:UpdateFileSystem fsx:TagResource fsx:UntagResource {_FSX}",
        "delete": f"fsx:DeleteFileSystem {_FSX}",
    },
    "aws:iam/instanceProfile:InstanceProfile": {
        "create": "iam:TagInstanceProfile",
        "read": "iam:ListInstanceProfileTags",
        "update": "iam:TagInstanceProfile iam:UntagInstanceProfile",
    },
    "aws:iam/role:Role": {
        "read": "iam:ListRoleTags",
        "delete": "iam:ListInstanceProfilesForRole iam:RemoveRoleFromInstanceProfile",
    },
    "aws:iam/rolePolicyAttachment:RolePolicyAttachment": {
        "create": "iam:AttachRolePolicy",
        "read": "iam:ListAttachedRolePolicies",
        "delete": "iam:DetachRolePolicy",
    },
    # What Terraform's provider reads of every bucket (internal/service/s3/bucket.go); with
    # force_destroy it lists and deletes the objects.
    "aws:s3/bucket:Bucket": {
        "create": "s3:CreateBucket s3:PutBucketTagging",
        "read": "s3:GetAccelerateConfiguration s3:GetBucketAcl s3:GetBucketCORS"
        " s3:GetBucketLocation s3:GetBucketLogging s3:GetBucketObjectLockConfiguration"
        " s3:GetBucketRequestPayment s3:GetBucketTagging s3:GetBucketVersioning"
        " s3:GetBucketWebsite s3:GetReplicationConfiguration s3:ListBucket",
        "update": "s3:PutBucketTagging",
        "delete": "s3:DeleteBucket s3:DeleteObject s3:DeleteObjectVersion s3:ListBucketVersions",
    },
    "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration": {
        "create": "s3:PutLifecycleConfiguration",
        "read": "s3:GetLifecycleConfiguration",
        "update": "s3:PutLifecycleConfiguration",
        "delete": "s3:PutLifecycleConfiguration",
    },
    "aws:efs/fileSystemPolicy:FileSystemPolicy": {
        "create": "elasticfilesystem:PutFileSystemPolicy",
        "read": "elasticfilesystem:DescribeFileSystemPolicy",
        "update": "elasticfilesystem:PutFileSystemPolicy",
        "delete": "elasticfilesystem:DeleteFileSystemPolicy",
    },
    "aws:s3/bucketPolicy:BucketPolicy": {
        "create": "s3:PutBucketPolicy",
        "read": "s3:GetBucketPolicy",
        "update": "s3:PutBucketPolicy",
        "delete": "s3:DeleteBucketPolicy",
    },
    "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock": {
        "create": "s3:PutBucketPublicAccessBlock",
        "read": "s3:GetBucketPublicAccessBlock",
        "update": "s3:PutBucketPublicAccessBlock",
        "delete": "s3:PutBucketPublicAccessBlock",
    },
    "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration": {
        "create": "s3:PutEncryptionConfiguration",
        "read": "s3:GetEncryptionConfiguration",
        "update": "s3:PutEncryptionConfiguration",
        "delete": "s3:PutEncryptionConfiguration",
    },
    "aws:s3/bucketVersioning:BucketVersioning": {
        "create": "s3:PutBucketVersioning",
        "read": "s3:GetBucketVersioning",
        "update": "s3:PutBucketVersioning",
        "delete": "s3:PutBucketVersioning",
    },
    "aws:sqs/queue:Queue": {"read": "sqs:GetQueueUrl"},
    "aws:sqs/queuePolicy:QueuePolicy": {"read": "sqs:GetQueueAttributes"},
    "aws:ssm/parameter:Parameter": {"read": "ssm:DescribeParameters ssm:GetParameter"},
    "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule": _RULE,
    "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule": _RULE,
}
"""Calls that Terraform's provider makes beside those of CloudFormation's handlers, by handler."""

UNUSED = re.compile(
    r"vpc-lattice:|sns:\w*DataProtectionPolicy|vpce:|ec2:AcceptAddressTransfer|ec2:ModifyVpcTenancy|ec2:\w*VpnGateways?"
    r"|ec2:\w*VpcEncryptionControls?|ec2:\w*PrivateNatGatewayAddress|ec2:\w*SubnetCidrBlock"
    r"|ec2:DescribeKeyPairs|elasticfilesystem:\w*Replication\w*|elasticfilesystem:DeleteTags"
    r"|\w+:\w*PermissionsBoundary|eks:ActivateCertificateAuthority|events:.*\bPassRole"
)
"""Calls of handlers for what no resource of this program has: lattices, VPN gateways, replication,
address transfers, private NAT, IPv6, key pairs, encryption controls, SNS's data protection and boundaries."""
OWN_LISTS = {
    "aws:amp/workspace:Workspace",
    "aws:amp/workspaceConfiguration:WorkspaceConfiguration",
    "aws:budgets/budget:Budget",
    "aws:cloudwatch/logGroup:LogGroup",
    "aws:ec2/flowLog:FlowLog",
    "aws:ecr/lifecyclePolicy:LifecyclePolicy",
    "aws:efs/fileSystemPolicy:FileSystemPolicy",
    "aws:iam/rolePolicyAttachment:RolePolicyAttachment",
    "aws:s3/bucket:Bucket",
    "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration",
    "aws:s3/bucketPolicy:BucketPolicy",
    "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock",
    "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration",
    "aws:s3/bucketVersioning:BucketVersioning",
}
"""Types that BESIDE covers wholly: CloudFormation has them as a property of another type, or its
handlers call for what no bucket, log group, flow log or workspace of this program has, such as
replication and inventories."""

QUESTIONS = (
    "ec2:DescribeAddresses",
    "ec2:DescribeAvailabilityZones",
    "ec2:DescribeCapacityReservations",
    "ec2:DescribeImages",
    "ec2:DescribeInstanceTypeOfferings",
    "ec2:DescribeInstances",
    "ec2:DescribeRouteTables",
    "ec2:DescribeSubnets",
    "ec2:DescribeVpcAttribute",
    "ec2:DescribeVpcEndpointServices",
    "ec2:DescribeVpcEndpoints",
    "ec2:DescribeVpcs",
    "eks:DescribeAccessEntry",
    "eks:DescribeAddonVersions",
    "eks:DescribeCluster",
    "iam:GetRole",
    "s3:GetBucketPolicyStatus",
    "s3:GetBucketVersioning",
    "servicequotas:GetServiceQuota",
    "ssm:GetParameter",
)
"""What `trainyard check --live` and `trainyard due --live` ask the account, besides sts:GetCallerIdentity,
which everybody may."""

CLUSTER_QUESTIONS = (
    "ec2:DescribeInstances",
    "eks:DescribeAccessEntry",
    "eks:DescribeAddon",
    "eks:DescribeCluster",
    "eks:ListAccessEntries",
    "eks:ListAssociatedAccessPolicies",
    "eks:ListClusters",
)
"""What a preview and `trainyard check --live` ask about a cluster that is brought."""

COPY_QUESTIONS = ("ecr:DescribePullThroughCacheRules",)
"""What `trainyard check --live` asks where images come from copies, besides the copies. It takes no resource
(Service Authorization Reference)."""
VPC_QUESTIONS = (
    "ec2:DescribeDhcpOptions",
    "ec2:DescribeNetworkAcls",
    "ec2:DescribeSecurityGroupRules",
)
"""What `trainyard check --live` asks about a VPC that is brought, beside QUESTIONS."""

_SERVERS = (
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSecurityGroupRules",
    "ec2:DescribeSecurityGroups",
)
STORE_QUESTIONS = {
    "lustre": ("fsx:DescribeFileSystems", "cloudwatch:GetMetricData", *_SERVERS),
    "efs": ("elasticfilesystem:DescribeFileSystems", *_SERVERS),
}
"""Kind of a file system that is brought → what a preview and `trainyard check --live` ask about it."""

BUCKET_QUESTIONS = ("s3:GetBucketPolicyStatus", "s3:GetEncryptionConfiguration", "s3:ListBucket")
"""What a preview and `trainyard check --live` ask about a bucket that exists before the stack."""


def actions(types: Iterable[str], handlers: Iterable[str] = HANDLERS) -> set[str]:
    """The calls that resources of these types need. KeyError: a type that the table lacks."""
    return {action for kind in types for handler in handlers for action in _of(kind, handler)}


def reads(types: Iterable[str]) -> set[str]:
    """The calls that a preview and a refresh need."""
    return {action for action in actions(types, ["read"]) if READS.match(action)}


def _of(kind: str, handler: str) -> set[str]:
    cloudformation = CLOUDFORMATION[kind]
    published = [] if kind in OWN_LISTS else HANDLED[cloudformation].get(handler, [])
    own = BESIDE.get(kind, {}).get(handler, "").split()
    return {action for action in [*published, *own] if not UNUSED.match(action)}


def published() -> dict[str, dict[str, list[str]]]:
    """CloudFormation's type → handler → calls, of the installed cfn-lint."""
    found = find_spec("cfnlint")
    if found is None or found.origin is None:
        raise SystemExit("this needs cfn-lint, of requirements-dev.txt")
    schemas = Path(found.origin).parent / "data" / "schemas"
    hashes = json.loads((schemas / "providers" / "us-east-1.json").read_text())
    return {
        kind: _handlers(json.loads((schemas / "resources" / f"{hashes[kind]}.json").read_text()))
        for kind in sorted({CLOUDFORMATION[kind] for kind in CLOUDFORMATION.keys() - OWN_LISTS})
    }


def _handlers(schema: Mapping[str, Mapping[str, Mapping[str, list[str]]]]) -> dict[str, list[str]]:
    handlers = schema.get("handlers", {})
    return {name: sorted(handlers[name]["permissions"]) for name in HANDLERS if name in handlers}


def as_text() -> str:
    """permissions.json as the installed cfn-lint has it."""
    source = f"resource schemas of us-east-1 in cfn-lint {version('cfn-lint')}"
    return json.dumps({"source": source, "handlers": published()}, indent=1) + "\n"


def main(arguments: list[str]) -> int:
    """Print permissions.json anew."""
    command_line.parser(
        "trainyard.catalog.aws.permissions",
        "Print trainyard/catalog/aws/permissions.json anew, from the resource schemas of the installed cfn-lint.",
    ).parse_args(arguments)
    print(as_text(), end="")
    return 0


# The shell empties the file before the command above writes it anew.
_WRITTEN = FILE.read_text() if FILE.exists() else ""
HANDLED: dict[str, dict[str, list[str]]] = json.loads(_WRITTEN)["handlers"] if _WRITTEN else {}
"""CloudFormation's type → handler → calls."""


if __name__ == "__main__":
    command_line.run(main)
