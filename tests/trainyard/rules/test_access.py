"""Who speaks to AWS and to the cluster, and in which account: what the stack file's settings come
to, and what they may not say."""

from __future__ import annotations

import json
from typing import Any

import pulumi
import pytest

from tests.support.recording import CHECKOUT, Graph, deploy
from tests.support.stackfile import ENVIRONMENT, Edit, at, values
from tests.support.sweep import lines_not_reached
from trainyard.decide import plan_stack
from trainyard.derive.credentials import NotAssumed
from trainyard.plan import Planned
from trainyard.plans.access import AccessPlan, AssumedRole
from trainyard.rules import access
from trainyard.settings.aws import AssumeRoleConfig, AwsConfig
from trainyard.settings.reading.reader import read

HUB, ROLE, OTHER = (
    "arn:aws:iam::111122223333:role/hub",
    "arn:aws:iam::444455556666:role/path/deployer",
    "arn:aws:iam::444455556666:role/ops",
)


def one(*arns: str, **more: str) -> list[dict[str, str]]:
    """aws:assumeRoles of these roles; `more` is said of the last."""
    roles = [{"roleArn": arn} for arn in arns]
    return [*roles[:-1], roles[-1] | more]


def planned(account: dict[str, Any], *edits: Edit, stack: str = "dev") -> Planned:
    given = values(*edits, stack=stack) | {f"aws:{key}": value for key, value in account.items()}
    return plan_stack(read(given, stack=stack, project="trainyard"), CHECKOUT)


def built(account: dict[str, Any], *edits: Edit) -> Graph:
    def changes(given: dict[str, Any]) -> None:
        given |= {f"aws:{key}": value for key, value in account.items()}
        for edit in edits:
            edit(given[ENVIRONMENT])

    return deploy("dev", changes)


SDK = ("version", "skipCredentialsValidation", "skipRegionValidation")
"""Inputs that the SDK adds by itself."""


def provider(graph: Graph) -> dict[str, Any]:
    """The AWS provider's inputs; it takes what is no text as JSON."""
    inputs = graph["pulumi:providers:aws aws"].inputs
    return {
        key: json.loads(value) if value[:1] in ("[", "{") else value
        for key, value in inputs.items()
        if key not in SDK
    }


def token_arguments(graph: Graph) -> list[str]:
    """What follows the region in the kubeconfig's `aws eks get-token`."""
    [user] = json.loads(graph.outputs["kubeconfig"])["users"]
    given = user["user"]["exec"]["args"]
    return given[given.index("--region") + 2 :]


# What they come to.


def test_with_nothing_set_the_provider_has_a_region_and_the_caller_is_who_it_is(dev: Graph) -> None:
    assert provider(dev) == {"region": "ap-northeast-2"} and token_arguments(dev) == []


def test_provider_and_kubeconfig_are_one_identity() -> None:
    graph = built(
        {
            "profile": "corp",
            "assumeRoles": one(HUB, ROLE, sessionName="ci", duration="2h"),
            "allowedAccountIds": ["444455556666"],
            "defaultTags": {"tags": {"cost-center": "17"}},
        }
    )
    assert provider(graph) == {
        "region": "ap-northeast-2",
        "profile": "corp",
        "assumeRoles": [
            {"roleArn": HUB},
            {"roleArn": ROLE, "sessionName": "ci", "duration": "2h"},
        ],
        "allowedAccountIds": ["444455556666"],
        "defaultTags": {"tags": {"cost-center": "17"}},
    }
    assert token_arguments(graph) == ["--profile", "corp", "--role-arn", ROLE]


def test_an_account_can_be_forbidden() -> None:
    assert provider(built({"forbiddenAccountIds": ["111122223333"]}))["forbiddenAccountIds"] == [
        "111122223333"
    ]


@pytest.mark.parametrize(
    ("account", "edits"),
    [
        ({"assumeRole": {"roleArn": ROLE}}, []),
        ({"assumeRoles": one(ROLE)}, []),
        ({}, [at("cluster.deployer_role_arn", ROLE)]),
        ({"assumeRoles": one(ROLE)}, [at("cluster.deployer_role_arn", ROLE)]),
    ],
)
def test_the_deployer_makes_the_cluster_and_so_needs_no_access_entry(
    account: dict[str, Any], edits: list[Edit]
) -> None:
    graph = built(account, *edits)
    assert provider(graph)["assumeRoles"] == [{"roleArn": ROLE}]
    assert token_arguments(graph) == ["--role-arn", ROLE]
    assert [entry.name for entry in graph.of("AccessEntry")] == ["gpu-nodes"]


