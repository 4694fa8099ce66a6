"""Types and settings that a path of a stack file leads to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from trainyard.settings.environment import StackConfig


def is_required(steps: Sequence[str]) -> bool:
    """True where a setting has no default, or is an entry of a map or list."""
    found = _fields_at(steps)
    return not found or any(f.default is MISSING and f.default_factory is MISSING for f in found)


def defaults_at(steps: Sequence[str]) -> list[Any]:
    """The defaults of a setting, one for each type that holds it; MISSING where it has none."""
    return [field.default for field in _fields_at(steps)]


def _fields_at(steps: Sequence[str]) -> list[Field[Any]]:
    holders = [holder for holder in types_at(steps[:-1]) if is_dataclass(holder)]
    return [field for holder in holders for field in fields(holder) if field.name == steps[-1]]


def keys_at(steps: Sequence[str]) -> list[str]:
    """The settings of the dataclass that a path leads to; of a job, those of either kind."""
    holders = [holder for holder in types_at(steps) if is_dataclass(holder)]
    return list(dict.fromkeys(field.name for holder in holders for field in fields(holder)))


def choices_at(steps: Sequence[str]) -> list[str]:
    """The texts of which a setting takes one; none where it takes others."""
    return [
        str(one)
        for kind in types_at(steps)
        if get_origin(kind) is Literal
        for one in get_args(kind)
    ]


def types_at(steps: Sequence[str]) -> list[Any]:
    """The types that a setting can have; those of a union separately."""
    types: list[Any] = [StackConfig]
    for step in steps:
        types = [
            inner
            for outer in types
            for inner in _separate(
                settings_of(outer).get(step) if is_dataclass(outer) else _inside(outer)
            )
        ]
    return types


@cache
def settings_of(holder: Any) -> dict[str, Any]:
    """The settings of a dataclass, with their types; Python reads these anew at each call."""
    return get_type_hints(holder)


def _inside(kind: Any) -> Any:
    """Type of the entries of a dict or a tuple."""
    arguments = get_args(kind) or (None, None)
    return arguments[0] if get_origin(kind) is tuple else arguments[1]


def _separate(kind: Any) -> list[Any]:
    """X and Y of `X | Y | None`; anything else as it is."""
    if get_origin(kind) not in (Union, UnionType):
        return [kind]
    return [one for one in get_args(kind) if one is not type(None)]
