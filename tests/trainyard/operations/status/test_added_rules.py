"""Rules that somebody added to a security group: `trainyard drift` names them, which a refresh cannot."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from moto import mock_aws

from tests.support.tool import run_word
from trainyard.operations.reach.updates import History
from trainyard.operations.status import added_rules, drift

GROUP, IN, OUT = added_rules.GROUP, *added_rules.RULES


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Iterator[boto3.Session]:
    with mock_aws():
        made = boto3.Session("id", "secret", region_name="us-east-1")
        monkeypatch.setattr(added_rules, "session_of", lambda _: made)
        monkeypatch.setattr(drift, "pulumi", lambda *_: json.dumps({"steps": []}))
        yield made


def resource(kind: str, name: str, id_: str) -> dict[str, Any]:
    return {
        "urn": f"urn:pulumi:dev::trainyard::{kind}::{name}",
        "type": kind,
        "id": id_,
        "custom": True,
    }


def added(session: boto3.Session, group: str, **rule: Any) -> str:
    answer = session.client("ec2").authorize_security_group_ingress(
        GroupId=group, IpPermissions=[{"IpProtocol": "tcp", "FromPort": 22, "ToPort": 22} | rule]
    )
    return answer["SecurityGroupRules"][0]["SecurityGroupRuleId"]


def state(session: boto3.Session, monkeypatch: pytest.MonkeyPatch) -> str:
    """A stack with a group of two rules; the id of the group."""
    ec2 = session.client("ec2")
    group = ec2.create_security_group(GroupName="nodes", Description="nodes")["GroupId"]
    [out] = ec2.describe_security_group_rules(Filters=[{"Name": "group-id", "Values": [group]}])[
        "SecurityGroupRules"
    ]
    own = added(session, group, FromPort=443, ToPort=443, IpRanges=[{"CidrIp": "10.0.0.0/16"}])
    resources = [
        resource(GROUP, "nodes", group),
        resource(IN, "nodes-https", own),
        resource(OUT, "nodes-out", out["SecurityGroupRuleId"]),
    ]
    told = {"deployment": {"resources": resources}}
    monkeypatch.setattr(drift, "deployment", lambda _: told)
    monkeypatch.setattr(drift, "history_of", lambda _: History(entries=()))
    return group


def test_a_group_with_the_rules_of_the_stack_only_is_no_drift(
    session: boto3.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    state(session, monkeypatch)
    assert run_word("drift", ["dev"]) == 0


def test_a_rule_that_somebody_added_is_named_with_the_command_that_deletes_it(
    session: boto3.Session, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    group = state(session, monkeypatch)
    ssh = added(session, group, IpRanges=[{"CidrIp": "0.0.0.0/0"}])
    peers = added(session, group, IpProtocol="-1", UserIdGroupPairs=[{"GroupId": group}])
    assert run_word("drift", ["dev"]) == 1
    revoke = "aws ec2 revoke-security-group-ingress --region us-east-1"
    end = "   # no update deletes it"
    assert capsys.readouterr().out == (
        "dev: 1 object is not as the last update left it\n"
        f"  changed  nodes  {GROUP}\n"
        f"      rule {ssh} was added: tcp 22 from 0.0.0.0/0\n"
        f"      rule {peers} was added: every protocol from {group}\n\n"
        f"{revoke} --group-id {group} --security-group-rule-ids {ssh}{end}\n"
        f"{revoke} --group-id {group} --security-group-rule-ids {peers}{end}\n"
    )


def test_a_stack_without_groups_asks_no_account(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(added_rules, "session_of")
    assert added_rules.added_rules({"deployment": {}}) == []
