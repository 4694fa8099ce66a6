"""Calls by which the product asks the account: a preview, `trainyard check --live` and `trainyard due --live`.

Calls that a resource type needs: trainyard/catalog/aws/permissions.py.
"""

from __future__ import annotations

QUESTIONS = (
    "ec2:DescribeAddresses",
    "ec2:DescribeAvailabilityZones",
    "ec2:DescribeCapacityReservations",
    "ec2:DescribeImages",
    "ec2:DescribeInstanceTypeOfferings",
    "ec2:DescribeInstances",
    "ec2:DescribeRouteTables",
    "ec2:DescribeSubnets",
    "ec2:DescribeVolumes",
    "ec2:DescribeVpcAttribute",
    "ec2:DescribeVpcEndpointServices",
    "ec2:DescribeVpcEndpoints",
    "ec2:DescribeVpcs",
    "ec2:GetEbsDefaultKmsKeyId",
    "eks:DescribeAccessEntry",
    "eks:DescribeAddonVersions",
    "eks:DescribeCluster",
    "iam:GetRole",
    "s3:GetBucketPolicyStatus",
    "s3:GetBucketVersioning",
    "servicequotas:GetServiceQuota",
    "ssm:GetParameter",
)
"""Calls by which `trainyard check --live` and `trainyard due --live` ask the account, besides
sts:GetCallerIdentity, which everybody may."""

CLUSTER_QUESTIONS = (
    "ec2:DescribeInstances",
    "ec2:DescribeNetworkInterfaces",
    "eks:DescribeAccessEntry",
    "eks:DescribeAddon",
    "eks:DescribeCluster",
    "eks:ListAccessEntries",
    "eks:ListAssociatedAccessPolicies",
    "eks:ListClusters",
)
"""Calls by which a preview and `trainyard check --live` ask about an existing cluster."""

DEFAULT_KEY_QUESTIONS = ("kms:DescribeKey", "kms:GetKeyPolicy")
"""Calls by which `trainyard check --live` asks about the account's default key of EBS, where the stack file names
no key."""
COPY_QUESTIONS = ("ecr:DescribePullThroughCacheRules",)
"""The call of `trainyard check --live` about rules of pull-through caches, where images come from
copies. It takes no resource (Service Authorization Reference)."""
BUDGET_QUESTIONS = ("ce:ListCostAllocationTags",)
"""The call of `trainyard check --live` about the tag by which a budget counts. It takes no resource
(Service Authorization Reference)."""
LOG_QUESTIONS = ("logs:DescribeLogGroups",)
"""The call of `trainyard check --live` about the log group of the control plane."""
VPC_QUESTIONS = (
    "ec2:DescribeDhcpOptions",
    "ec2:DescribeNetworkAcls",
    "ec2:DescribeSecurityGroupRules",
)
"""Calls by which `trainyard check --live` asks about an existing VPC, beside QUESTIONS."""

_SERVERS = (
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSecurityGroupRules",
    "ec2:DescribeSecurityGroups",
)
STORE_QUESTIONS = {
    "lustre": ("fsx:DescribeFileSystems", "cloudwatch:GetMetricData", *_SERVERS),
    "efs": (
        "elasticfilesystem:DescribeFileSystems",
        "elasticfilesystem:DescribeFileSystemPolicy",
        *_SERVERS,
    ),
}
"""Kind of an existing file system → calls by which a preview and `trainyard check --live` ask about it."""

BUCKET_QUESTIONS = ("s3:GetBucketPolicyStatus", "s3:GetEncryptionConfiguration", "s3:ListBucket")
"""Calls by which a preview and `trainyard check --live` ask about a bucket that exists before the
stack."""
