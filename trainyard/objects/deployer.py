"""The IAM policies of whoever runs `pulumi up`: what the resources of one stack need, and no more.

Which calls a resource type needs: trainyard/catalog/aws/permissions.py. Which types a stack has:
trainyard/reports/policy.py.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace

from trainyard.catalog.aws.permissions import READS, actions, reads
from trainyard.catalog.aws.questions import QUESTIONS
from trainyard.catalog.aws.service_roles import EFS, EKS, FSX, NODE_GROUPS
from trainyard.objects.iam.encryption import CONTROL_PLANE, FLOW, POD_LOGS
from trainyard.objects.iam.policies import Document, OptionalService
from trainyard.objects.iam.secrets import secret_arns
from trainyard.objects.iam.tagging import OWN, is_tagging, tagging
from trainyard.objects.teams.teams import parameter_name

GROUPS = {
    "network": ("ec2", "route53"),
    "cluster": ("eks", "sqs", "sns", "events", "logs", "ecr", "ssm", "aps"),
    "storage": ("fsx", "elasticfilesystem", "kms", "s3"),
    "identity": ("iam",),
}
"""Name of a policy → the services whose calls are in it."""
LARGEST = 6_144
"""Characters of a managed policy, blanks not counted (IAM quotas)."""
ANYWHERE = {"eks:CreateCluster", "elasticfilesystem:CreateFileSystem"}
"""Calls that take no resource in a policy (Service Authorization Reference): in the region only."""
IDS = ("aps", "ec2", "elasticfilesystem", "fsx")
"""Services whose ARNs have ids that AWS chooses: in the region only, and deletions by the tag."""
GLOBAL = ("ce", "iam")
"""Services that every stack can ask and that have no region of their own."""
PARAMETER_NAMES = "ssm:DescribeParameters"
"""Takes no resource, and answers without values (Service Authorization Reference)."""
OWN_TAGS = {
    "aps:DeleteWorkspace",
    "ec2:DeleteFlowLogs",
    "ec2:DeleteInternetGateway",
    "ec2:DeleteLaunchTemplate",
    "ec2:DeleteNatGateway",
    "ec2:DeletePlacementGroup",
    "ec2:DeleteRouteTable",
    "ec2:DeleteSecurityGroup",
    "ec2:DeleteSubnet",
    "ec2:DeleteVpc",
    "ec2:DeleteVpcEndpoints",
    "ec2:ReleaseAddress",
    "ec2:TerminateInstances",
    "elasticfilesystem:DeleteFileSystem",
    "fsx:DeleteFileSystem",
}
"""Deletions of one resource, which this program has tagged: only with the stack's tag."""
ALSO_OF_BACKUPS = {"fsx:DeleteFileSystem"}
"""Deletions of OWN_TAGS that also name a last backup, which has no tag yet."""
OF_GUARDDUTY = {"ec2:DeleteSecurityGroup", "ec2:DeleteVpcEndpoints"}
"""Deletions by which the AWS provider removes an endpoint and a group of GuardDuty, where they hold a VPC that it
deletes (hashicorp/terraform-provider-aws#46953, in pulumi-aws 7.51.1: notes of aws.ec2.Vpc and aws.ec2.Subnet). It also
takes subnets out of the endpoint, by ec2:ModifyVpcEndpoint, which endpoints of the stack need, too."""
GUARDDUTY_TAG = "aws:ResourceTag/GuardDutyManaged"
"""Condition key of the tag that GuardDuty gives to what it makes (GuardDuty user guide,
using-iac-with-gdu-automated-agents-runtime-monitoring)."""
CLUSTER_ROLE = "cluster-eksRole-role-*"
"""pulumi-eks makes the control plane's role and lets Pulumi name it."""
ATTACHED = (
    "AmazonEC2ContainerRegistryPullOnly",
    "AmazonEKSClusterPolicy",
    "AmazonEKSWorkerNodePolicy",
    "AmazonEKS_CNI_Policy",
    "AmazonSSMManagedInstanceCore",
)
"""AWS's policies that roles of a stack get: no other can be attached."""
BOUND = {"iam:PutRolePermissionsBoundary"}
"""Calls that a role with a boundary needs beside those of its type (IAM, Role,
permissionsBoundary)."""
WIDEN = {"iam:CreateRole", "iam:PutRolePolicy", *BOUND}
"""Calls that widen what a role may do, and that take a condition on its boundary (Service
Authorization Reference, IAM); attaching policies is the other one."""
FLOW_LOGS = "vpc-flow-logs.amazonaws.com"
KEY_CALLS = (
    *("CreateGrant", "Decrypt", "DescribeKey", "GenerateDataKey"),
    "GenerateDataKeyWithoutPlaintext",
)
"""Calls of KMS that services make as whoever creates a cluster, a file system, a log group or a
workspace (user guides of EKS, enable-kms; EFS, FSx for Lustre and AMP, encryption-at-rest)."""
KEY_SERVICES = ("aps", "eks", "elasticfilesystem", "fsx", "logs")
KEY_READS = ("kms:DescribeKey", "kms:GetKeyPolicy")
"""Calls by which `trainyard check --live` asks about a key."""
BOUNDARY_READS = ("iam:GetPolicy",)
"""Calls by which `trainyard check --live` asks about the boundary."""
COPY_READS = ("ecr:DescribeImages",)
"""Calls by which `trainyard check --live` asks about the copies of images, and about images of jobs."""
SECRET_READS = ("secretsmanager:DescribeSecret",)
"""Calls by which `trainyard check --live` asks about a secret of the environment's jobs. The answer
has no value of the secret."""
PASSED_TO = ("ec2.amazonaws.com", "eks.amazonaws.com", "pods.eks.amazonaws.com")
S3_LINK = "s3.data-source.lustre.fsx.amazonaws.com"
"""FSx makes a role for each file system that is linked to S3, with the caller's permissions."""


