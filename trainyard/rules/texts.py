"""Errors about values of settings whatever they are for: blanks around a text, a number without end, an ARN of
another partition, the same thing twice in a list.

A script, a command, a variable and a label are what their reader makes of them, and are not judged here.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from trainyard.problems import At, InputError
from trainyard.settings.reading.examples import example
from trainyard.settings.reading.yaml_file import as_yaml

FREE = (
    "script",
    "command",
    "arguments",
    "env",
    "labels",
    "tags",
    "annotations",
    "contract",
    "jobs_of",
)
"""Settings whose texts belong to people and programs."""
PARTITIONS = {"cn": "aws-cn", "us-gov": "aws-us-gov"}
"""Beginning of the name of a region → its partition; `aws` of all others."""


def partition(region: str) -> str:
    """The partition that a region is in, as ARNs name it."""
    return next(
        (name for start, name in PARTITIONS.items() if region.startswith(f"{start}-")), "aws"
    )


def text_errors(path: str, settings: Any, region: str) -> Iterator[InputError]:
    """Every such error in settings. `path`: theirs, such as environment."""
    for at, value in _values(path, settings):
        if isinstance(value, tuple):
            yield from _twice(at, value)
        elif isinstance(value, str):
            yield from _text(at, value, region)
        elif isinstance(value, float) and math.isinf(value):
            yield At(at).must(
                "be a finite number", got=as_yaml(value), fix="write a number such as 1000"
            )


def _values(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """(path, value) of each text, number and list in settings; items of a list stand at the list."""
    if dataclasses.is_dataclass(value):
        inside = {each.name: getattr(value, each.name) for each in dataclasses.fields(value)}
    elif isinstance(value, Mapping):
        inside = value
    else:
        inside = {}
        yield path, value
        if isinstance(value, tuple):
            for each in value:
                yield from _values(path, each)
    for name, each in inside.items():
        if name not in FREE:
            yield from _values(f"{path}.{name}", each)


_AN_ARN = re.compile("arn:[^:]+:[a-z]")


def _text(at: str, text: str, region: str) -> Iterator[InputError]:
    wanted = partition(region)
    if text != text.strip():
        bare = text.strip()
        must = "not begin or end with a blank" if bare else "be more than blanks"
        yield At(at).must(must, got=f'"{text}"', fix=f"write {bare or _such_as(at)}")
    elif _AN_ARN.match(text) and not text.startswith(f"arn:{wanted}:"):
        yield At(at).must(
            f"begin with arn:{wanted}:, the partition of {region} (aws:region)",
            got=text,
            fix=_of_the_partition(text, region),
        )


def _such_as(at: str) -> str:
    shown = example(at.split("."))
    return "a value" if shown is None else f"a value such as {as_yaml(shown)}"


def _of_the_partition(arn: str, region: str) -> str:
    _, _, service, zone, _, name = (*arn.split(":", 5), *[""] * 5)[:6]
    if service == "kms":
        return f"write a key of {region}: aws kms list-keys --region {region}"
    there = f"arn:{partition(region)}:{service}:{zone and region}:<account>:{name}"
    what = f"a {name.split('/')[0]}" if "/" in name else "one"
    return f"write the ARN of {what} in an account of that partition: {there}; or change aws:region"


def _twice(at: str, items: tuple[Any, ...]) -> Iterator[InputError]:
    if not all(isinstance(each, str) for each in items):
        return
    once = [*dict.fromkeys(items)]
    if len(once) < len(items):
        again = next(each for number, each in enumerate(items) if each in items[:number])
        yield At(at).must(
            "list each once", got=f"{again} twice", fix=f"write {as_yaml(once)}", write=once
        )
