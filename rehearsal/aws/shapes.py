"""Checks that a service makes before it looks at anything else: required members, enums, lengths,
ranges and patterns of the shapes in botocore's service models. What botocore's own clients do not
send, a Go program such as Karpenter does.

The texts are those of AWS's frameworks, seen in many reports: "1 validation error detected: Value
'x' at 'name' failed to satisfy constraint: Member must …".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from rehearsal.aws.operations import Call, Refused

CODES = {
    "eks": "InvalidParameterException",
    "fsx": "BadRequest",
    "iam": "ValidationError",
    "sts": "ValidationError",
    "sns": "InvalidParameter",
    "sqs": "InvalidParameterValue",
}
"""Service → its error code for such a request, where that is not ValidationException. FSx:
https://github.com/awsdocs/aws-cloudformation-user-guide/pull/439; EKS: the code that its operations declare."""


@dataclass(frozen=True, kw_only=True)
class WrongMember:
    """One member that cannot be right."""

    path: str
    value: Any
    constraint: str

    def __str__(self) -> str:
        shown = "null" if self.value is None else f"'{self.value}'"
        return f"Value {shown} at '{self.path}' failed to satisfy constraint: {self.constraint}"


def check(call: Call) -> None:
    """Refused where the request does not fit the operation's input."""
    shape = call.operation.input_shape
    found = [*_faults(shape, call.params, "")] if shape else []
    if not found:
        return
    match call.service:
        case "ec2":
            raise _refused_by_ec2(found[0])
        case "ecr":
            raise _refused_by_ecr(found[0])
    errors = "errors" if len(found) > 1 else "error"
    words = f"{len(found)} validation {errors} detected: {'; '.join(map(str, found))}"
    raise Refused(CODES.get(call.service, "ValidationException"), words)


def _refused_by_ec2(fault: WrongMember) -> Refused:
    """EC2 names one parameter, with a code that says whether it is missing."""
    name = fault.path.rpartition(".")[2]
    if fault.value is None:
        return Refused("MissingParameter", f"The request must contain the parameter {name}")
    words = f"Value ({fault.value}) for parameter {name} is invalid. {fault.constraint}"
    return Refused("InvalidParameterValue", words)


def _refused_by_ecr(fault: WrongMember) -> Refused:
    """ECR names one parameter, in words of its own."""
    constraint = fault.constraint.replace("Member ", "").replace("pattern: ", "")
    words = f"Invalid parameter at '{fault.path}' failed to satisfy constraint: '{constraint}'"
    return Refused("InvalidParameterException", words)


def _faults(shape: Any, value: Any, path: str) -> Iterator[WrongMember]:
    match shape.type_name:
        case "structure":
            yield from _of_members(shape, value, path)
        case "list":
            yield from _of_size(shape, value, path, "length")
            for number, item in enumerate(value, 1):
                yield from _faults(shape.member, item, f"{path}.{number}.member")
        case "map":
            yield from _of_size(shape, value, path, "length")
            for key, item in value.items():
                yield from _faults(shape.key, key, f"{path}.key")
                yield from _faults(shape.value, item, f"{path}.{key}.member")
        case "string":
            yield from _of_text(shape, value, path)
        case "integer" | "long" | "float" | "double":
            yield from _of_size(shape, value, path, "value")


def _of_members(shape: Any, value: dict[str, Any], path: str) -> Iterator[WrongMember]:
    for name, member in shape.members.items():
        place = f"{path}.{name[:1].lower()}{name[1:]}".lstrip(".")
        if value.get(name) is not None:
            yield from _faults(member, value[name], place)
        elif name in shape.required_members:
            yield WrongMember(path=place, value=None, constraint="Member must not be null")


def _of_text(shape: Any, value: str, path: str) -> Iterator[WrongMember]:
    yield from _of_size(shape, value, path, "length")
    if shape.enum and value not in shape.enum:
        words = f"Member must satisfy enum value set: [{', '.join(shape.enum)}]"
        yield WrongMember(path=path, value=value, constraint=words)
    written = shape.metadata.get("pattern")
    pattern = _pattern(written) if written else None
    if pattern and not pattern.fullmatch(value):
        words = f"Member must satisfy regular expression pattern: {written}"
        yield WrongMember(path=path, value=value, constraint=words)


def _of_size(shape: Any, value: Any, path: str, what: str) -> Iterator[WrongMember]:
    size = value if what == "value" else len(value)
    least, most = (shape.metadata.get(bound) for bound in ("min", "max"))
    if least is not None and size < least:
        words = f"Member must have {what} greater than or equal to {least}"
        yield WrongMember(path=path, value=value, constraint=words)
    if most is not None and size > most:
        words = f"Member must have {what} less than or equal to {most}"
        yield WrongMember(path=path, value=value, constraint=words)


@cache
def _pattern(written: str) -> re.Pattern[str] | None:
    r"""Java's, whose \w is ASCII; its letters, blanks and digits of all scripts stand together where
    they stand at all. None where Python does not know the pattern's words."""
    everywhere = written.replace(r"\p{L}\p{Z}\p{N}", r"\w\s")
    try:
        return re.compile(everywhere, re.ASCII if everywhere == written else 0)
    except re.error:
        return None
