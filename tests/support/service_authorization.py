"""IAM documents judged by AWS's Service Authorization Reference, as cfn-lint carries it: actions, the
resources that an action takes, and the condition keys that an action or its resource has.

cfn-lint's own rules judge actions and resources of identity policies. Condition keys, trust and policies of
resources are judged here. The data has the keys of resources and not those of actions: ACTION_KEYS.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from cfnlint.data import AdditionalSpecs
from cfnlint.helpers import load_resource

Document = Mapping[str, Any]

GLOBAL_KEYS: dict[str, str] = {
    "aws:PrincipalAccount": "String",
    "aws:PrincipalArn": "Arn",
    "aws:RequestedRegion": "String",
    "aws:SecureTransport": "Bool",
    "aws:SourceAccount": "String",
    "aws:SourceArn": "Arn",
    "aws:TagKeys": "String",
}
"""Global condition key → beginning of the operators that it takes (IAM user guide,
reference_policies_condition-keys, read in 2026-11)."""
TAG_KEYS = ("aws:RequestTag/", "aws:ResourceTag/")
"""Beginnings of the keys of tags, which not every action has."""
TAGS = ("aws:TagKeys", *TAG_KEYS)

ACTION_KEYS: dict[str, tuple[str, ...]] = {
    "ec2:CreateAction": ("ec2:CreateTags",),
    "elasticfilesystem:AccessedViaMountTarget": ("elasticfilesystem:Client*",),
    "elasticfilesystem:CreateAction": ("elasticfilesystem:TagResource",),
    "iam:AWSServiceName": ("iam:CreateServiceLinkedRole",),
    "iam:PassedToService": ("iam:PassRole",),
    "iam:PermissionsBoundary": (
        "iam:AttachRolePolicy",
        "iam:CreateRole",
        "iam:DeleteRolePermissionsBoundary",
        "iam:DeleteRolePolicy",
        "iam:DetachRolePolicy",
        "iam:PutRolePermissionsBoundary",
        "iam:PutRolePolicy",
    ),
    "iam:PolicyARN": ("iam:AttachRolePolicy", "iam:DetachRolePolicy"),
    "kms:GrantIsForAWSResource": ("kms:CreateGrant", "kms:ListGrants", "kms:RevokeGrant"),
    "kms:ViaService": (
        "kms:CreateGrant",
        "kms:Decrypt",
        "kms:DescribeKey",
        "kms:Encrypt",
        "kms:GenerateDataKey*",
        "kms:GetKeyPolicy",
        "kms:ListGrants",
        "kms:ReEncrypt*",
        "kms:RetireGrant",
        "kms:RevokeGrant",
    ),
    "s3:prefix": ("s3:ListBucket", "s3:ListBucketVersions"),
}
"""Key that an action has, and none of its resources → the actions (Service Authorization Reference, tables of
actions, read in 2026-11)."""
SLASHES = {"s3:bucket": False, "s3:object": True}
"""Kind of resource → whether its name has a slash, where cfn-lint's form of its ARN does not say so."""
TRUST_TAGS = ("sts:AssumeRole", "sts:TagSession")
"""Actions of a trust that have the tags of the session in aws:RequestTag (IAM user guide,
id_session-tags)."""


@functools.cache
def reference() -> dict[str, Any]:
    """Service → its actions and resources, in lower case."""
    return load_resource(AdditionalSpecs, "Policies.json")


def faults(document: Document) -> list[str]:
    """Everything in the document that IAM would not act on."""
    return [
        fault
        for number, statement in enumerate(_listed(document["Statement"]))
        for fault in _of_statement(f"Statement {number}", statement)
    ]


def pairs(document: Document) -> int:
    """Number of pairs of an action and a resource or key that `faults` looks at."""
    return sum(
        len(actions(name))
        * (
            len(_listed(each.get("Resource", [])))
            + sum(map(len, each.get("Condition", {}).values()))
        )
        for each in _listed(document["Statement"])
        for name in _listed(each.get("Action", []))
    )