def test_nodes_that_karpenter_or_eks_makes_carry_the_default_tags_too() -> None:
    tags = {"tags": {"cost-center": "17", "team": "all"}}
    graph = built({"defaultTags": tags}, at("tags", {"team": "vision"}))
    made = graph["kubernetes:karpenter.k8s.aws/v1:EC2NodeClass g6e-class"].inputs["spec"]["tags"]
    assert (made["cost-center"], made["team"]) == ("17", "vision"), "environment.tags count"
    assert "cost-center" not in graph["Vpc network"].inputs["tags"], "the provider adds it"
    for each in graph["LaunchTemplate system"].inputs["tagSpecifications"]:
        assert (each["tags"]["cost-center"], each["tags"]["team"]) == ("17", "vision")


def test_a_chain_of_roles_says_what_get_token_needs() -> None:
    [warning] = [n for n in planned({"assumeRoles": one(HUB, ROLE)}).warnings if "Roles" in n.path]
    assert f"{ROLE} directly. That role must trust the caller, not only {HUB};" in warning.text
    assert not [n for n in planned({"assumeRoles": one(ROLE)}).warnings if "Roles" in n.path]


# What they may not say.


CONTRADICTIONS: list[tuple[dict[str, Any], list[Edit], str, str]] = [
    (
        {"assumeRole": {"roleArn": ROLE, "duration": "13h"}},
        [],
        "aws:assumeRole.duration",
        "be from 15m to 12h, as STS gives sessions; got 13h. Fix: write 12h",
    ),
    (
        {"assumeRole": {"roleArn": ROLE}, "assumeRoles": one(ROLE)},
        [],
        "aws:assumeRole",
        "must not be set beside aws:assumeRoles",
    ),
    (
        {"allowedAccountIds": ["111122223333"], "forbiddenAccountIds": ["444455556666"]},
        [],
        "aws:forbiddenAccountIds",
        "must not be set beside aws:allowedAccountIds; got 444455556666. Fix: delete it",
    ),
    (
        {"assumeRoles": one(ROLE, externalId="x")},
        [],
        "aws:assumeRoles",
        "must end with a role without externalId",
    ),
    (
        {"assumeRoles": one(ROLE), "allowedAccountIds": ["111122223333"]},
        [],
        "aws:assumeRoles",
        f"got {ROLE}. Fix: name a role of another account, or change aws:allowedAccountIds",
    ),
    (
        {"forbiddenAccountIds": ["444455556666"]},
        [at("cluster.deployer_role_arn", ROLE)],
        "environment.cluster.deployer_role_arn",
        "must end in an account that the stack file allows",
    ),
    (
        {"assumeRoles": one(OTHER)},
        [at("cluster.deployer_role_arn", ROLE)],
        "environment.cluster.deployer_role_arn",
        f"must be the last role of aws:assumeRoles, where both are set; got {ROLE}. Fix: delete",
    ),
    (
        {},
        [
            at("cluster.deployer_role_arn", ROLE),
            at("cluster.admins", {"me": {"role_arn": ROLE}}),
        ],
        "environment.cluster.admins.me",
        "EKS makes it an admin, and answers 409",
    ),
    (
        {"assumeRoles": one(HUB, ROLE)},
        [at("cluster.admins", {"me": {"role_arn": ROLE}})],
        "environment.cluster.admins.me",
        f"must not be the role that creates the cluster: EKS makes it an admin, and answers 409"
        f" to a second access entry; got {ROLE}. Fix: delete it",
    ),
    (
        {"defaultTags": {"tags": {"Name": "x"}}},
        [],
        "aws:defaultTags.tags.Name",
        "must not have a key that AWS, Karpenter or this program sets",
    ),
    (
        {"defaultTags": {"tags": {"owner": "R&D"}}},
        [],
        "aws:defaultTags.tags.owner",
        "must have a value of letters, digits, spaces and _.:/=+-@: IAM, FSx and EFS take nothing else;"
        " got R&D. Fix: write R-D",
    ),
    (
        {"defaultTags": {"tags": {f"a{n}": "1" for n in range(30)}}},
        [at("tags", {f"b{n}": "1" for n in range(11)})],
        "aws:defaultTags.tags",
        "must have at most 40 tags together with environment.tags; got 41. Fix: delete 1 of",
    ),
    (
        {},
        [at("cluster.deployer_role_arn", "deployer")],
        "environment.cluster.deployer_role_arn",
        "must be the ARN of one IAM role",
    ),
]


