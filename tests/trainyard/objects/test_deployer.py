"""The policies of whoever deploys a stack: enough, and no more."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

import pytest

from tests.support.stacks import BOUNDARY, STACKS, planned, recorded
from tests.trainyard.catalog.aws.test_permissions import KNOWN
from trainyard.catalog.aws import permissions
from trainyard.catalog.aws.questions import QUESTIONS
from trainyard.catalog.aws.service_roles import ServiceRole
from trainyard.catalog.aws_types.table import AWS_TYPES
from trainyard.objects import deployer
from trainyard.objects.deployer import Scope, deployer_policies, preview_policies
from trainyard.objects.iam.policies import OptionalService
from trainyard.objects.iam.tagging import is_tagging
from trainyard.parts.parts import SERVICES
from trainyard.reports.policy import policies

SCOPE = Scope(
    stack="dev",
    region="eu-west-1",
    buckets=("my-sets",),
    own_buckets=("dev-corpus-*",),
    private_names=True,
    services=SERVICES,
)
EVERYTHING = deployer_policies(AWS_TYPES, SCOPE)
STATEMENTS = [s for document in EVERYTHING.values() for s in document["Statement"]]


def _service(action: str) -> str:
    return action.partition(":")[0]


def _all(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


def test_all_calls_of_all_types_are_allowed_somewhere() -> None:
    allowed = {action for statement in STATEMENTS for action in statement["Action"]}
    assert allowed == permissions.actions(AWS_TYPES) | set(QUESTIONS)


@pytest.mark.parametrize("stack", STACKS)
def test_each_document_fits_a_managed_policy_and_names_each_statement_once(stack: str) -> None:
    found = policies(planned(stack))
    sizes = {name: len("".join(json.dumps(one).split())) for name, one in found.items()}
    assert max(sizes.values()) <= deployer.LARGEST and len(sizes) <= 10, sizes
    for document in found.values():
        sids = [statement["Sid"] for statement in document["Statement"]]
        assert len(sids) == len(set(sids)) and all(sid.isalnum() for sid in sids)


def test_the_documents_with_everything_fit_managed_policies() -> None:
    sizes = [len("".join(json.dumps(one).split())) for one in EVERYTHING.values()]
    assert max(sizes) <= deployer.LARGEST


def test_no_call_is_allowed_by_wildcard_and_no_write_without_a_limit() -> None:
    for statement in STATEMENTS:
        assert not [action for action in statement["Action"] if "*" in action]
        if statement["Resource"] == "*" and "Condition" not in statement:
            assert all(permissions.READS.match(action) for action in statement["Action"])


AMIS = "arn:aws:ssm:eu-west-1::parameter/aws/service/eks/optimized-ami/*"
CONTRACTS = "arn:aws:ssm:eu-west-1:*:parameter/trainyard/dev/teams/*"
WITHOUT_TEAMS = AWS_TYPES.keys() - {"aws:ssm/parameter:Parameter"}


@pytest.mark.parametrize(
    ("types", "allowed"),
    [(WITHOUT_TEAMS, {AMIS}), (AWS_TYPES, {AMIS, CONTRACTS})],
    ids=["without teams", "with teams"],
)
def test_of_parameters_only_amis_of_eks_and_contracts_of_teams_can_be_read(
    types: Collection[str], allowed: set[str]
) -> None:
    """A parameter of the account may be a secret."""
    for documents in (deployer_policies(types, SCOPE), preview_policies(types, SCOPE)):
        statements = [s for document in documents.values() for s in document["Statement"]]
        reading = [s for s in statements if "ssm:GetParameter" in s["Action"]]
        assert [{*s["Resource"]} for s in reading] == [allowed]


def test_an_arn_names_its_service_as_iam_demands() -> None:
    arns = [arn for s in STATEMENTS for arn in _all(s["Resource"]) if arn != "*"]
    assert arns and all(arn.split(":")[:2] == ["arn", "aws"] for arn in arns)
    assert not [arn for arn in arns if "*" in arn.split(":")[2]]


def test_a_call_limited_to_resources_takes_resources_of_that_kind() -> None:
    """With a resource that the call does not take, a statement allows nothing."""
    for statement in STATEMENTS:
        if statement["Resource"] == "*":
            continue
        for action in statement["Action"]:
            service, _, name = action.partition(":")
            kinds = KNOWN[service]["Actions"][name.lower()].get("Resources")
            assert kinds, f"{action} takes no resource"
            taken = {arn.split(":")[2] for arn in _all(statement["Resource"])}
            assert service in taken, (action, taken)


def test_calls_that_take_no_resource_are_the_table_of_them() -> None:
    named = ("eks", "sqs", "sns", "events", "ecr", "elasticfilesystem", "ssm")
    none = {
        action
        for action in permissions.actions(AWS_TYPES)
        if _service(action) in named
        and not permissions.READS.match(action)
        and not KNOWN[_service(action)]["Actions"][action.partition(":")[2].lower()].get(
            "Resources"
        )
    }
    assert none == deployer.ANYWHERE


def test_a_deletion_by_tag_is_of_one_resource_that_has_the_tag() -> None:
    """Another resource of the same call would lack the tag, and the call would be denied."""
    for action in {*deployer.OWN_TAGS, *(call for each in SERVICES for call in each.deletes)}:
        service, _, name = action.partition(":")
        named = {*KNOWN[service]["Actions"][name.lower()]["Resources"]}
        also = {"backup"} if action in deployer.ALSO_OF_BACKUPS else set[str]()
        assert also <= named and len(named - also) == 1, action


def test_no_call_tags_what_somebody_else_has_made() -> None:
    """Whoever gives the stack's tag to something may delete it. A name of the stack says whose something is; of what
    AWS names, only its tags do, or that the call creates it."""
    own = {"aws:ResourceTag/trainyard:stack": "dev"}
    by_id = [
        (call, statement)
        for statement in STATEMENTS
        for call in statement["Action"]
        if is_tagging(call) and _service(call) in SCOPE.with_ids()
    ]
    assert {_service(call) for call, _ in by_id} == {*deployer.IDS, "backup"}
    for call, statement in by_id:
        limits = [*statement.get("Condition", {}).values()]
        created = any("CreateAction" in key for limit in limits for key in limit)
        rules = "security-group-rule/" in str(statement["Resource"])
        assert limits == [own] or created or rules, (call, statement["Sid"])


OPTIONAL = OptionalService(
    name="budgets",
    policy="storage",
    deletes=("budgets:ModifyBudget",),
    keys=("RetireGrant",),
    passed_to="passed.amazonaws.com",
    role=ServiceRole(name="AWSServiceRoleForIt", service="linked.amazonaws.com", maker="It"),
)


def test_a_service_that_only_some_stacks_use_says_what_the_deployer_may_do_with_it() -> None:
    scope = replace(SCOPE, services=(OPTIONAL,), key="arn:aws:kms:eu-west-1:111122223333:key/a")
    having = deployer_policies({*AWS_TYPES}, scope)
    storage = {one["Sid"]: one for one in having["dev-deployer-storage"]["Statement"]}
    assert "budgets:ModifyBudget" in storage["DeleteOwn"]["Action"]
    assert "arn:aws:budgets:eu-west-1:*:*" in storage["DeleteOwn"]["Resource"]
    assert "budgets:TagResource" in storage["TagNotOfOthers"]["Action"]
    assert "kms:RetireGrant" in storage["UseKeys"]["Action"]
    via = storage["UseKeys"]["Condition"]["StringEquals"]["kms:ViaService"]
    assert "budgets.eu-west-1.amazonaws.com" in via
    without = deployer_policies({*AWS_TYPES} - {"aws:budgets/budget:Budget"}, scope)
    for word in ("passed.amazonaws.com", "linked.amazonaws.com", "budgets"):
        assert word in json.dumps(having) and word not in json.dumps(without)


@pytest.mark.parametrize("stack", STACKS)
def test_the_names_in_the_policies_are_those_of_the_stacks_resources(stack: str) -> None:
    graph = recorded(stack)
    resources = {
        resource
        for document in policies(planned(stack)).values()
        for statement in document["Statement"]
        for resource in _all(statement["Resource"])
    }

    def covered(arn: str) -> bool:
        return any(fnmatchcase(arn, resource) for resource in resources if resource != "*")

    at = "ap-northeast-2:123456789012"
    for kind, prefix in {
        "aws:iam/role:Role": "arn:aws:iam::123456789012:role/",
        "InstanceProfile": "arn:aws:iam::123456789012:instance-profile/",
        "Queue": f"arn:aws:sqs:{at}:",
        "EventRule": f"arn:aws:events:{at}:rule/",
        "Repository": f"arn:aws:ecr:{at}:repository/",
        "eks:index:Cluster": f"arn:aws:eks:{at}:cluster/",
    }.items():
        names = [node.inputs["name"] for node in graph.of(kind)]
        assert all(covered(prefix + name) for name in names), (kind, names)
    assert covered("arn:aws:iam::123456789012:role/cluster-eksRole-role-0a1b2c3")
    assert not covered("arn:aws:iam::123456789012:role/admin")


def test_a_role_gets_no_other_policy_of_aws_than_the_stacks_own() -> None:
    attached = {
        each.inputs["policyArn"].rpartition("/")[2]
        for stack in STACKS
        for each in recorded(stack).of("RolePolicyAttachment")
    }
    assert attached | {"AmazonEKSClusterPolicy"} == set(deployer.ATTACHED)


@pytest.mark.parametrize("stack", STACKS)
def test_what_the_policy_may_delete_by_tag_has_the_tag(stack: str) -> None:
    graph = recorded(stack)
    for kind in ("Vpc", "Subnet", "SecurityGroup", "NatGateway", "Eip", "InternetGateway"):
        for node in graph.of(kind):
            assert node.inputs["tags"]["trainyard:stack"] == "dev", node
    for kind in ("RouteTable", "VpcEndpoint", "PlacementGroup", "LaunchTemplate"):
        for node in graph.of(kind):
            assert node.inputs["tags"]["trainyard:stack"] == "dev", node
    for kind in ("FileSystem", "LustreFileSystem"):
        for node in graph.of(kind):
            assert node.inputs["tags"]["trainyard:stack"] == "dev", node


def test_a_previewing_role_reads_and_nothing_else() -> None:
    [(name, document)] = preview_policies(AWS_TYPES, SCOPE).items()
    actions = [action for statement in document["Statement"] for action in statement["Action"]]
    assert name == "dev-preview" and len(actions) > 50
    assert all(permissions.READS.match(action) for action in actions)


BOUND = "arn:aws:iam::123456789012:policy/boundary"


def test_with_a_boundary_no_role_is_widened_without_it_and_nothing_takes_it_away() -> None:
    documents = deployer_policies(AWS_TYPES, replace(SCOPE, boundary=BOUND))
    statements = [s for document in documents.values() for s in document["Statement"]]
    widening = {
        "iam:AttachRolePolicy",
        "iam:CreateRole",
        "iam:PutRolePermissionsBoundary",
        "iam:PutRolePolicy",
    }
    found = {
        action: statement.get("Condition", {}).get("StringEquals")
        for statement in statements
        if statement["Sid"] != "LinkLustre"  # on a role of AWS, which takes no boundary
        for action in statement["Action"]
        if action in {*widening, "iam:DeleteRolePermissionsBoundary"}
    }
    assert found == dict.fromkeys(widening, {"iam:PermissionsBoundary": BOUND})
    assert "iam:PermissionsBoundary" not in json.dumps(EVERYTHING)
    sizes = [len("".join(json.dumps(one).split())) for one in documents.values()]
    assert max(sizes) <= deployer.LARGEST


def test_only_parts_with_roles_speak_of_the_boundary() -> None:
    parts = deployer_policies(AWS_TYPES, replace(SCOPE, boundary=BOUNDARY))
    plain = {name for name, one in EVERYTHING.items() if "iam:CreateRole" in str(one)}
    assert {name for name, one in parts.items() if "PermissionsBoundary" in str(one)} == plain


def test_the_boundary_of_the_stack_file_reaches_the_policy() -> None:
    found = json.dumps(policies(planned("registries, admins, operator, alerts and tags")))
    assert BOUNDARY in found and BOUNDARY not in json.dumps(policies(planned("dev")))


def _allowed(stack: str) -> set[str]:
    documents = policies(planned(stack)).values()
    return {a for one in documents for s in one["Statement"] for a in _all(s["Action"])}


def test_who_deploys_without_the_internet_makes_no_gateway_and_names_endpoints() -> None:
    isolated, dev = _allowed("no way to the internet"), _allowed("dev")
    assert {
        "ec2:CreateNatGateway",
        "ec2:CreateInternetGateway",
        "ec2:CreateRoute",
    } <= dev - isolated
    assert "route53:AssociateVPCWithHostedZone" in isolated - dev
    assert "ec2:CreateVpcEndpoint" in isolated & dev
