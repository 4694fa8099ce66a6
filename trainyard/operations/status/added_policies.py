"""Policies that somebody attached to the IAM roles of a stack, or put into them. What a role holds are resources
of their own, so that a refresh reads the role and each policy of the stack, and no other policy: neither a refresh
nor `pulumi up` sees or takes away one that somebody added."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

from botocore.exceptions import ClientError

from trainyard.operations.reach.pulumi import made_by
from trainyard.operations.reach.stack_account import session_of
from trainyard.operations.status.finding import Drift
from trainyard.replacing.urn import name_of

ROLE = "aws:iam/role:Role"
ATTACHMENT = "aws:iam/rolePolicyAttachment:RolePolicyAttachment"
INLINE = "aws:iam/rolePolicy:RolePolicy"
DETACH = "aws iam detach-role-policy --role-name {role} --policy-arn {policy}"
DELETE = "aws iam delete-role-policy --role-name {role} --policy-name {policy}"
GONE = "NoSuchEntity"
"""IAM's answer about a role that is not there (IAM API, ListRolePolicies)."""


@dataclass(frozen=True)
class _Policy:
    role: str
    policy: str
    """ARN of a managed policy, name of an inline one."""
    inline: bool

    def said(self) -> str:
        if self.inline:
            return f"inline policy {self.policy} was added"
        return f"policy {self.policy} was attached"

    def mend(self) -> str:
        return (DELETE if self.inline else DETACH).format(role=self.role, policy=self.policy)


def added_policies(state: dict[str, Any]) -> list[Drift]:
    """Each role of a stack's state with policies that are not the stack's. Botocore's errors where the account does
    not answer."""
    own = made_by(state)
    roles = {each["id"]: each for each in own if each["type"] == ROLE and not each.get("delete")}
    if not roles:
        return []
    known = set(chain.from_iterable(map(_of_the_stack, own)))
    iam = session_of(state).client("iam")
    others = (
        (role, [one for one in _held(iam, id_) if one not in known]) for id_, role in roles.items()
    )
    return [_drift(role, added) for role, added in others if added]


def _drift(role: dict[str, Any], added: list[_Policy]) -> Drift:
    return Drift(
        name=name_of(role["urn"]),
        type=ROLE,
        gone=False,
        changed=tuple(one.said() for one in added),
        mends=tuple(one.mend() for one in added),
    )


def _of_the_stack(resource: dict[str, Any]) -> Iterator[_Policy]:
    """Policies that a resource of the state gives to a role."""
    given = resource.get("inputs") or {}
    made = given | (resource.get("outputs") or {})
    if resource["type"] == ATTACHMENT:
        yield _Policy(made["role"], made["policyArn"], inline=False)
    if resource["type"] == INLINE:
        yield _Policy(made["role"], made["name"], inline=True)
    if resource["type"] == ROLE:  # its outputs have all that a refresh found there
        for arn in given.get("managedPolicyArns") or ():
            yield _Policy(resource["id"], arn, inline=False)
        for policy in given.get("inlinePolicies") or ():
            yield _Policy(resource["id"], policy["name"], inline=True)


def _held(iam: Any, role: str) -> list[_Policy]:
    """The policies that a role has in the account; none where the role is gone, which a refresh says."""
    managed, inline = map(iam.get_paginator, ("list_attached_role_policies", "list_role_policies"))
    try:
        return [
            *(
                _Policy(role, one["PolicyArn"], inline=False)
                for page in managed.paginate(RoleName=role)
                for one in page["AttachedPolicies"]
            ),
            *(
                _Policy(role, name, inline=True)
                for page in inline.paginate(RoleName=role)
                for name in page["PolicyNames"]
            ),
        ]
    except ClientError as error:
        if error.response["Error"]["Code"] == GONE:
            return []
        raise
