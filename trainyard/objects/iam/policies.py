"""IAM documents, as functions that return plain data. The component of the same noun attaches
them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from trainyard.catalog.aws.service_roles import ServiceRole
from trainyard.plans.documents import Document, account_of
from trainyard.plans.identity import cluster_tag

ADMIN_POLICY = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"
"""Access policy with which an access entry may do everything in a cluster."""
ROLE_NAME = 64
"""Characters of an IAM role's name, at most (IAM API, CreateRole)."""
EKS_CLUSTER_TAG = "aws:RequestTag/eks:eks-cluster-name"


@dataclass(frozen=True, kw_only=True)
class OptionalService:
    """A service of AWS that only a kind of store or an optional part uses, as IAM must know it."""

    name: str
    """As IAM calls it."""
    arn: str = ""
    """ARN of its resources, with `{stack}` for the name of the stack. Empty: AWS chooses their ids, so
    that calls are limited to the region."""
    policy: str = "cluster"
    """The policy of the deployer that its calls are in."""
    regional: bool = True
    """The service answers in the region of the stack."""
    deletes: tuple[str, ...] = ()
    """Calls that delete one resource, which this program has tagged: only with the stack's tag."""
    deletes_any: tuple[str, ...] = ()
    """Calls that delete resources whose ARNs name no service: limited by the tag alone."""
    keys: tuple[str, ...] = ()
    """Calls of KMS that it makes as whoever deploys."""
    passed_to: str = ""
    """The service that gets a role of the stack."""
    role: ServiceRole | None = None
    """The service-linked role that whoever deploys may make for it."""
    called: Mapping[str, str] = field(default_factory=dict[str, str])
    """Action of a role of the stack → what for. A permissions boundary must allow them."""


def lifecycle(keep_images: int) -> str:
    """A lifecycle policy of ECR that keeps so many images (ECR user guide, LifecyclePolicies)."""
    rule = {
        "rulePriority": 1,
        "description": f"keep the newest {keep_images}",
        "selection": {
            "tagStatus": "any",
            "countType": "imageCountMoreThan",
            "countNumber": keep_images,
        },
        "action": {"type": "expire"},
    }
    return json.dumps({"rules": [rule]}, sort_keys=True)


def trust(service: str, *more: str) -> Document:
    """Trust policy of a role that one AWS service may assume. `more`: other calls that it may make
    then."""
    return document({"Principal": {"Service": service}, "Action": ["sts:AssumeRole", *more]})


def pod_identity_trust(*, account: str, region: str, cluster: str) -> Document:
    """For roles that pods of one cluster get through EKS Pod Identity.

    EKS names the cluster as the source, not the association: with the association's ARN pods get no
    credentials (awslabs/mountpoint-s3-csi-driver#781); with the cluster's ARN it was tried on a live
    cluster (terraform-aws-modules/terraform-aws-eks#3743).
    """
    return document(
        {
            "Principal": {"Service": "pods.eks.amazonaws.com"},
            "Action": ["sts:AssumeRole", "sts:TagSession"],
            "Condition": {
                "StringEquals": {"aws:SourceAccount": account},
                "ArnEquals": {"aws:SourceArn": f"arn:aws:eks:{region}:{account}:cluster/{cluster}"},
            },
        }
    )


def trusted_account(trusts: Document) -> str:
    """The id of the account in a document of pod_identity_trust."""
    [statement] = trusts["Statement"]
    return str(statement["Condition"]["StringEquals"]["aws:SourceAccount"])


def same_role(one: str, other: str) -> bool:
    """True where two ARNs are of one role, or of a session of it. The ARN of a session does not
    contain the role's path."""
    return _role(one) == _role(other)


def _role(arn: str) -> tuple[str, str] | str:
    """Account and name of a role; of anything else the ARN."""
    found = re.search(r":(\d+):(?:role/(?:.+/)?|assumed-role/)([^/]+)(?:/[^/]+)?$", arn)
    return (found[1], found[2]) if found else arn


