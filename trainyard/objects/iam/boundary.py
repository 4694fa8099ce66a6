"""Calls that a permissions boundary must allow: all that roles of a stack do. Whoever owns the
account creates it before the stack, so it has the calls of every setting."""

from __future__ import annotations

from collections.abc import Iterable

from trainyard.objects.iam.policies import Document, OptionalService, document

CALLED: dict[str, str] = {
    "aps:RemoteWrite": "Prometheus writes to a workspace of managed Prometheus",
    "autoscaling:*": "of AmazonEKSClusterPolicy",
    "ec2:*": "Karpenter launches nodes, the VPC CNI takes addresses",
    "ec2messages:*": "of AmazonSSMManagedInstanceCore",
    "ecr:*": "nodes pull images",
    "eks-auth:AssumeRoleForPodIdentity": "pods get the credentials of their role",
    "eks:*": "Karpenter asks for the version of the cluster",
    "elasticfilesystem:*": "nodes mount EFS",
    "elasticloadbalancing:*": "of AmazonEKSClusterPolicy",
    "iam:CreateServiceLinkedRole": "of AmazonEKSClusterPolicy",
    "iam:GetInstanceProfile": "Karpenter looks at the profile of its nodes",
    "iam:ListInstanceProfiles": "Karpenter looks for profiles of its own",
    "iam:PassRole": "Karpenter gives its nodes their role",
    "kms:*": "disks, stores and messages are encrypted",
    "logs:*": "Fluent Bit and flow logs write to CloudWatch Logs",
    "pricing:GetProducts": "Karpenter asks what nodes cost",
    "s3:*": "pods mount buckets",
    "secretsmanager:*": "pods read secrets",
    "sns:Publish": "programs publish messages to a topic, such as alerts",
    "sqs:*": "Karpenter hears that AWS takes an instance back",
    "ssm:*": "Karpenter looks up the AMI of its nodes",
    "ssmmessages:*": "system nodes open tunnels",
}
"""Action → what for, beside those of services that only some stacks use."""


def called(services: Iterable[OptionalService]) -> dict[str, str]:
    """Action → what for. A test compares them with the policies of every recorded stack."""
    return CALLED | {action: why for each in services for action, why in each.called.items()}


def boundary(services: Iterable[OptionalService]) -> Document:
    """The policy. It limits no resource: the policies of the roles do."""
    actions = sorted(called(services))
    return document({"Sid": "LimitRolesOfTrainyard", "Action": actions, "Resource": "*"})
