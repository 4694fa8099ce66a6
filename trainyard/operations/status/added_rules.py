"""Rules that somebody added to the security groups of a stack. A group's rules are resources of their own, so
that a refresh reads the group and each rule of the stack, and no other rule: neither a refresh nor `pulumi up` sees
or deletes one that somebody added."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import boto3

from trainyard.operations.reach.pulumi import made_by
from trainyard.operations.reach.stack_account import session_of
from trainyard.operations.status.finding import Drift
from trainyard.replacing.urn import name_of

GROUP = "aws:ec2/securityGroup:SecurityGroup"
RULES = (
    "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule",
    "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule",
)
REVOKE = "aws ec2 revoke-security-group-{way} --region {region} --group-id {group} --security-group-rule-ids {rule}"
ALL = "-1"
"""Every protocol (EC2 API, SecurityGroupRule)."""


def added_rules(state: dict[str, Any]) -> list[Drift]:
    """Each group of a stack's state with rules that are not the stack's. Botocore's errors where the account does
    not answer."""
    own = made_by(state)
    groups = {each["id"]: each for each in own if each["type"] == GROUP and not each.get("delete")}
    known = {each["id"] for each in own if each["type"] in RULES}
    if not groups:
        return []
    session = session_of(state)
    return [
        Drift(
            name=name_of(groups[id_]["urn"]),
            type=GROUP,
            gone=False,
            changed=tuple(map(_said, rules)),
            mends=tuple(_revokes(rules, session.region_name or "")),
        )
        for id_, rules in _others(session, [*groups], known).items()
    ]


def _others(
    session: boto3.Session, groups: list[str], known: set[str]
) -> dict[str, list[Mapping[str, Any]]]:
    """Group → its rules that are not known; no entry for a group without any."""
    asked = session.client("ec2").get_paginator("describe_security_group_rules")
    found = dict[str, list[Mapping[str, Any]]]()
    for page in asked.paginate(Filters=[{"Name": "group-id", "Values": groups}]):
        for rule in page["SecurityGroupRules"]:
            if rule["SecurityGroupRuleId"] not in known:
                found.setdefault(rule["GroupId"], []).append(rule)
    return found


def _said(rule: Mapping[str, Any]) -> str:
    """A rule in words: `rule sgr-1 was added: in, tcp 22, 0.0.0.0/0`."""
    first, last = rule.get("FromPort", -1), rule.get("ToPort", -1)
    ports = f" {first}" if first == last else f" {first}-{last}"
    protocol = "every protocol" if rule["IpProtocol"] == ALL else rule["IpProtocol"]
    other = (
        rule.get("CidrIpv4")
        or rule.get("CidrIpv6")
        or rule.get("PrefixListId")
        or rule.get("ReferencedGroupInfo", {}).get("GroupId", "")
    )
    way = "to" if rule["IsEgress"] else "from"
    return (
        f"rule {rule['SecurityGroupRuleId']} was added:"
        f" {protocol}{'' if first == -1 else ports} {way} {other}"
    )


def _revokes(rules: list[Mapping[str, Any]], region: str) -> Iterator[str]:
    for rule in rules:
        yield REVOKE.format(
            way="egress" if rule["IsEgress"] else "ingress",
            region=region,
            group=rule["GroupId"],
            rule=rule["SecurityGroupRuleId"],
        )
