"""Policies that somebody gave to a role of the stack: `trainyard drift` names them, which a refresh cannot."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError
from moto import mock_aws

from tests.conftest import GOLDEN
from tests.support.tool import run_word
from trainyard.catalog.aws.permissions import reads
from trainyard.operations.reach.updates import History
from trainyard.operations.status import added_policies, drift

ROLE, ATTACHED, INLINE = added_policies.ROLE, added_policies.ATTACHMENT, added_policies.INLINE
COMPONENT = "trainyard:cluster:Cluster$eks:index:Cluster$eks:index:ServiceRole$"
TRUST = json.dumps({"Version": "2012-10-17", "Statement": []})
RIGHTS = json.dumps(
    {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Action": "s3:GetObject", "Resource": "*"}],
    }
)
MANAGED = "arn:aws:iam::aws:policy/"
ADMIN = f"{MANAGED}AdministratorAccess"
WORKER = f"{MANAGED}AmazonEKSWorkerNodePolicy"
END = "   # no update deletes it"


@pytest.fixture
def iam(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("MOTO_IAM_LOAD_MANAGED_POLICIES", "true")
    with mock_aws():
        made = boto3.Session("id", "secret", region_name="us-east-1")
        monkeypatch.setattr(added_policies, "session_of", lambda _: made)
        monkeypatch.setattr(drift, "pulumi", lambda *_: json.dumps({"steps": []}))
        yield made.client("iam")


def resource(kind: str, label: str, id_: str, **inputs: Any) -> dict[str, Any]:
    return {
        "urn": f"urn:pulumi:dev::trainyard::{kind}::{label}",
        "type": kind.rpartition("$")[2],
        "id": id_,
        "custom": True,
        "inputs": inputs,
        "outputs": inputs,
    }


def recorded() -> list[dict[str, Any]]:
    """The roles of a whole stack with what they hold, and the control plane's, which pulumi-eks makes. The ids of
    attachments say nothing, as those of pulumi-aws."""
    graph = json.loads((GOLDEN / "isolated.graph.json").read_text())
    nodes = [node for node in graph if node["type"] in (ROLE, ATTACHED, INLINE)]
    assert {node["type"] for node in nodes} == {ROLE, ATTACHED, INLINE}
    made = [
        resource(node["type"], node["name"], node["inputs"].get("name", "x-1"), **node["inputs"])
        for node in nodes
    ]
    plane = "cluster-eksRole-role-0a1b2c3"
    policy = f"{MANAGED}AmazonEKSClusterPolicy"
    return [
        *made,
        resource(COMPONENT + ROLE, "cluster-eksRole-role", plane, name=plane),
        resource(COMPONENT + ATTACHED, "cluster-eksRole", "x-2", role=plane, policyArn=policy),
    ]


def up(iam: Any, monkeypatch: pytest.MonkeyPatch, resources: list[dict[str, Any]]) -> list[str]:
    """The account and the state as an update leaves them; the names of the roles."""
    roles = [each["id"] for each in resources if each["type"] == ROLE]
    for name in roles:
        iam.create_role(RoleName=name, AssumeRolePolicyDocument=TRUST)
    for each in resources:
        has = each["inputs"]
        if each["type"] == ATTACHED:
            iam.attach_role_policy(RoleName=has["role"], PolicyArn=has["policyArn"])
        if each["type"] == INLINE:
            put(iam, has["role"], has["name"])
    state(monkeypatch, resources)
    return roles


def state(monkeypatch: pytest.MonkeyPatch, resources: list[dict[str, Any]]) -> None:
    monkeypatch.setattr(drift, "deployment", lambda _: {"deployment": {"resources": resources}})
    monkeypatch.setattr(drift, "history_of", lambda _: History(entries=()))


def put(iam: Any, role: str, name: str) -> None:
    iam.put_role_policy(RoleName=role, PolicyName=name, PolicyDocument=RIGHTS)


def test_roles_with_the_policies_of_the_stack_only_are_no_drift(
    iam: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(up(iam, monkeypatch, recorded())) > 5
    assert run_word("drift", ["dev"]) == 0


def test_a_policy_that_somebody_attached_is_named_at_every_role(
    iam: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    roles = up(iam, monkeypatch, recorded())
    for role in roles:
        iam.attach_role_policy(RoleName=role, PolicyArn=ADMIN)
    assert run_word("drift", ["dev"]) == 1
    said = capsys.readouterr().out
    assert said.count(f"policy {ADMIN} was attached\n") == len(roles)
    detach = "aws iam detach-role-policy --role-name"
    assert said.splitlines()[-len(roles) :] == [
        f"{detach} {role} --policy-arn {ADMIN}{END}" for role in roles
    ]


def test_each_policy_is_named_with_the_command_that_takes_it_from_the_role(
    iam: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    up(
        iam,
        monkeypatch,
        [
            resource(ROLE, "system", "dev-system"),
            resource(ATTACHED, "system-worker", "x-1", role="dev-system", policyArn=WORKER),
            resource(ROLE, "karpenter", "dev-karpenter"),
            resource(INLINE, "karpenter-nodes", "x-2", role="dev-karpenter", name="nodes"),
        ],
    )
    iam.attach_role_policy(RoleName="dev-karpenter", PolicyArn=WORKER)
    put(iam, "dev-karpenter", "more")
    put(iam, "dev-system", "nodes")
    assert run_word("drift", ["dev"]) == 1
    assert capsys.readouterr().out == (
        "dev: 2 objects are not as the last update left them\n"
        f"  changed  system     {ROLE}\n"
        "      inline policy nodes was added\n"
        f"  changed  karpenter  {ROLE}\n"
        f"      policy {WORKER} was attached\n"
        "      inline policy more was added\n\n"
        f"aws iam delete-role-policy --role-name dev-system --policy-name nodes{END}\n"
        f"aws iam detach-role-policy --role-name dev-karpenter --policy-arn {WORKER}{END}\n"
        f"aws iam delete-role-policy --role-name dev-karpenter --policy-name more{END}\n"
    )


def test_policies_in_the_arguments_of_a_role_are_the_stacks(
    iam: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    inline = [{"name": "own", "policy": RIGHTS}]
    given = {"managedPolicyArns": [WORKER], "inlinePolicies": inline}
    up(iam, monkeypatch, [resource(ROLE, "nodes", "nodes", **given)])
    iam.attach_role_policy(RoleName="nodes", PolicyArn=WORKER)
    put(iam, "nodes", "own")
    assert run_word("drift", ["dev"]) == 0


def test_a_policy_that_a_refresh_wrote_into_the_outputs_of_a_role_is_still_named(
    iam: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = {"managedPolicyArns": [ADMIN], "inlinePolicies": [{"name": "own", "policy": RIGHTS}]}
    role = resource(ROLE, "nodes", "nodes")
    up(iam, monkeypatch, [{**role, "outputs": read}])
    iam.attach_role_policy(RoleName="nodes", PolicyArn=ADMIN)
    put(iam, "nodes", "own")
    [found] = drift.drift("dev")
    assert len(found.changed) == len(found.mends) == 2


def test_a_role_that_is_gone_or_that_another_made_has_no_policies_to_name(
    iam: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = {**resource(ROLE, "other", "other"), "external": True}
    up(iam, monkeypatch, [other])
    iam.attach_role_policy(RoleName="other", PolicyArn=ADMIN)
    state(monkeypatch, [other, resource(ROLE, "gone", "gone")])
    assert run_word("drift", ["dev"]) == 0


def test_a_question_that_iam_refuses_is_said(
    iam: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    up(iam, monkeypatch, [resource(ROLE, "nodes", "nodes")])
    refused = {"Error": {"Code": "AccessDenied", "Message": "not authorized on role nodes"}}

    class Refusing:
        def get_paginator(self, _: str) -> Refusing:
            return self

        def client(self, _: str) -> Refusing:
            return self

        def paginate(self, **_: str) -> Any:
            raise ClientError(refused, "ListAttachedRolePolicies")

    monkeypatch.setattr(added_policies, "session_of", lambda _: Refusing())
    assert run_word("drift", ["dev"]) == 1
    said = capsys.readouterr().err
    assert "AccessDenied" in said and "not authorized on role nodes" in said


def test_a_preview_may_ask_for_policies() -> None:
    asked = {"iam:ListAttachedRolePolicies", "iam:ListRolePolicies"}
    assert asked <= reads([ROLE])


def test_a_stack_without_roles_asks_no_account(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(added_policies, "session_of")
    assert added_policies.added_policies({"deployment": {}}) == []