@dataclass(frozen=True, kw_only=True)
class ExistingClusterScope:
    """An existing cluster, and what the stack puts into it."""

    name: str
    add_ons: tuple[str, ...]
    people: tuple[str, ...]
    """Names of the roles that it admits, beside the stack's own."""

    def arns(self, at: str, stack: str) -> list[str]:
        """ARNs of what the stack writes: `at` is region and account. Calls that create something
        name the cluster; those that change or delete name the part (Service Authorization
        Reference, EKS)."""
        entries = [f"{stack}-*", *self.people]
        return [
            f"arn:aws:eks:{at}:cluster/{self.name}",
            f"arn:aws:eks:{at}:nodegroup/{self.name}/{stack}-*/*",
            *(f"arn:aws:eks:{at}:addon/{self.name}/{each}/*" for each in self.add_ons),
            *(f"arn:aws:eks:{at}:access-entry/{self.name}/role/*/{each}/*" for each in entries),
            f"arn:aws:eks:{at}:podidentityassociation/{self.name}/*",
        ]


@dataclass(frozen=True, kw_only=True)
class Scope:
    """Limits of the policies: names and places of a stack's resources."""

    stack: str
    region: str
    buckets: tuple[str, ...] = ()
    """Linked to a Lustre file system."""
    own_buckets: tuple[str, ...] = ()
    """Buckets that the stack creates; `*` stands for the account's id."""
    private_names: bool = False
    """Interface endpoints give AWS APIs names inside the VPC."""
    services: tuple[OptionalService, ...] = ()
    """Services that only some stacks use."""
    flow_logs: bool = False
    """A role of the stack writes flow logs."""
    questions: tuple[str, ...] = ()
    """Calls that ask about existing resources, such as a VPC."""
    boundary: str | None = None
    """ARN of the policy that limits the roles of the stack."""
    key: str | None = None
    """ARN of the key that encrypts what the stack stores."""
    copies: tuple[str, ...] = ()
    """Copies of images, and images of jobs: the account of their registry, and repositories, such as
    123456789012:repository/mirror/*."""
    secrets: tuple[str, ...] = ()
    """Names and ARNs of the secrets that the environment's own jobs read."""
    existing_cluster: ExistingClusterScope | None = None
    """The cluster, where the stack does not make it."""

    def own_deletes(self) -> set[str]:
        """Calls that delete only what has the stack's tag."""
        return {*OWN_TAGS, *(call for each in self.services for call in each.deletes)}

    def deletes_any(self) -> set[str]:
        """Calls that delete only what has the stack's tag, whatever its ARN is."""
        return {call for each in self.services for call in each.deletes_any}

    def with_ids(self) -> set[str]:
        """Services whose ARNs have ids that AWS chooses."""
        return {*IDS, *(each.name for each in self.services if not each.arn)}

    def in_region(self) -> Document:
        """Everything in the region: for calls whose resources AWS names."""
        return {"Resource": "*", "Condition": _equals("aws:RequestedRegion", self.region)}

    def own_tag(self, services: Iterable[str]) -> Document:
        """Resources that have the stack's tag. ARNs of policies name their service: no wildcard
        stands for it."""
        tag = _equals(OWN, self.stack)
        arns = [f"arn:aws:{service}:{self.region}:*:*" for service in services]
        return {"Resource": arns, "Condition": tag}


