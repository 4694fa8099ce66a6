"""Objects of an account are found from the inputs of the program, by moto's account."""

from __future__ import annotations

import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, ClassVar

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from tests.support.recording import Graph
from tests.support.stacks import STACKS, recorded
from trainyard.catalog.aws_types.table import AWS_TYPES
from trainyard.operations.reach import lookup
from trainyard.operations.reach.lookup import ExistingObject, find

TRUST = json.dumps({"Version": "2012-10-17", "Statement": []})
WRITE = {"Effect": "Allow", "Action": "logs:PutLogEvents", "Resource": "*"}
RIGHTS = json.dumps({"Version": "2012-10-17", "Statement": [WRITE]})
MANAGED = "arn:aws:iam::aws:policy/AmazonEKSWorkerNodePolicy"
CASES: dict[str, tuple[dict[str, str], str]] = {
    "aws:iam/rolePolicy:RolePolicy": ({"role": "nodes", "name": "write"}, "nodes:write"),
    "aws:iam/rolePolicyAttachment:RolePolicyAttachment": (
        {"role": "nodes", "policyArn": MANAGED},
        f"nodes/{MANAGED}",
    ),
    "aws:cloudwatch/eventRule:EventRule": ({"name": "spot"}, "spot"),
    "aws:cloudwatch/eventTarget:EventTarget": (
        {"rule": "spot", "targetId": "karpenter"},
        "spot/karpenter",
    ),
    "aws:sns/topic:Topic": ({"name": "alerts"}, "arn:aws:sns:us-east-1:123456789012:alerts"),
}


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Iterator[boto3.Session]:
    monkeypatch.setenv("MOTO_IAM_LOAD_MANAGED_POLICIES", "true")
    with mock_aws():
        yield boto3.Session("id", "secret", region_name="us-east-1")


def _made(session: boto3.Session) -> None:
    iam, events = session.client("iam"), session.client("events")
    iam.create_role(RoleName="nodes", AssumeRolePolicyDocument=TRUST)
    iam.put_role_policy(RoleName="nodes", PolicyName="write", PolicyDocument=RIGHTS)
    iam.attach_role_policy(RoleName="nodes", PolicyArn=MANAGED)
    events.put_rule(Name="spot", EventPattern="{}")
    queue = "arn:aws:sqs:us-east-1:123456789012:q"
    events.put_targets(Rule="spot", Targets=[{"Id": "karpenter", "Arn": queue}])
    session.client("sns").create_topic(Name="alerts")


@pytest.mark.parametrize("kind", CASES)
def test_what_would_outlive_a_destroy_after_a_killed_update_is_found(
    session: boto3.Session, kind: str
) -> None:
    inputs, id_ = CASES[kind]
    assert find(session, kind, inputs) is None
    _made(session)
    assert find(session, kind, inputs) == ExistingObject(id=id_)


@pytest.mark.parametrize(
    ("kind", "other"),
    [
        ("aws:iam/rolePolicyAttachment:RolePolicyAttachment", {"policyArn": f"{MANAGED}2"}),
        ("aws:cloudwatch/eventTarget:EventTarget", {"targetId": "another"}),
    ],
)
def test_another_one_of_the_same_holder_is_not_it(
    session: boto3.Session, kind: str, other: dict[str, Any]
) -> None:
    _made(session)
    assert find(session, kind, CASES[kind][0] | other) is None


def test_a_workspace_is_found_by_its_whole_name(session: boto3.Session) -> None:
    """AWS gives it an id, and lists all whose names begin so."""
    amp, kind = session.client("amp"), "aws:amp/workspace:Workspace"
    amp.create_workspace(alias="dev-metrics-2")
    assert find(session, kind, {"alias": "dev-metrics"}) is None
    id_ = amp.create_workspace(alias="dev-metrics")["workspaceId"]
    assert find(session, kind, {"alias": "dev-metrics"}) == ExistingObject(id=id_)


