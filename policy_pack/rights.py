"""The policy `least-privilege`: what no IAM policy allows."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from policy_pack.resource import Config, Props, Resource, as_list

DOCUMENTS = ("policy", "assumeRolePolicy", "inlinePolicy")
"""Properties of AWS resources that are IAM documents."""
ATTACHED = ("policyArn", "policyArns", "managedPolicyArn", "managedPolicyArns")
"""Properties that name policies."""
BROAD = ("/AdministratorAccess", "/PowerUserAccess", "/IAMFullAccess")
"""Ends of the ARNs of AWS's own policies that allow nearly everything."""
READS = ("Describe", "List", "Get", "BatchGet")
"""First words of the actions that change nothing."""
OF_RIGHTS = ("iam", "sts", "organizations", "account", "sso")
"""Services in which an action gives rights away, or tells who has which."""
OF_SECRETS = ("secretsmanager", "ssm", "kms")
"""Services in which reading is what must be limited. `ssm:GetParameter` reads SecureStrings."""


def least_privilege(resource: Resource, _: Config) -> Iterator[str]:
    """No statement that allows everything, and none that allows everybody."""
    if not resource.type.startswith("aws:"):
        return
    for statement in _statements(resource):
        if statement.get("Effect") == "Allow":
            yield from _too_much(statement)
    for field in ATTACHED:
        for policy in as_list(resource.part(field)):
            if str(policy).endswith(BROAD):
                yield f"must not attach {str(policy).rpartition('/')[2]}"


def _statements(resource: Resource) -> Iterator[Props]:
    for field in DOCUMENTS:
        yield from resource.statements(field)
    for inline in as_list(resource.part("inlinePolicies")):
        document = inline.get("policy")
        yield from as_list(json.loads(document).get("Statement")) if document else ()


def _too_much(statement: Props) -> Iterator[str]:
    actions = [re.sub(r"\*+", "*", action) for action in as_list(statement.get("Action"))]
    if wild := [action for action in actions if action == "*" or action.endswith(":*")]:
        yield f"must not allow every action of a service: {', '.join(wild)}"
    if {"NotAction", "NotResource", "NotPrincipal"} & {*statement}:
        yield "must not allow whatever is not named (NotAction, NotResource, NotPrincipal)"
    if _is_everybody(statement.get("Principal")) and not statement.get("Condition"):
        yield "must not allow every account of AWS (Principal: *)"
    if any(map(_is_everything, as_list(statement.get("Resource")))):
        named = [action for action in actions if action not in wild]
        yield from _on_everything(named, limited=bool(statement.get("Condition")))


def _on_everything(actions: list[str], *, limited: bool) -> Iterator[str]:
    """Actions that are too much where they are allowed on every resource. `limited`: by a
    condition."""
    if patterns := [action for action in actions if _is_open_pattern(action)]:
        # A condition does not help: nobody knows which actions AWS adds to a pattern.
        yield f"must name each action that it allows on every resource; got {', '.join(patterns)}"
    rest = [action for action in actions if action not in patterns and not _reads(action)]
    if rest and not limited:
        yield f"must limit {', '.join(rest)} to resources or by a condition"


def _is_everybody(principal: Any) -> bool:
    named = principal.get("AWS") if isinstance(principal, dict) else principal
    return "*" in as_list(named)


def _is_everything(resource: str) -> bool:
    """Every resource of AWS or of a service: *, arn:aws:s3:::*, arn:aws:iam::*:role/*."""
    if not resource.strip("*"):
        return True
    parts = resource.split(":", 5)
    if len(parts) < 6 or not {*parts[3:5]} <= {"", "*"}:
        return False
    # Buckets have no account in their ARNs, so arn:aws:s3:::a/* is one bucket's.
    every = r"(\w+[/:])?\*+" if parts[4] else r"\*+"
    return re.fullmatch(every, parts[5]) is not None


def _is_open_pattern(action: str) -> bool:
    """A pattern such as iam:*Role*, of which nobody knows which actions it allows; not ec2:Describe*,
    which changes nothing whatever it comes to."""
    service, _, verb = action.partition(":")
    if not {*verb} & {*"*?"}:
        return False
    return service.lower() in (*OF_RIGHTS, *OF_SECRETS) or not verb.startswith(READS)


def _reads(action: str) -> bool:
    service, _, verb = action.partition(":")
    secret = service.lower() in OF_SECRETS and verb.startswith(("Get", "BatchGet"))
    return verb.startswith(READS) and not secret
