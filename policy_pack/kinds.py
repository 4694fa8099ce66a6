"""Types of resources that policies are about, and how they name their disks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from policy_pack.resource import Resource, as_list

BUCKET, BUCKET_BLOCK, BUCKET_KEY = (
    "aws:s3/bucket:Bucket",
    "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock",
    "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration",
)
TEMPLATE, EFS = "aws:ec2/launchTemplate:LaunchTemplate", "aws:efs/fileSystem:FileSystem"
CLUSTER = "aws:eks/cluster:Cluster"
REPOSITORY = "aws:ecr/repository:Repository"
VOLUME = "aws:ebs/volume:Volume"
INSTANCES = (
    "aws:ec2/instance:Instance",
    "aws:ec2/spotInstanceRequest:SpotInstanceRequest",
    "aws:ec2/launchConfiguration:LaunchConfiguration",
)
"""Types that launch EC2 instances, and name disks and addresses in the same way."""
ADDRESSES = ("aws:ec2/eip:Eip", "aws:ec2/eipAssociation:EipAssociation")
SUBNETS = {"aws:ec2/subnet:Subnet": False, "aws:ec2/defaultSubnet:DefaultSubnet": True}
"""Type → what mapPublicIpOnLaunch is where nobody says it."""
NODE_CLASS = "kubernetes:karpenter.k8s.aws/v1:EC2NodeClass"
NODE_POOL = "kubernetes:karpenter.sh/v1:NodePool"
SERVICE = "kubernetes:core/v1:Service"
INGRESSES = (
    "kubernetes:networking.k8s.io/v1:Ingress",
    "kubernetes:networking.k8s.io/v1:IngressPatch",
    "kubernetes:networking.k8s.io/v1:IngressList",
)
RULES_IN = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
OLD_RULE = "aws:ec2/securityGroupRule:SecurityGroupRule"
SECURITY_GROUPS = (
    "aws:ec2/securityGroup:SecurityGroup",
    "aws:ec2/defaultSecurityGroup:DefaultSecurityGroup",
)
TRUE = (True, "true")
"""The AWS provider takes either."""


def disks(resource: Resource) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """(name, properties) of each disk that a resource gives to nodes, or is; nothing of one without."""
    if resource.type == VOLUME:
        yield resource.name, resource.props
    elif resource.type == TEMPLATE:
        yield from _mapped(resource.part("blockDeviceMappings"))
    elif resource.type == NODE_CLASS:
        yield from _mapped(resource.part("spec", "blockDeviceMappings"))
    elif resource.type in INSTANCES:
        if root := resource.part("rootBlockDevice"):
            yield "that it boots from", root
        for disk in as_list(resource.part("ebsBlockDevices")):
            yield str(disk.get("deviceName")), disk


def _mapped(mappings: Any) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for each in as_list(mappings):
        yield str(each.get("deviceName")), each.get("ebs") or {}


def key_of(disk: Mapping[str, Any]) -> Any:
    """The KMS key of a disk: AWS's provider and Karpenter spell it differently."""
    return disk.get("kmsKeyId") or disk.get("kmsKeyID")


def boots_from_unnamed(resource: Resource) -> bool:
    """True where nodes boot from a disk that only the AMI describes."""
    if resource.type in INSTANCES:
        return not resource.part("rootBlockDevice")
    return resource.type in (TEMPLATE, NODE_CLASS) and not [*disks(resource)]