def deployer_policies(types: Collection[str], scope: Scope) -> dict[str, Document]:
    """The policies of whoever creates, changes and deletes the stack, by name; none for a stack
    without resources in AWS."""
    needed = actions(types)
    if not needed:
        return {}
    called = {action.partition(":")[0] for action in needed}
    scope = replace(scope, services=tuple(s for s in scope.services if s.name in called))
    read = {*(action for action in needed if READS.match(action)), *QUESTIONS, *scope.questions}
    found = {"reads": _document(_reading(read, scope))}
    for group, services in _groups(scope).items():
        writes = {action for action in needed - read if action.partition(":")[0] in services}
        statements = [*_statements(writes, scope)]
        if statements:
            found[group] = _document(statements)
    return {f"{scope.stack}-deployer-{name}": document for name, document in found.items()}


def _groups(scope: Scope) -> dict[str, tuple[str, ...]]:
    """GROUPS, with the services that only some stacks use."""
    return {
        group: (*services, *(each.name for each in scope.services if each.policy == group))
        for group, services in GROUPS.items()
    }


def preview_policies(types: Collection[str], scope: Scope) -> dict[str, Document]:
    """The policy of whoever previews and refreshes the stack, and asks `trainyard check --live`: reads
    only."""
    needed = reads(types)
    if not needed:
        return {}
    return {
        f"{scope.stack}-preview": _document(
            _reading({*needed, *QUESTIONS, *scope.questions}, scope)
        )
    }


def team_policies(name: str, region: str, parameter: str) -> dict[str, Document]:
    """The policy, with this name, of whoever creates, changes or previews the stack of a team that its environment
    lists. `parameter`: with its contract. The cluster asks for no permission of IAM."""
    resource = f"arn:aws:ssm:{region}:*:parameter{parameter}"
    statements = _one("ReadContract", {"ssm:GetParameter"}, {"Resource": resource})
    return {name: _document(statements)}


def _reading(read: Iterable[str], scope: Scope) -> list[Document]:
    """Reads, of everything in the region, or everywhere where a service has no region. Of parameters only
    AWS's own about the AMIs of EKS, and the contracts of teams: others may be secrets of the account."""
    every = sorted(a for a in read if not (scope.key and a.startswith("kms:")))
    global_ones = (*GLOBAL, *(each.name for each in scope.services if not each.regional))
    everywhere = [action for action in every if action.partition(":")[0] in global_ones]
    parameters = [a for a in every if a.startswith("ssm:") and a != PARAMETER_NAMES]
    regional = [action for action in every if action not in (*everywhere, *parameters)]
    allowed = [f"arn:aws:ssm:{scope.region}::parameter/aws/service/eks/optimized-ami/*"]
    if not {*parameters} <= {*QUESTIONS}:
        allowed += [str(_names(scope)["ssm"])]
    return [
        {"Sid": "ReadRegion", "Action": regional, **scope.in_region()},
        {"Sid": "ReadIam", "Action": everywhere, "Resource": "*"},
        {"Sid": "ReadParameters", "Action": parameters, "Resource": allowed},
        *_reading_named(scope),
    ]