def documents(value: Any) -> Iterator[Document]:
    """Every IAM document in the inputs of a resource."""
    if isinstance(value, str) and '"Statement"' in value:
        value = json.loads(value)
    if isinstance(value, Mapping):
        if "Statement" in value:
            yield value
        else:
            for inner in value.values():
                yield from documents(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from documents(inner)


@functools.cache
def actions(written: str) -> tuple[str, ...]:
    """The actions that a name with or without wildcards means, in lower case."""
    service, _, name = written.lower().partition(":")
    known = reference().get(service, {}).get("Actions", {})
    return tuple(f"{service}:{each}" for each in known if fnmatchcase(each, name))


def _of_statement(where: str, statement: Mapping[str, Any]) -> Iterator[str]:
    written = _listed(statement.get("Action", []))
    yield from (f"{where}: no action {name}" for name in written if not actions(name))
    meant = [each for name in written for each in actions(name)]
    resources = _listed(statement.get("Resource", []))
    if resources and "*" not in resources:
        yield from _of_resources(where, written, resources)
    for operator, tests in statement.get("Condition", {}).items():
        for key in tests:
            yield from _of_key(where, operator, key, meant, resources)


def _of_resources(where: str, written: list[str], resources: list[str]) -> Iterator[str]:
    for name in written:
        found = actions(name)
        if found and not any(_taken(each, resource) for each in found for resource in resources):
            yield f"{where}: {name} takes none of {resources}"
    for resource in resources:
        if not any(_taken(each, resource) for name in written for each in actions(name)):
            yield f"{where}: no action takes {resource}"


def _of_key(
    where: str, operator: str, key: str, meant: list[str], resources: list[str]
) -> Iterator[str]:
    """Faults of one condition: an operator of another type, and actions that lack the key."""
    kind = GLOBAL_KEYS.get(key)
    plain = operator.partition(":")[2] or operator
    if kind and not plain.startswith((kind, "Null")):
        yield f"{where}: {operator} is no operator for {key}"
    if kind and key not in TAGS:
        return
    if key.startswith("aws:") and not key.startswith(TAGS):
        yield f"{where}: no global key {key}"
        return
    for action in meant:
        if not _has(action, key, resources):
            yield f"{where}: {action} has no key {key}"


def _has(action: str, key: str, resources: list[str]) -> bool:
    """True where the action, or a resource in the statement that it takes, has the key."""
    if key.startswith("aws:RequestTag/") and not resources:
        return action in map(str.lower, TRUST_TAGS)
    if any(fnmatchcase(action, each.lower()) for each in ACTION_KEYS.get(key, ())):
        return True
    return any(
        _matches(known, key)
        for kind in _kinds(action)
        if not resources or "*" in resources or any(_is(kind, each) for each in resources)
        for known in kind["ConditionKeys"] or ()
    )


def _matches(known: str, key: str) -> bool:
    pattern = re.escape(re.sub(r"\$\{\w+\}", "\0", known)).replace("\0", ".+").replace("\\.+", ".+")
    return re.fullmatch(pattern, key, re.IGNORECASE) is not None


def _taken(action: str, resource: str) -> bool:
    return any(_is(kind, resource) for kind in _kinds(action))


@functools.cache
def _kinds(action: str) -> list[dict[str, Any]]:
    """The kinds of resources that an action takes."""
    service, _, name = action.partition(":")
    found = reference()[service]
    resources = {kind.lower(): each for kind, each in found["Resources"].items()}
    named = [kind.lower() for kind in found["Actions"][name].get("Resources") or ()]
    return [
        {**resources[kind], "slash": SLASHES.get(f"{service}:{kind}")}
        for kind in named
        if kind in resources
    ]


def _is(kind: Mapping[str, Any], resource: str) -> bool:
    """True where an ARN, which may have wildcards, can be one of the kind."""
    slash = "/" in resource or resource.endswith("*") if kind["slash"] else "/" not in resource
    if kind["slash"] is not None and not slash:
        return False
    return any(_overlap(resource, form) for form in kind["ARNFormats"])


@functools.cache
def _overlap(resource: str, form: str) -> bool:
    """True where an ARN with wildcards and a form of ARNs have one in common, part by part."""
    ours = resource.split(":", 5)
    theirs = re.sub(r"\$\{\w+\}|\.\*", "*", form).split(":", 5)
    if len(ours) < 6 or len(theirs) < 6:
        return False
    return all(_common(a, b) for a, b in zip(ours, theirs, strict=True))


def _common(left: str, right: str) -> bool:
    """True where two patterns of `*` and `?` can match the same text."""
    if not left or not right:
        return not left.strip("*") and not right.strip("*")
    if left[0] == "*":
        return _common(left[1:], right) or _common(left, right[1:])
    if right[0] == "*":
        return _common(left, right[1:]) or _common(left[1:], right)
    return (left[0] == right[0] or "?" in (left[0], right[0])) and _common(left[1:], right[1:])


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