def test_a_budget_is_found_by_its_name_in_the_account(session: boto3.Session) -> None:
    kind, inputs = "aws:budgets/budget:Budget", {"name": "dev-month"}
    assert find(session, kind, inputs) is None
    budget = {
        "BudgetName": "dev-month",
        "BudgetType": "COST",
        "TimeUnit": "MONTHLY",
        "BudgetLimit": {"Amount": "100", "Unit": "USD"},
    }
    session.client("budgets").create_budget(AccountId="123456789012", Budget=budget)
    assert find(session, kind, inputs) == ExistingObject(id="123456789012:dev-month")


def test_a_group_that_is_taken_back_reaches_nobody_as_one_that_was_made_whole(
    session: boto3.Session,
):
    ec2 = session.client("ec2")
    group = ec2.create_security_group(GroupName="nodes", Description="nodes")["GroupId"]
    ec2.authorize_security_group_egress(
        GroupId=group,
        IpPermissions=[
            {
                "IpProtocol": "tcp",
                "FromPort": 1,
                "ToPort": 2,
                "IpRanges": [{"CidrIp": "10.0.0.0/8"}],
            }
        ],
    )
    for kind in ("aws:ec2/vpc:Vpc", "aws:ec2/securityGroup:SecurityGroup"):
        lookup.remove_unwanted_egress_rules(session, kind, group)
    rules = ec2.describe_security_group_rules(Filters=[{"Name": "group-id", "Values": [group]}])[
        "SecurityGroupRules"
    ]
    assert [rule["CidrIpv4"] for rule in rules if rule["IsEgress"]] == ["10.0.0.0/8"]


class Fsx:
    """Associations on two pages: a stranger's, one of ours on its way out, and ours."""

    TAGS: ClassVar = dict.fromkeys(lookup.TAGS, "it")

    def client(self, service: str) -> Fsx:
        return self

    def describe_data_repository_associations(self, NextToken: str = "") -> dict[str, Any]:
        ours = [{"Key": key, "Value": value} for key, value in self.TAGS.items()]
        first = {
            "Associations": [
                {"AssociationId": "dra-1", "Lifecycle": "AVAILABLE", "Tags": ours[:2]},
                {"AssociationId": "dra-2", "Lifecycle": "DELETING", "Tags": ours},
            ],
            "NextToken": "n",
        }
        return (
            {"Associations": [{"AssociationId": "dra-3", "Lifecycle": "CREATING", "Tags": ours}]}
            if NextToken
            else first
        )


def test_a_link_to_s3_that_a_killed_update_left_is_found_by_its_tags_on_any_page():
    session: Any = Fsx()
    kind = "aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation"
    found = lookup.find(session, kind, {"tags": Fsx.TAGS})
    assert found == ExistingObject(id="dra-3", settled=False)
    assert lookup.find(session, kind, {"tags": Fsx.TAGS}, {"dra-3"}) is None, "the state holds it"


def test_an_object_whose_inputs_are_not_known_yet_cannot_exist():
    unknown = {"vpcId": "04da6b54-80e4-46f7-96ec-b56ff0331ba9"}
    assert lookup.find(None, "aws:ec2/subnet:Subnet", unknown) is None  # type: ignore[arg-type]


def test_what_aws_lets_us_make_twice_is_not_looked_for():
    assert lookup.find(None, "aws:sqs/queuePolicy:QueuePolicy", {}) is None  # type: ignore[arg-type]


TWICE = {
    "aws:amp/workspaceConfiguration:WorkspaceConfiguration",
    "aws:ecr/lifecyclePolicy:LifecyclePolicy",
    "aws:eks/accessPolicyAssociation:AccessPolicyAssociation",
    "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration",
    "aws:efs/fileSystemPolicy:FileSystemPolicy",
    "aws:s3/bucketPolicy:BucketPolicy",
    "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock",
    "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration",
    "aws:sns/topicSubscription:TopicSubscription",
    "aws:sqs/queuePolicy:QueuePolicy",
}
"""Types that AWS lets us make twice with the same result, and that end with what they belong to."""


