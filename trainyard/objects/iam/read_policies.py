"""Policies that somebody else has written, as far as checks read them: statements, and whom and what they name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

from trainyard.plans.documents import Document


def statements_of(policy: str) -> list[Document]:
    """The statements of a policy in JSON; IAM takes a single one without a list."""
    found: Any = json.loads(policy)["Statement"]
    return [found] if isinstance(found, dict) else found


def listed(value: Any) -> list[Any]:
    """The values of an element; IAM takes a single one without a list."""
    return [value] if isinstance(value, str) else list(value or ())


def matches(value: str, patterns: Any) -> bool:
    """True where one of the patterns of an element covers a call or a resource. Names of calls have no case."""
    return any(fnmatchcase(value.lower(), str(each).lower()) for each in listed(patterns))


def is_everybody(principal: Any) -> bool:
    """True of a principal that is all of AWS's."""
    if isinstance(principal, Mapping):
        principal = principal.get("AWS")
    return "*" in listed(principal)
