"""Differences between a Kubernetes object and the program's wish, and those that take a new
object."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from rehearsal.kube import Object
from rehearsal.providers.kubernetes import kinds
from rehearsal.providers.wire import Changes, Properties, changes
from trainyard.catalog.quantities import amount

IDENTITY = ("metadata.name", "metadata.namespace")
QUANTITIES = {"capacity", "hard", "limits", "requests"}


def pruned(live: Any, own: Any) -> Any:
    """Part of the live object that is in the fields that the program gave."""
    if isinstance(live, dict) and isinstance(own, dict):
        return {key: pruned(value, own[key]) for key, value in live.items() if key in own}
    if isinstance(live, list) and isinstance(own, list):
        return [pruned(a, b) for a, b in zip(live, own, strict=False)]
    return live


def differences(
    live: Object, old: Properties, new: Properties, ignored: tuple[str, ...]
) -> Changes:
    """Between the live object, in the fields the program gave last time, and what it gives now."""
    before, wanted = pruned(live, old), deepcopy(new)
    if isinstance(meta := wanted.get("metadata"), dict):
        _same_place(live.get("metadata") or {}, before.setdefault("metadata", {}), meta)
    if kinds.builtin(new["apiVersion"].rpartition("/")[0]):
        wanted = _without_empty(wanted, before)
    found = changes(_comparable(before), _comparable(wanted))
    return {
        path: kind
        for path, kind in found.items()
        if not any(covers(outer, path) for outer in ignored)
    }


def replacing(new: Object, found: Changes) -> frozenset[str]:
    """The changes among those found that need a new object."""
    fields = (*IDENTITY, *kinds.of(new).replaces)
    return frozenset(
        path
        for path, kind in found.items()
        if any(
            covers(field, path) or (kind != "update" and covers(path, field)) for field in fields
        )
    )


def covers(outer: str, path: str) -> bool:
    """True where a property path is the other, or lies in it."""
    return path == outer or path.startswith((f"{outer}.", f"{outer}["))


def _same_place(live: Object, before: Properties, wanted: Properties) -> None:
    """An object is where it is even if the program does not say; a cluster-wide one's namespace
    means nothing."""
    if live.get("namespace"):
        before["namespace"] = live["namespace"]
        wanted["namespace"] = wanted.get("namespace") or "default"
    else:
        wanted.pop("namespace", None)
    before["name"] = live.get("name")


def _without_empty(wanted: Any, live: Any) -> Any:
    """The wanted value without the empty ones that the API server drops from its own kinds, such as
    a class of ""."""
    if isinstance(wanted, dict) and isinstance(live, dict):
        return {
            key: _without_empty(value, live.get(key))
            for key, value in wanted.items()
            if value or key in live
        }
    if isinstance(wanted, list) and isinstance(live, list) and len(wanted) == len(live):
        return [_without_empty(a, b) for a, b in zip(wanted, live, strict=True)]
    return wanted


def _comparable(value: Any) -> Any:
    """Copy of the object with its resource quantities as numbers, so that 1000m is 1."""
    if isinstance(value, list):
        return [_comparable(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    return {
        key: (
            {name: _quantity(text) for name, text in inner.items()}
            if key in QUANTITIES and isinstance(inner, dict)
            else _comparable(inner)
        )
        for key, inner in value.items()
    }


def _quantity(value: Any) -> Any:
    number = amount(value)
    return value if number is None else number
