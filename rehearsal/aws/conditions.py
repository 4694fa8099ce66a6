"""Conditions of IAM statements, as far as the account knows the values that they ask for.

Operators: those of OPERATORS, their ...IfExists forms, and ForAllValues: and ForAnyValue: before
them. Another operator is NotBuilt, so that a condition is never passed over unread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from rehearsal.aws.operations import Fields, NotBuilt

Context = Mapping[str, str | Sequence[str]]
"""Condition key → its value, or its values. A key that is missing has no value."""


def like(value: str, pattern: str) -> bool:
    """True where a pattern of IAM, with * and ?, fits. Policy variables are not built."""
    if "${" in pattern:
        raise NotBuilt(f"the policy variable in {pattern}")
    return fnmatchcase(value, pattern.replace("[", "[[]"))


def arn_like(value: str, pattern: str) -> bool:
    """True where a pattern of an ARN fits: each of its six parts for itself (IAM user guide,
    reference_policies_elements_condition_operators)."""
    parts, patterns = value.split(":", 5), pattern.split(":", 5)
    return pattern == "*" or (len(parts) == len(patterns) and all(map(like, parts, patterns)))


OPERATORS: dict[str, Callable[[str, str], bool]] = {
    "StringEquals": lambda value, wanted: value == wanted,
    "StringNotEquals": lambda value, wanted: value != wanted,
    "StringLike": like,
    "ArnEquals": arn_like,
    "ArnLike": arn_like,
    "Bool": lambda value, wanted: value.lower() == wanted.lower(),
}
"""By name: whether a value of the request is what one value of the policy asks for. ArnEquals and
ArnLike are the same operator (IAM user guide, reference_policies_elements_condition_operators)."""
IF_EXISTS, EVERY, ANY = "IfExists", "ForAllValues:", "ForAnyValue:"


def holds(statement: Fields, request: Context) -> bool:
    """True where all conditions of the statement are met."""
    values = {key.lower(): value for key, value in request.items()}
    return all(
        _met(operator, values.get(key.lower()), wanted)
        for operator, keys in (statement.get("Condition") or {}).items()
        for key, wanted in keys.items()
    )


def _met(operator: str, found: str | Sequence[str] | None, wanted: Any) -> bool:
    """True where one condition is met. One value of the policy is enough for one value of the
    request, or for each of them with ForAllValues."""
    name = operator.removeprefix(EVERY).removeprefix(ANY)
    compare = OPERATORS.get(name.removesuffix(IF_EXISTS))
    if compare is None:
        raise NotBuilt(f"the condition operator {operator} of IAM policies")
    if found is None:
        return operator.startswith(EVERY) or name.endswith(IF_EXISTS)
    accepted = [wanted] if isinstance(wanted, str | bool) else list(wanted)
    values = [found] if isinstance(found, str) else list(found)
    enough = all if operator.startswith(EVERY) else any
    return enough(any(compare(value, str(one)) for one in accepted) for value in values)
