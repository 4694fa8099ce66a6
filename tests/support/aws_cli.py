"""Commands of the AWS CLI that the program prints, judged by the models that the CLI is made from."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from functools import cache
from typing import Any

import botocore.session
import jmespath
from awscli.customizations.s3.subcommands import RbCommand
from botocore import xform_name

EVERYWHERE = {"region", "query", "output", "max-items"}
"""Options of every command; --max-items of those that answer in pages."""
VALUE = re.compile(r"fs-\w+|ws-\w+|dra-\w+|[\w./-]+")


def faults(command: str) -> Iterator[str]:
    """Faults for which the AWS CLI would refuse a command of a shell. `aws` must be in it."""
    calls = [*_calls(command)]
    assert calls, command
    for service, operation, options in calls:
        if service == "s3":
            yield from _of_s3(operation, options)
            continue
        model = _operation(service, operation)
        if model is None:
            yield f"no such command: aws {service} {operation}"
            continue
        known = {xform_name(name, "-"): name for name in model.input_shape.members}
        given = {option.removeprefix("no-") for option in options if option not in known}
        given |= {*options} & {*known}
        yield from (f"{operation}: no --{it}" for it in sorted(given - {*known} - EVERYWHERE))
        needed = {xform_name(name, "-") for name in model.input_shape.required_members}
        yield from (f"{operation}: --{it} is missing" for it in sorted(needed - given))
        if query := options.get("query"):
            yield from _of_query(operation, model.output_shape, query)


def _calls(command: str) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Service, operation and options of each call of `aws`."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    part: list[str] = []
    for token in [*lexer, ";"]:
        if not re.fullmatch(r"[|&;<>()]+", token):
            part.append(token)
            continue
        if "aws" in part:
            service, operation, *rest = part[part.index("aws") + 1 :]
            named = [n for n, word in enumerate(rest) if word.startswith("--")]
            yield (
                service,
                operation,
                {rest[n][2:]: " ".join(rest[n + 1 : n + 2]) for n in named},
            )
        part = []


def _of_s3(operation: str, options: dict[str, str]) -> Iterator[str]:
    if operation != RbCommand.NAME:
        yield f"no such command: aws s3 {operation}"
    known = {argument["name"] for argument in RbCommand.ARG_TABLE}
    yield from (f"s3 rb: no --{it}" for it in sorted({*options} - known - EVERYWHERE))


def _of_query(operation: str, answer: Any, query: str) -> Iterator[str]:
    """Names of a query that the answer does not have: it finds nothing in an answer with every member."""
    found = jmespath.search(query, _full(answer, 4))
    if not found or None in _leaves(found):
        yield f"{operation}: --query {query} finds nothing"


def _full(shape: Any, depth: int) -> Any:
    """A value of a shape with every member."""
    if depth and shape.type_name == "structure":
        return {name: _full(each, depth - 1) for name, each in shape.members.items()}
    if depth and shape.type_name == "list":
        return [_full(shape.member, depth - 1)]
    return "x"


def _leaves(found: Any) -> Iterator[Any]:
    if isinstance(found, dict | list):
        for each in found.values() if isinstance(found, dict) else found:
            yield from _leaves(each)
    else:
        yield found


@cache
def _operation(service: str, operation: str) -> Any:
    session: Any = botocore.session.get_session()
    name = {"s3api": "s3"}.get(service, service)
    if name not in session.get_available_services():
        return None
    model = session.get_service_model(name)
    named = [each for each in model.operation_names if xform_name(each, "-") == operation]
    return model.operation_model(named[0]) if named else None