def interruption_queue(queue_arn: str, rule_arns: Sequence[str]) -> Document:
    """Only these EventBridge rules may send, and only over TLS.

    Karpenter's own template lets EventBridge send for rules of every account, which could report
    interruptions that never happen (EventBridge user guide, eb-use-resource-based, has the
    condition).
    """
    return document(
        {
            "Principal": {"Service": "events.amazonaws.com"},
            "Action": "sqs:SendMessage",
            "Resource": queue_arn,
            "Condition": {"ArnEquals": {"aws:SourceArn": sorted(rule_arns)}},
        },
        {
            "Effect": "Deny",
            "Principal": "*",
            "Action": "sqs:*",
            "Resource": queue_arn,
            "Condition": {"Bool": {"aws:SecureTransport": "false"}},
        },
    )


def flow_logs_trust(*, account: str, region: str) -> Document:
    """For the role with which a VPC writes its flow logs (VPC user guide, flow-logs-iam-role: who
    else's flow logs may not use it)."""
    return document(
        {
            "Principal": {"Service": "vpc-flow-logs.amazonaws.com"},
            "Action": "sts:AssumeRole",
            "Condition": {
                "StringEquals": {"aws:SourceAccount": account},
                "ArnLike": {"aws:SourceArn": f"arn:aws:ec2:{region}:{account}:vpc-flow-log/*"},
            },
        }
    )


def flow_logs(group_arn: str) -> Document:
    """Write to one log group, which exists: the role makes none."""
    return document(
        {
            "Sid": "WriteGroup",
            "Action": ["logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"],
            "Resource": [group_arn, f"{group_arn}:*"],
        },
        {"Sid": "FindGroup", "Action": "logs:DescribeLogGroups", "Resource": "*"},
    )


LAUNCHES = ["ec2:RunInstances", "ec2:CreateFleet"]


def karpenter_nodes(*, region: str, cluster: str) -> Document:
    """Launch, tag and terminate instances that carry this cluster's tags, and nothing else.

    The statements follow the template of Karpenter 1.14; 1.15 makes the same calls, and one for reboots, which
    are off. Creating instance profiles is left out,
    because the graph owns the one that its NodeClasses name.
    """
    return document(*_launch_statements(region, cluster), *_own_nodes_statements(region, cluster))


def _launch_statements(region: str, cluster: str) -> tuple[Document, ...]:
    """Launch from anything that exists, but only what gets this cluster's tags at once."""
    arn = _ec2_arn(region)
    created = [
        f"{arn}{resource}/*"
        for resource in (
            "fleet",
            "instance",
            "volume",
            "network-interface",
            "launch-template",
            "spot-instances-request",
        )
    ]
    tagged = {
        "StringEquals": {
            f"aws:RequestTag/{cluster_tag(cluster)}": "owned",
            EKS_CLUSTER_TAG: cluster,
        },
        "StringLike": {"aws:RequestTag/karpenter.sh/nodepool": "*"},
    }
    creations = {"ec2:CreateAction": ["RunInstances", "CreateFleet", "CreateLaunchTemplate"]}
    return (
        {
            "Sid": "LaunchFrom",
            "Action": LAUNCHES,
            "Resource": [
                f"arn:aws:ec2:{region}::image/*",
                f"arn:aws:ec2:{region}::snapshot/*",
                f"{arn}security-group/*",
                f"{arn}subnet/*",
                f"{arn}capacity-reservation/*",
                f"{arn}placement-group/*",
            ],
        },
        {
            "Sid": "LaunchFromOwnTemplates",
            "Action": LAUNCHES,
            "Resource": f"{arn}launch-template/*",
            "Condition": _is_owned(cluster),
        },
        {
            "Sid": "LaunchTagged",
            "Action": [*LAUNCHES, "ec2:CreateLaunchTemplate"],
            "Resource": created,
            "Condition": tagged,
        },
        {
            "Sid": "TagAtCreation",
            "Action": "ec2:CreateTags",
            "Resource": created,
            "Condition": {**tagged, "StringEquals": {**tagged["StringEquals"], **creations}},
        },
    )


