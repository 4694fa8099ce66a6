"""`trainyard policy`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.graph.test_recorded_stacks import EVERYTHING, graph_of, plan_of
from tests.support.existing_vpc import EXISTING_VPC
from tests.support.recording import CHECKOUT, Graph, deploy
from tests.support.stackfile import ENVIRONMENT, Edit, at, environment_plan, team_plan
from tests.support.stacks import KEY, STACKS, planned
from tests.support.teams import by_name, checkout, listed, team_of
from tests.support.tool import run_word
from trainyard.catalog.aws_types.row import When
from trainyard.catalog.aws_types.table import AWS_TYPES
from trainyard.reports import policy
from trainyard.stores.s3 import BUCKET_TYPES, VERSIONING

INSIDE = {
    "aws:eks/cluster:Cluster",
    "aws:iam/role:Role",
    "aws:iam/rolePolicyAttachment:RolePolicyAttachment",
}
"""Of the AWS resources that pulumi-eks's cluster makes, which the recording engine does not see."""


@pytest.mark.parametrize("stack", [*STACKS, EVERYTHING])
def test_the_types_of_a_stack_are_those_of_its_recorded_graph(stack: str) -> None:
    seen = {node.kind for node in graph_of(stack).starting("aws:")}
    inside = INSIDE if graph_of(stack).of("eks:index:Cluster") else set[str]()
    assert policy.resource_types(plan_of(stack)) == seen | inside


def test_the_stacks_between_them_have_every_type_that_is_not_always_there() -> None:
    stacks = (*STACKS, EVERYTHING)
    seen = {node.kind for stack in stacks for node in graph_of(stack).starting("aws:")}
    sometimes = {kind for kind, row in AWS_TYPES.items() if row.when is When.SETTING}
    assert sometimes - seen == set()
    assert seen <= AWS_TYPES.keys() and len(STACKS) >= 8


def test_a_bucket_of_the_stack_needs_the_types_that_its_graph_has() -> None:
    """Not among STACKS: CloudFormation has four of them as properties of one."""
    store = at("storage.corpus", {"s3": {"versioning": True}, "data": "delete"})
    graph = deploy("dev", lambda values: store(values[ENVIRONMENT]))
    seen = {node.kind for node in graph.starting("aws:")}
    plan = environment_plan(store)
    assert policy.resource_types(plan) == seen | INSIDE and {*BUCKET_TYPES, VERSIONING} <= seen
    [statement] = [
        statement
        for document in policy.policies(plan).values()
        for statement in document["Statement"]
        if statement["Sid"] == "WriteBuckets"
    ]
    assert "s3:CreateBucket" in statement["Action"]
    assert all(arn.startswith("arn:aws:s3:::dev-corpus-") for arn in statement["Resource"])


def test_a_team_has_no_resource_in_aws_and_needs_no_policy(team: Graph) -> None:
    assert team.starting("aws:") == [] and policy.policies(team_plan()) == {}


def test_the_stack_of_a_listed_team_reads_its_contract_and_nothing_else(tmp_path: Path) -> None:
    folder = checkout(tmp_path, listed, by_name)
    for preview in (False, True):
        found = policy.policies(team_of(folder), preview=preview)
        assert [*found] == [f"team-vision-{'preview' if preview else 'deployer'}"]
        [document] = found.values()
        [statement] = document["Statement"]
        assert statement == {
            "Effect": "Allow",
            "Sid": "ReadContract",
            "Action": ["ssm:GetParameter"],
            "Resource": "arn:aws:ssm:ap-northeast-2:*:parameter/trainyard/dev/teams/vision",
        }


def test_only_buckets_of_the_stack_file_are_linked() -> None:
    def linked(stack: str) -> list[str]:
        documents = policy.policies(planned(stack)).values()
        statements = [s for document in documents for s in document["Statement"]]
        return [str(s["Resource"]) for s in statements if s["Sid"].startswith("Link")]

    assert linked("dev") == []
    buckets, role = linked("Lustre linked to S3")
    assert buckets == "['arn:aws:s3:::my-sets']" and role.endswith(
        "/s3.data-source.lustre.fsx.amazonaws.com/*"
    )


def test_only_the_deployer_of_a_vpc_deletes_what_guardduty_has_put_into_it() -> None:
    """The AWS provider deletes it where it holds a subnet or the VPC."""

    def allowed(*edits: Edit) -> list[dict[str, Any]]:
        documents = policy.policies(environment_plan(*edits)).values()
        statements = [s for document in documents for s in document["Statement"]]
        return [s for s in statements if "GuardDutyManaged" in json.dumps(s)]

    [statement] = allowed()
    assert statement == {
        "Effect": "Allow",
        "Sid": "DeleteOfGuardDuty",
        "Action": ["ec2:DeleteSecurityGroup", "ec2:DeleteVpcEndpoints"],
        "Resource": ["arn:aws:ec2:ap-northeast-2:*:*"],
        "Condition": {"StringEquals": {"aws:ResourceTag/GuardDutyManaged": "true"}},
    }
    assert allowed(EXISTING_VPC) == []


CORPUS = at("storage.corpus", {"s3": {}, "data": "delete"})
NEED_MORE: dict[str, tuple[Edit, ...]] = {
    "storage": (at("storage.more", {"s3": {}, "data": "delete"}),),
    "registries": (at("registries", {"training": {}}),),
    "teams": (at("teams", {"vision": {"deployer": "arn:aws:iam::123456789012:role/vision"}}),),
    "network.flow_logs": (at("network.flow_logs", {"days": 7}),),
    "network.endpoints": (at("network.endpoints", "private"),),
    "kms_key_arn": (at("kms_key_arn", KEY),),
    "permissions_boundary": (
        at("permissions_boundary", "arn:aws:iam::123456789012:policy/limits"),
    ),
    "metrics.managed_prometheus": (at("metrics", {"managed_prometheus": {}}),),
    "budget": (at("budget", {"dollars_a_month": 20000, "emails": ["a@example.com"]}),),
}
"""Setting that docs/deployer-policy.md names → a change of it in a stack with a store on S3."""


def test_the_page_names_settings_that_need_other_policies() -> None:
    text = (CHECKOUT / "docs/deployer-policy.md").read_text()
    [named] = re.findall(r"These settings need other policies: (.*?)\.\s", " ".join(text.split()))
    assert re.findall("`([^`]+)`", named) == [*NEED_MORE]
    attached = policy.policies(environment_plan(CORPUS))
    for setting, edits in NEED_MORE.items():
        assert policy.policies(environment_plan(CORPUS, *edits)) != attached, setting
    for edit in (at("pools.g6e.max_nodes", 5), at("tags", {"cost-center": "17"})):
        assert policy.policies(environment_plan(CORPUS, edit)) == attached


def test_the_word_prints_all_documents_or_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_word("policy", ["dev"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [*found] == [
        f"dev-deployer-{part}" for part in ("reads", "network", "cluster", "storage", "identity")
    ]
    assert run_word("policy", ["dev", "--part", "network"]) == 0
    assert json.loads(capsys.readouterr().out) == found["dev-deployer-network"]
    assert run_word("policy", ["dev", "--preview", "--part", "preview"]) == 0
    assert "iam:PassRole" not in capsys.readouterr().out


def test_a_policy_or_a_stack_that_is_not_there_is_an_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert (run_word("policy", ["dev", "--part", "nodes"]), run_word("policy", ["none"])) == (2, 2)
    said = capsys.readouterr().out
    assert "dev: no policy nodes; there are reads, network, cluster, storage, identity" in said
    assert "none: no stack file" in said
