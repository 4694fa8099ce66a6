"""When two values mean the same to AWS, and what of an answer the program spoke of."""

from __future__ import annotations

import json
from typing import Any

from rehearsal.providers.aws.resource_type import MAPS
from rehearsal.providers.wire import Properties


def same(old: Any, new: Any) -> bool:
    """Equal, or both empty, or lists of the same plain values, or JSON texts of the same
    meaning."""
    if old == new or _empty(old) and _empty(new):
        return True
    if isinstance(old, list) and isinstance(new, list):
        return all(isinstance(v, str) for v in old + new) and sorted(old) == sorted(new)
    if isinstance(old, str) and isinstance(new, str) and old[:1] == new[:1] == "{":
        return _meaning(old) == _meaning(new)
    return False


def _empty(value: Any) -> bool:
    return value is None or value in ("", [], {})


def _meaning(document: str) -> Any:
    try:
        return _normal(json.loads(document))
    except ValueError:
        return document


def _normal(value: Any) -> Any:
    """In IAM's documents a list of one is its element, and order means nothing."""
    if isinstance(value, dict):
        return {key: _normal(inner) for key, inner in value.items()}
    if not isinstance(value, list):
        return value
    normal = sorted((_normal(inner) for inner in value), key=repr)
    return normal[0] if len(normal) == 1 else normal


def filled(properties: Properties, defaults: Properties) -> Properties:
    """The properties with the defaults of what is not given, fields of objects included."""
    given = {key: value for key, value in properties.items() if value is not None}
    for key, default in defaults.items():
        if not isinstance(default, dict):
            given.setdefault(key, default)
        elif key not in MAPS and isinstance(given.get(key, {}), dict):
            given[key] = filled(given.get(key, {}), default)
    return given


def shaped(actual: Any, like: Any, *, whole: bool = False) -> Any:
    """Part of `actual` that the program spoke of, or the whole, written as the program wrote it
    where that means the same."""
    if like is not None and same(actual, like):
        return like
    if isinstance(actual, dict) and isinstance(like, dict):
        keys = actual if whole else [key for key in like if actual.get(key) is not None]
        return {key: shaped(actual[key], like.get(key), whole=whole) for key in keys}
    if isinstance(actual, list) and isinstance(like, list) and len(actual) == len(like):
        return [shaped(a, b, whole=whole) for a, b in zip(actual, like, strict=True)]
    return actual
