"""Pulumi's property values as plain Python: unknowns are UNKNOWN, secrets are unwrapped, whole
numbers are ints.

No plugin accepts secrets, so the engine itself marks every output whose input of the same name was
secret.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from google.protobuf import json_format, struct_pb2

UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
"""Text that the engine sends, and accepts, for a value that is only known after the update."""

SIGNATURE = "4dabf18193072939515e22adb298388d"
SECRET, OUTPUT = "1b47061264138c4ac30d75fd1eb44270", "d0e6a833031e9bbcd3f4e8bde6ca49a4"
BRIDGE_DEFAULTS = "__defaults"
"""Key under which the genuine plugins write into their state which inputs were defaults. It is no
property of anything."""

Properties = dict[str, Any]
Changes = dict[str, str]
"""Property path → "add", "delete" or "update"."""


def words(text: str) -> frozenset[str]:
    """A set of names, written as one text."""
    return frozenset(text.split())


def plain(message: struct_pb2.Struct) -> Properties:
    """The properties of a message as plain Python."""
    return _plain(json_format.MessageToDict(message))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        if value.get(SIGNATURE) in (SECRET, OUTPUT):
            return _plain(value.get("value", UNKNOWN))
        return {key: _plain(inner) for key, inner in value.items() if key != BRIDGE_DEFAULTS}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def struct(properties: Mapping[str, Any]) -> struct_pb2.Struct:
    """Plain Python as a message."""
    return json_format.ParseDict(dict(properties), struct_pb2.Struct())


def unknown(value: Any) -> bool:
    """True where anything in the value is not known yet."""
    if isinstance(value, dict):
        return any(map(unknown, value.values()))
    return any(map(unknown, value)) if isinstance(value, list) else value == UNKNOWN


def changes(
    old: Any, new: Any, path: str = "", same: Callable[[Any, Any], bool] = lambda a, b: a == b
) -> Changes:
    """Differences between two values; a property that is None is one that is absent. `same` says
    what counts as equal."""
    if same(old, new):
        return {}
    if isinstance(old, dict) and isinstance(new, dict):
        return _merged(
            changes(old.get(k), new.get(k), join(path, k), same) for k in sorted({*old, *new})
        )
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        return _merged(
            changes(a, b, f"{path}[{i}]", same)
            for i, (a, b) in enumerate(zip(old, new, strict=True))
        )
    return {path: "add" if old is None else "delete" if new is None else "update"}


def _merged(parts: Any) -> Changes:
    return {path: kind for part in parts for path, kind in part.items()}


def join(path: str, key: str) -> str:
    """A property path one step down; keys with dots, brackets or quotes are quoted as the engine
    does."""
    if any(c in key for c in '.["]'):
        quoted = key.replace('"', '\\"')
        return f'{path}["{quoted}"]'
    return f"{path}.{key}" if path else key


def top(path: str) -> str:
    """The property of the resource that a path lies in."""
    return path.split(".")[0].split("[")[0]