def _own_nodes_statements(region: str, cluster: str) -> tuple[Document, ...]:
    """Tag and terminate the instances of this cluster."""
    arn, owned = _ec2_arn(region), _is_owned(cluster)
    return (
        {
            "Sid": "TagOwnInstances",
            "Action": "ec2:CreateTags",
            "Resource": f"{arn}instance/*",
            "Condition": {
                **owned,
                "StringEqualsIfExists": {EKS_CLUSTER_TAG: cluster},
                "ForAllValues:StringEquals": {
                    "aws:TagKeys": ["eks:eks-cluster-name", "karpenter.sh/nodeclaim", "Name"]
                },
            },
        },
        {
            "Sid": "TerminateOwn",
            "Action": ["ec2:TerminateInstances", "ec2:DeleteLaunchTemplate"],
            "Resource": [f"{arn}instance/*", f"{arn}launch-template/*"],
            "Condition": owned,
        },
    )


def _is_owned(cluster: str) -> Document:
    """The condition that a resource has the tags of a node of this cluster."""
    return {
        "StringEquals": {f"aws:ResourceTag/{cluster_tag(cluster)}": "owned"},
        "StringLike": {"aws:ResourceTag/karpenter.sh/nodepool": "*"},
    }


def _ec2_arn(region: str) -> str:
    """Beginning of the ARN of every EC2 resource of an account in a region."""
    return f"arn:aws:ec2:{region}:*:"


def karpenter_identity(*, node_role_arn: str, cluster_arn: str, queue_arn: str) -> Document:
    """Hand the node role to instances, read the cluster and drain the interruption queue."""
    return document(
        {
            "Sid": "PassNodeRole",
            "Action": "iam:PassRole",
            "Resource": node_role_arn,
            "Condition": {"StringEquals": {"iam:PassedToService": ["ec2.amazonaws.com"]}},
        },
        # Without ListInstanceProfiles the finalizer of an EC2NodeClass never ends
        # (karpenter-provider-aws#9185). It also looks for a profile called <cluster>_<hash>, which
        # older releases made: it must read "not found" there, not "denied"
        # (karpenter-provider-aws 1.14, pkg/controllers/nodeclass/controller.go).
        {"Sid": "ListProfiles", "Action": "iam:ListInstanceProfiles", "Resource": "*"},
        {
            "Sid": "ReadProfiles",
            "Action": "iam:GetInstanceProfile",
            "Resource": f"arn:aws:iam::{account_of(node_role_arn)}:instance-profile/*",
        },
        {"Sid": "ReadCluster", "Action": "eks:DescribeCluster", "Resource": cluster_arn},
        {
            "Sid": "ReadInterruptions",
            "Resource": queue_arn,
            "Action": ["sqs:DeleteMessage", "sqs:GetQueueUrl", "sqs:ReceiveMessage"],
        },
    )


def karpenter_discovery(*, region: str) -> Document:
    """Right of Karpenter to look things up: reads only."""
    nouns = (
        "CapacityReservations",
        "Images",
        "InstanceStatus",
        "InstanceTypeOfferings",
        "InstanceTypes",
        "Instances",
        "LaunchTemplates",
        "PlacementGroups",
        "SecurityGroups",
        "SpotPriceHistory",
        "Subnets",
    )
    return document(
        {
            "Sid": "ReadRegion",
            "Action": [f"ec2:Describe{noun}" for noun in nouns],
            "Resource": "*",
            "Condition": {"StringEquals": {"aws:RequestedRegion": region}},
        },
        {
            "Sid": "ReadImages",
            "Action": "ssm:GetParameter",
            "Resource": f"arn:aws:ssm:{region}::parameter/aws/service/*",
        },
        {"Sid": "ReadPrices", "Action": "pricing:GetProducts", "Resource": "*"},
    )


def unlike(statements: Sequence[Document]) -> list[Document]:
    """The statements, with a number behind an id that an earlier one has: IAM takes an id once in a
    policy."""
    seen: list[str] = []
    found: list[Document] = []
    for each in statements:
        id_ = each.get("Sid")
        number = seen.count(id_) if id_ else 0
        found.append({**each, "Sid": f"{id_}{number}"} if number else each)
        seen += [id_] if id_ else []
    return found


def as_text(made: Document) -> str:
    """JSON with its keys in order: the same document is the same text in every run."""
    return json.dumps(made, sort_keys=True)


def document(*statements: Document) -> Document:
    """A policy of statements, which allow unless they say otherwise."""
    return {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", **statement} for statement in statements],
    }