def _reading_named(scope: Scope) -> Iterable[Document]:
    """Reads of single things that the stack file names."""
    copies = [f"arn:aws:ecr:{scope.region}:{each}" for each in scope.copies]
    secrets = secret_arns(scope.secrets, region=scope.region, account="*") if scope.secrets else []
    for sid, calls, resource in (
        ("ReadKey", KEY_READS, scope.key),
        ("ReadBoundary", BOUNDARY_READS, scope.boundary),
        ("ReadCopies", COPY_READS, copies),
        ("ReadSecrets", SECRET_READS, secrets),
    ):
        yield from _one(sid, {*calls} if resource else set(), {"Resource": resource})


def _statements(writes: set[str], scope: Scope) -> Iterable[Document]:
    """The writes of one policy. Each call is in one statement, but deletions of what others than the stack have
    tagged."""
    own, any_own = writes & scope.own_deletes(), writes & scope.deletes_any()
    with_ids = {action for action in writes if action.partition(":")[0] in scope.with_ids()}
    tags = {action for action in with_ids if is_tagging(action)}
    free = (writes & ANYWHERE) | with_ids - own - any_own - tags
    yield from _one("DeleteOwn", own, scope.own_tag(sorted({a.partition(":")[0] for a in own})))
    if "ec2:DeleteVpc" in writes:
        watched = {**scope.own_tag(["ec2"]), "Condition": _equals(GUARDDUTY_TAG, "true")}
        yield from _one("DeleteOfGuardDuty", OF_GUARDDUTY, watched)
    backups = {"Resource": f"arn:aws:fsx:{scope.region}:*:backup/*"}
    yield from _one("DeleteWithBackup", own & ALSO_OF_BACKUPS, backups)
    yield from tagging(with_ids, region=scope.region, stack=scope.stack)
    yield from _one("DeleteOwnOfAny", any_own, {**scope.own_tag(()), "Resource": "*"})
    yield from _one("WriteInRegion", free, scope.in_region())
    if scope.private_names:
        zones = {"Resource": "arn:aws:route53:::hostedzone/*"}
        yield from _one("NameEndpoints", {a for a in writes if a.startswith("route53:")}, zones)
    for service, resource in _names(scope).items():
        named = {action for action in writes - free if action.startswith(f"{service}:")}
        yield from _one(f"Write{service.title()}", named, {"Resource": resource})
    yield from _keys({action for action in writes if action.startswith("kms:")}, scope)
    yield from _buckets({action for action in writes if action.startswith("s3:")}, scope)
    yield from _identity({action for action in writes if action.startswith("iam:")}, scope)


def _keys(writes: set[str], scope: Scope) -> Iterable[Document]:
    """The key of the stack; without one, those that AWS chooses. Only through services."""
    services = KEY_SERVICES if scope.key else ("ecr", "eks", "elasticfilesystem")
    asking = [each for each in scope.services if each.keys]
    names = [*services, *(each.name for each in asking)]
    via = [f"{name}.{scope.region}.amazonaws.com" for name in names]
    calls = [*KEY_CALLS, *(call for each in asking for call in each.keys)]
    used = {f"kms:{call}" for call in calls} if scope.key and writes else writes
    limits = {"Resource": scope.key or "*", "Condition": _equals("kms:ViaService", via)}
    yield from _one("UseKeys", used, limits)


def _buckets(writes: set[str], scope: Scope) -> Iterable[Document]:
    """FSx writes to the policy of a bucket that it is linked to. The stack's own buckets are created
    and deleted, with their objects."""
    if scope.buckets:
        arns = [f"arn:aws:s3:::{bucket}" for bucket in scope.buckets]
        yield from _one("LinkBuckets", writes & {"s3:PutBucketPolicy"}, {"Resource": arns})
    if scope.own_buckets:
        arns = [f"arn:aws:s3:::{name}{part}" for name in scope.own_buckets for part in ("", "/*")]
        yield from _one("WriteBuckets", writes, {"Resource": arns})