def test_every_other_type_of_aws_is_looked_for(most: Graph):
    graphs = [most, *map(recorded, STACKS)]
    kinds = {node.kind for graph in graphs for node in graph.starting("aws:")}
    assert {kind for kind in kinds if not AWS_TYPES[kind].finder} == TWICE


def test_an_object_that_aws_is_still_deleting_leaves_and_is_not_adopted():
    session: Any = Fsx()
    kind = "aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation"
    held = {"type": kind, "inputs": {"tags": Fsx.TAGS}}
    assert lookup.leaves(session, held | {"id": "dra-2"})
    assert not lookup.leaves(session, held | {"id": "dra-3"})
    assert lookup.find(session, kind, {"tags": Fsx.TAGS}, {"dra-3"}) is None


def test_a_template_a_placement_group_and_a_parameter_are_found():
    """All three have names that only one object can have."""
    tags = dict.fromkeys(lookup.TAGS, "it")
    answers = {
        "describe_launch_templates": {"LaunchTemplates": [{"LaunchTemplateId": "lt-1"}]},
        "describe_placement_groups": {
            "PlacementGroups": [{"GroupName": "nodes", "State": "available"}]
        },
        "get_parameter": {"Parameter": {"Name": "/it"}},
    }

    class Client:
        def __getattr__(self, call: str) -> Any:
            return lambda **_: answers[call]

    session: Any = SimpleNamespace(client=lambda service: Client())
    for kind, inputs, id_ in (
        ("aws:ec2/launchTemplate:LaunchTemplate", {"tags": tags}, "lt-1"),
        ("aws:ec2/placementGroup:PlacementGroup", {"tags": tags}, "nodes"),
        ("aws:ssm/parameter:Parameter", {"name": "/it"}, "/it"),
    ):
        assert lookup.find(session, kind, inputs) == ExistingObject(id=id_)
        assert lookup.find(session, kind, inputs, {id_}) is None, "the state holds it"


@pytest.mark.parametrize(
    "code",
    [
        "NoSuchEntity",
        "ResourceNotFoundException",
        "InvalidVpcID.NotFound",
        "AWS.SimpleQueueService.NonExistentQueue",
    ],
)
def test_every_way_in_which_aws_says_no_such_thing_is_understood(code: str):
    def absent(**_: str) -> None:
        raise ClientError({"Error": {"Code": code, "Message": ""}}, "Describe")

    session: Any = SimpleNamespace(client=lambda service: SimpleNamespace(get_role=absent))
    assert lookup.find(session, "aws:iam/role:Role", {"name": "nodes"}) is None


def test_an_object_that_aws_is_still_making_is_not_settled():
    assert lookup._state("c", "CREATING") == ExistingObject(id="c", settled=False)
    assert lookup._state("c", "ACTIVE") == ExistingObject(id="c")
    assert lookup._state("c", "DELETING") == ExistingObject(id="c", leaving=True)
    assert lookup._state("c", "DELETED") is None


class Logs:
    """Log groups whose names begin alike, on two pages."""

    def client(self, service: str) -> Logs:
        return self

    def describe_log_groups(self, logGroupNamePrefix: str, nextToken: str = "") -> dict[str, Any]:
        if nextToken:
            return {"logGroups": [{"logGroupName": logGroupNamePrefix}]}
        return {"logGroups": [{"logGroupName": f"{logGroupNamePrefix}-2"}], "nextToken": "n"}


@pytest.mark.parametrize(("name", "found"), [("/aws/eks/dev/cluster", True), ("", False)])
def test_a_log_group_that_eks_has_made_is_found_by_its_whole_name(name: str, found: bool):
    session: Any = Logs()
    kind = "aws:cloudwatch/logGroup:LogGroup"
    if not found:
        session.describe_log_groups = lambda logGroupNamePrefix: {"logGroups": []}
    expected = ExistingObject(id=name) if found else None
    assert lookup.find(session, kind, {"name": name}) == expected
