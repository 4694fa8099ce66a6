"""Conditions of IAM statements, as far as the account knows the values that they ask for.

Operators: those of OPERATORS, and their ...IfExists forms. Another operator is NotBuilt, so that
a condition is never passed over unread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import Any

from rehearsal.aws.operations import Fields, NotBuilt

OPERATORS: dict[str, Callable[[str, str], bool]] = {
    "StringEquals": lambda value, wanted: value == wanted,
    "StringNotEquals": lambda value, wanted: value != wanted,
    "StringLike": fnmatchcase,
    "ArnEquals": fnmatchcase,
    "ArnLike": fnmatchcase,
    "Bool": lambda value, wanted: value.lower() == wanted.lower(),
}
"""By name: whether a value of the request is what one value of the policy asks for. ArnEquals and
ArnLike are the same operator (IAM user guide, reference_policies_elements_condition_operators)."""
IF_EXISTS = "IfExists"


def holds(statement: Fields, request: Mapping[str, str]) -> bool:
    """Whether all conditions of the statement are met. `request`: condition key → its value; a key
    that is missing has no value."""
    values = {key.lower(): value for key, value in request.items()}
    return all(
        _met(operator, values.get(key.lower()), wanted)
        for operator, keys in (statement.get("Condition") or {}).items()
        for key, wanted in keys.items()
    )


def _met(operator: str, value: str | None, wanted: Any) -> bool:
    """Whether one condition is met: one of the values of the policy is enough."""
    if value is None and operator.endswith(IF_EXISTS):
        return True
    compare = OPERATORS.get(operator.removesuffix(IF_EXISTS))
    if compare is None:
        raise NotBuilt(f"the condition operator {operator} of IAM policies")
    accepted = [wanted] if isinstance(wanted, str) else list(wanted)
    return value is not None and any(compare(value, str(one)) for one in accepted)