def _names(scope: Scope) -> dict[str, str | list[str]]:
    """Service → the resources that carry the stack's name."""
    at = f"{scope.region}:*"
    return {
        "eks": (
            scope.existing_cluster.arns(at, scope.stack)
            if scope.existing_cluster
            else f"arn:aws:eks:{at}:*/{scope.stack}-*"
        ),
        "sqs": f"arn:aws:sqs:{at}:{scope.stack}-*",
        "sns": f"arn:aws:sns:{at}:{scope.stack}-*",
        "logs": [
            f"arn:aws:logs:{at}:log-group:{prefix}{scope.stack}-*"
            for prefix in (CONTROL_PLANE, FLOW, POD_LOGS)
        ],
        "events": f"arn:aws:events:{at}:rule/{scope.stack}-*",
        "ecr": f"arn:aws:ecr:{at}:repository/{scope.stack}/*",
        **{each.name: each.arn.format(stack=scope.stack) for each in scope.services if each.arn},
        "ssm": f"arn:aws:ssm:{at}:parameter{parameter_name(scope.stack, '*')}",
    }


def _identity(writes: set[str], scope: Scope) -> Iterable[Document]:
    """Writes of IAM: roles and profiles of the stack, which get AWS's policies of ATTACHED only and
    go to AWS's services of PASSED_TO only. With a boundary, all that widens a role demands it, and
    nothing takes it away."""
    bounded = _equals("iam:PermissionsBoundary", scope.boundary) if scope.boundary else {}
    if scope.boundary and writes:
        writes = {*writes, *BOUND}
    roles = [f"arn:aws:iam::*:role/{scope.stack}-*", f"arn:aws:iam::*:role/{CLUSTER_ROLE}"]
    linked = "arn:aws:iam::*:role/aws-service-role"
    special = {
        "iam:AttachRolePolicy",
        "iam:CreateServiceLinkedRole",
        "iam:DetachRolePolicy",
        "iam:PassRole",
        *(WIDEN if scope.boundary else ()),
    }
    profiles = f"arn:aws:iam::*:instance-profile/{scope.stack}-*"
    yield from _one("WriteRoles", writes - special, {"Resource": [*roles, profiles]})
    if scope.boundary:
        limits = {"Resource": roles, "Condition": bounded}
        yield from _one("WriteBoundedRoles", writes & WIDEN, limits)
    passed_to = [*PASSED_TO, *([FLOW_LOGS] if scope.flow_logs else [])]
    passed_to += [each.passed_to for each in scope.services if each.passed_to]
    attached = [f"arn:aws:iam::aws:policy/{name}" for name in ATTACHED]
    yield from _one(
        "AttachPolicies",
        writes & {"iam:AttachRolePolicy", "iam:DetachRolePolicy"},
        {"Resource": roles, "Condition": {"ArnEquals": {"iam:PolicyARN": attached}, **bounded}},
    )
    yield from _one(
        "PassRoles",
        writes & {"iam:PassRole"},
        {"Resource": roles, "Condition": _equals("iam:PassedToService", passed_to)},
    )
    services = [role.service for role in (EKS, NODE_GROUPS, FSX, EFS)]
    services += [each.role.service for each in scope.services if each.role]
    yield from _one(
        "MakeServiceLinkedRoles",
        writes & {"iam:CreateServiceLinkedRole"},
        {
            "Resource": f"{linked}/*",
            "Condition": _equals("iam:AWSServiceName", [*services, S3_LINK]),
        },
    )
    if scope.buckets:
        put = writes & {"iam:PutRolePolicy"}
        yield from _one("LinkLustre", put, {"Resource": f"{linked}/{S3_LINK}/*"})


def _one(sid: str, allowed: set[str], limits: Document) -> Iterable[Document]:
    """A statement, where it would allow something."""
    if allowed:
        yield {"Sid": sid, "Action": sorted(allowed), **limits}


def _equals(key: str, value: str | list[str]) -> Document:
    return {"StringEquals": {key: value}}


def _document(statements: Iterable[Document]) -> Document:
    return {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", **statement} for statement in statements],
    }
