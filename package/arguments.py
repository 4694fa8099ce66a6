"""The arguments of a component as plain values, with the places of those that are not known yet or secret."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pulumi
from pulumi.output import Unknown

from trainyard.settings.reading.contracts import whole_numbers

Steps = tuple[str, ...]
"""The way to a value: keys of maps, and numbers in lists."""


@dataclass(kw_only=True)
class Arguments:
    """Values as a program gives them to a component."""

    values: dict[str, Any] = field(default_factory=dict)
    """Plain data, without what is not known."""
    unknown: list[Steps] = field(default_factory=list)
    """Values that depend on resources which do not exist yet. Only in a preview."""
    secret: list[Steps] = field(default_factory=list)
    """Values that the engine keeps as secrets, with everything in them."""


async def plain(inputs: Mapping[str, Any]) -> Arguments:
    """The values of arguments, once they are there."""
    found = Arguments()
    found.values = whole_numbers(await _plain(dict(inputs), (), found))
    return found


async def _plain(value: Any, steps: Steps, found: Arguments) -> Any:
    if isinstance(value, pulumi.Output):
        if await value.is_secret():
            found.secret.append(steps)
        return await _plain(await value.future(with_unknowns=True), steps, found)
    if isinstance(value, Unknown):
        found.unknown.append(steps)
        return None
    if isinstance(value, Mapping):
        made = {key: await _plain(each, (*steps, str(key)), found) for key, each in value.items()}
        return {key: each for key, each in made.items() if each is not None}
    if isinstance(value, list | tuple):
        return [await _plain(each, (*steps, str(n)), found) for n, each in enumerate(value)]
    return value
