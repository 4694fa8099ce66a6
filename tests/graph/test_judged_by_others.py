"""Every AWS resource and every IAM document of the recorded stacks, judged by cfn-lint: by AWS's
resource schemas, and by the calls and resources that IAM knows."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from cfnlint import api
from cfnlint.config import ManualArgs

from tests.graph.test_recorded_stacks import EVERYTHING, MORE, graph_of, plan_of
from tests.support.cloudformation import CLUSTER, REGION, template
from tests.support.recording import Node
from tests.support.stacks import STACKS
from trainyard.reports.policy import policies

IAM_RULES = ("W2511", "W3037", "I3510")
"""What cfn-lint calls a warning or information and is an error here: an old language of policies, a
call that IAM does not know, and a resource that the call does not take."""
SEVERAL_STACKS = ("E3019", "E3022")
"""The stacks have the same names, so in one template two clusters have one name, and a subnet has the
route tables of two stacks."""
Template = dict[str, Any]


def _judged(wanted: Template) -> list[str]:
    config = ManualArgs(regions=[REGION], include_checks=["I3510"])
    return sorted(
        f"{match.rule.id} {'/'.join(map(str, getattr(match, 'path', ())))}: {match.message}"
        for match in api.lint(json.dumps(wanted), config=config)
        if match.rule.id.startswith("E") or match.rule.id in IAM_RULES
        if match.rule.id not in SEVERAL_STACKS
    )


def _template(stacks: Iterable[str]) -> Template:
    """All resources of the stacks, and all policies of their deployers."""
    nodes: list[Node] = []
    for stack in stacks:
        nodes += [*graph_of(stack).starting("aws:"), *graph_of(stack).of(CLUSTER)]
    found = template(nodes)
    documents = {
        json.dumps(document): f"{name}{number}"
        for number, stack in enumerate(stacks)
        for preview in (False, True)
        for name, document in policies(plan_of(stack), preview=preview).items()
    }
    for text, name in documents.items():
        found["Resources"][name.title().replace("-", "")] = {
            "Type": "AWS::IAM::ManagedPolicy",
            "Properties": {"PolicyDocument": json.loads(text)},
        }
    return found


@pytest.fixture(scope="module")
def everything() -> Template:
    return _template(STACKS)


@pytest.fixture(scope="module")
def every_setting() -> Template:
    return _template([EVERYTHING])


def test_cfn_lint_finds_no_error_in_the_stack_with_every_setting(every_setting: Template) -> None:
    """Apart from the others: two stacks in one template give one VPC two private names of an API."""
    kinds = [each["Type"] for each in every_setting["Resources"].values()]
    assert len(set(kinds)) > 30 and kinds.count("AWS::S3::Bucket") == 5
    assert _judged(every_setting) == []


@pytest.mark.parametrize("stack", MORE)
def test_cfn_lint_finds_no_error_in_a_stack_that_is_recorded_by_its_changes(stack: str) -> None:
    assert _judged(_template([stack])) == []


def test_cfn_lint_finds_no_error_in_any_resource_or_iam_document(everything: Template) -> None:
    kinds = [each["Type"] for each in everything["Resources"].values()]
    assert len(set(kinds)) > 25 and kinds.count("AWS::IAM::RolePolicy") >= 3
    assert _judged(everything) == []


def _changed(kind: str, path: str, value: Any) -> Callable[[Template], Template]:
    """A template with one resource of the type, and one of its values changed."""

    def change(everything: Template) -> Template:
        [name, *_] = [n for n, one in everything["Resources"].items() if one["Type"] == kind]
        found = copy.deepcopy(everything["Resources"][name])
        *way, last = path.split(".")
        inside = found["Properties"]
        for key in way:
            inside = inside[int(key) if key.isdigit() else key]
        inside[last] = value
        return {**everything, "Resources": {name: found}}

    return change


@pytest.mark.parametrize(
    ("fault", "rule"),
    [
        (_changed("AWS::EKS::Nodegroup", "AmiType", "AL2022_x86_64"), "E3030"),
        (_changed("AWS::EKS::Nodegroup", "Disksize", 50), "E3002"),
        (_changed("AWS::EC2::Subnet", "CidrBlock", "10.0.0.0/33"), "E3002"),
        (_changed("AWS::EC2::SecurityGroupIngress", "FromPort", "nfs"), "E3012"),
        (_changed("AWS::IAM::Role", "RoleName", "r" * 65), "E3033"),
        (_changed("AWS::IAM::RolePolicy", "PolicyDocument.Statement.0.Effect", "May"), "E3510"),
        (
            _changed(
                "AWS::IAM::RolePolicy", "PolicyDocument.Statement.0.Action", "ec2:RunInstance"
            ),
            "W3037",
        ),
        (
            _changed(
                "AWS::IAM::RolePolicy", "PolicyDocument.Statement.1.Resource", ["arn:aws:s3:::b"]
            ),
            "I3510",
        ),
        (_changed("AWS::SQS::QueuePolicy", "PolicyDocument.Statement.0.Principal", 7), "E3512"),
        (
            _changed("AWS::IAM::Role", "AssumeRolePolicyDocument.Statement.0.Principal", 7),
            "E3530",
        ),
    ],
)
def test_cfn_lint_finds_a_planted_fault(
    everything: Template, fault: Callable[[Template], Template], rule: str
) -> None:
    assert rule in {line.split()[0] for line in _judged(fault(everything))}


@pytest.mark.parametrize(
    ("having", "path", "value", "rule"),
    [
        ("BucketName", "BucketName", "Our_Data", "E3031"),
        ("LifecycleConfiguration", "LifecycleConfiguration.Rules.0.Status", "On", "E3030"),
        ("LifecycleConfiguration", "LifecycleConfiguration.Rules.0.Filter", {}, "E3002"),
        (
            "BucketEncryption",
            "BucketEncryption.ServerSideEncryptionConfiguration.0.ServerSideEncryptionByDefault"
            ".SSEAlgorithm",
            "rot13",
            "E3030",
        ),
        ("VersioningConfiguration", "VersioningConfiguration.Status", "Yes", "E3030"),
        (
            "PublicAccessBlockConfiguration",
            "PublicAccessBlockConfiguration.BlockAll",
            True,
            "E3002",
        ),
    ],
)
def test_cfn_lint_finds_a_planted_fault_of_a_bucket(
    every_setting: Template, having: str, path: str, value: Any, rule: str
) -> None:
    buckets = {
        name: each
        for name, each in every_setting["Resources"].items()
        if each["Type"] == "AWS::S3::Bucket" and having in each["Properties"]
    }
    planted = _changed("AWS::S3::Bucket", path, value)({**every_setting, "Resources": buckets})
    assert rule in {line.split()[0] for line in _judged(planted)}, _judged(planted)
