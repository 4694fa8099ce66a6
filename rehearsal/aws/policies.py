"""IAM policy documents: which of their statements concern a question, and what they say to it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from rehearsal.aws import conditions
from rehearsal.aws.operations import Fields


@dataclass(frozen=True, kw_only=True)
class Ask:
    """One question to IAM: may this be done to that, in these circumstances?"""

    action: str
    resource: str = "*"
    """ARN. * where the action takes no resource: only statements for * answer then."""
    context: conditions.Context = field(default_factory=dict)


def verdict(documents: Iterable[str | Fields], ask: Ask) -> str:
    """Allow, Deny, or nothing where no statement says anything: an explicit Deny wins."""
    effects = {
        one["Effect"]
        for document in documents
        for one in statements(document)
        if concerns(one, ask.action)
        and _about(one, ask.resource)
        and conditions.holds(one, ask.context)
    }
    return "Deny" if "Deny" in effects else "Allow" if "Allow" in effects else ""


def statements(policy: str | Fields) -> list[Fields]:
    """The statements of a policy document, however moto keeps it."""
    return _listed((json.loads(policy) if isinstance(policy, str) else policy).get("Statement", []))


def named(statement: Fields) -> list[tuple[str, str]]:
    """(kind, name) of everybody a statement names as its principal."""
    principal = statement.get("Principal")
    kinds = principal.items() if isinstance(principal, dict) else ()
    return [(kind, who) for kind, many in kinds for who in _listed(many)]


def concerns(statement: Fields, action: str) -> bool:
    """True where the statement is about the action."""
    patterns, meant = ("NotAction", False) if "NotAction" in statement else ("Action", True)
    return (
        any(
            fnmatchcase(action.lower(), one.lower()) for one in _listed(statement.get(patterns, ()))
        )
        is meant
    )


def _about(statement: Fields, resource: str) -> bool:
    """True where the statement is about the resource."""
    patterns, meant = ("NotResource", False) if "NotResource" in statement else ("Resource", True)
    listed = _listed(statement.get(patterns, ()))
    return any(conditions.arn_like(resource, one) for one in listed) is meant


def _listed(value: Any) -> list[Any]:
    return [value] if isinstance(value, str | dict) else list(value)