@pytest.mark.parametrize(("account", "edits", "path", "says"), CONTRADICTIONS)
def test_what_contradicts_itself_is_refused_at_preview(
    account: dict[str, Any], edits: list[Edit], path: str, says: str
) -> None:
    [error] = planned(account, *edits).errors
    assert error.path == path and says in str(error)


@pytest.mark.parametrize(
    "account",
    [
        {"assumeRoles": one(HUB, ROLE, sessionName="ci")},
        {"assumeRoles": [{"roleArn": HUB, "externalId": "x"}, {"roleArn": ROLE}]},
        {"assumeRoles": one(ROLE), "allowedAccountIds": ["444455556666"]},
        {"assumeRoles": one(ROLE), "forbiddenAccountIds": ["111122223333"]},
    ],
)
def test_what_is_sound_has_a_plan(account: dict[str, Any]) -> None:
    other = at("cluster.admins", {"ops": {"role_arn": OTHER}})
    assert planned(account, other).errors == ()


# A team.


def team(contract: dict[str, Any], account: dict[str, Any], *edits: Edit) -> Graph:
    return deploy(
        "team-vision",
        lambda given: given.update({f"aws:{key}": value for key, value in account.items()}),
        references={"organization/trainyard/dev": {"contract": contract}},
    )


def test_a_team_enters_the_cluster_as_its_own_stack_file_says(contract: dict[str, Any]) -> None:
    graph = team(contract, {"profile": "vision", "assumeRoles": one(OTHER)})
    assert token_arguments(graph) == ["--profile", "vision", "--role-arn", OTHER]


def test_a_team_enters_as_the_environments_deployer_where_it_says_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The role that made the cluster is the one that may enter it."""
    deployed = at("cluster.deployer_role_arn", ROLE)
    base = values(deployed) | {"aws:profile": "of-the-environment"}
    monkeypatch.setattr(
        "trainyard.settings.reading.teams.read_file",
        lambda *_: read(base, stack="dev", project="trainyard"),
    )
    for account, arn in (({}, ROLE), ({"assumeRoles": one(OTHER)}, OTHER)):
        plan = getattr(planned(account, stack="team-vision").plan, "access", None)
        assert plan and (plan.role_arn, plan.profile) == (arn, None)


def test_a_team_is_refused_in_an_account_that_its_stack_file_does_not_allow(
    contract: dict[str, Any],
) -> None:
    """It has no AWS provider that would refuse it: the cluster's ARN names the account."""
    arn = {"arn": "arn:aws:eks:ap-northeast-2:111122223333:cluster/dev"}
    there = {**contract, "cluster": contract["cluster"] | arn}
    assert team(there, {"allowedAccountIds": ["111122223333"]}).of("Namespace")
    for key, ids in (("allowed", ["444455556666"]), ("forbidden", ["111122223333"])):
        with pytest.raises(pulumi.RunError, match=f"aws:{key}AccountIds: must allow the account"):
            team(there, {f"{key}AccountIds": ids})


def test_a_team_makes_nothing_in_aws_that_could_be_tagged() -> None:
    [error] = planned({"defaultTags": {"tags": {"a": "b"}}}, stack="team-vision").errors
    assert "must not be set in a team's stack file" in str(error)


def test_a_listed_team_ends_in_the_deployer_of_its_entry() -> None:
    roles = AwsConfig(assumeRole=AssumeRoleConfig(roleArn=OTHER))
    plan = AccessPlan(region="a", roles=(AssumedRole(arn=OTHER),))
    assert [*access.team_access_errors(plan, roles, OTHER)] == []
    [error] = access.team_access_errors(plan, roles, ROLE)
    assert "aws:assumeRole: must end in the deployer" in str(error) and f"got {OTHER}" in str(error)


def test_every_error_of_the_account_settings_is_caused_by_a_test_above() -> None:
    """Counted by line; those of an account that answers are in test_preflight.py."""

    def run() -> None:
        for settings, edits, _, _ in CONTRADICTIONS:
            planned(settings, *edits)
        planned({"defaultTags": {"tags": {"a": "b"}}}, stack="team-vision")
        test_a_listed_team_ends_in_the_deployer_of_its_entry()
        list(access.account_findings(AccessPlan(region="a", allowed_account_ids=("1",)), HUB))
        access.role_finding(AccessPlan(region="a"), NotAssumed(ROLE, "AccessDenied"))
        list(access.entry_findings("a", "dev", ROLE, False))

    assert lines_not_reached([access], run) == []
