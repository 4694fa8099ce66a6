"""A container's environment and command line as a kubelet computes them: references, fields, $(VAR) expansion."""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from rehearsal.kube import Object

Lookup = Callable[[str, str], Object | None]
"""(configmaps or secrets, name) → the object in the pod's namespace."""

SUFFIXES = {"": 1, "m": Decimal("0.001"), "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15,
            "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50}
REFERENCE = re.compile(r"\$\$|\$\(([-._a-zA-Z][-._a-zA-Z0-9]*)\)")
SUBSCRIPT = re.compile(r"metadata\.(labels|annotations)\['(.+)'\]")


class NotReady(RuntimeError):
    """Something a pod needs is missing now; it waits, and an event tells why."""


def quantity(text: str | int | float) -> Decimal:
    """A Kubernetes quantity as a number."""
    found = re.fullmatch(r"([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)([a-zA-Z]{0,2})", str(text))
    if not found or found[2] not in SUFFIXES:
        raise ValueError(f"not a quantity: {text!r}")
    return Decimal(found[1]) * SUFFIXES[found[2]]


def expand(text: str, env: dict[str, str]) -> str:
    """$(NAME) becomes the variable's value, $$ a dollar; an unknown name stays as it is written."""
    return REFERENCE.sub(lambda m: "$" if m[0] == "$$" else env.get(m[1], m[0]), text)


def keyed(obj: Object) -> dict[str, bytes]:
    """Keys and contents of a ConfigMap or Secret."""
    plain = {k: v.encode() for k, v in (obj.get("data") or {}).items()} if obj.get("kind") != "Secret" else {}
    coded = obj.get("binaryData") if obj.get("kind") != "Secret" else obj.get("data")
    return plain | {k: base64.b64decode(v) for k, v in (coded or {}).items()}


def field(pod: Object, path: str) -> str:
    """A downward-API field of the pod."""
    if found := SUBSCRIPT.fullmatch(path):
        return (pod["metadata"].get(found[1]) or {}).get(found[2], "")
    here: Any = pod
    for part in path.split("."):
        here = here.get(part) if isinstance(here, dict) else None
    if isinstance(here, dict):
        return "\n".join(f'{k}="{v}"' for k, v in sorted(here.items()))
    if here is None and path not in ("status.podIP", "status.hostIP"):
        raise NotReady(f"the rehearsal's kubelet does not know the field {path}")
    return str(here or "")


def resource(pod: Object, container: Object, ref: Object, allocatable: dict[str, str]) -> str:
    """A resourceFieldRef: a limit that is not set means what the node can give."""
    owner = next((c for c in pod["spec"]["containers"] if c["name"] == ref.get("containerName")), container)
    kind, _, name = ref["resource"].partition(".")
    default = allocatable.get(name, "0") if kind == "limits" else "0"
    value = quantity(owner.get("resources", {}).get(kind, {}).get(name, default))
    return str(math.ceil(value / (quantity(ref.get("divisor") or 1) or 1)))


def referenced(kind: str, ref: Object, lookup: Lookup) -> str | None:
    """One key of a ConfigMap or Secret; None where it is optional and missing."""
    found = lookup(kind, ref["name"])
    value = keyed(found).get(ref["key"]) if found else None
    if value is None and not ref.get("optional"):
        raise NotReady(f'{kind[:-1]} "{ref["name"]}" not found' if found is None
                       else f'couldn\'t find key {ref["key"]} in {kind[:-1]} "{ref["name"]}"')
    return None if value is None else value.decode()


def environment(pod: Object, container: Object, base: dict[str, str], allocatable: dict[str, str],
                lookup: Lookup) -> dict[str, str]:
    """`base` is what image and cluster set; the pod's own variables come on top, each may use those before it."""
    env = dict(base)
    for source in container.get("envFrom", []):
        for kind, name in (("configmaps", "configMapRef"), ("secrets", "secretRef")):
            if ref := source.get(name):
                found = lookup(kind, ref["name"])
                if found is None and not ref.get("optional"):
                    raise NotReady(f'{kind[:-1]} "{ref["name"]}" not found')
                env |= {source.get("prefix", "") + k: v.decode() for k, v in keyed(found or {}).items()}
    for entry in container.get("env", []):
        value = expand(entry.get("value", ""), env)
        if origin := entry.get("valueFrom"):
            value = _origin(pod, container, origin, allocatable, lookup)
        if value is not None:
            env[entry["name"]] = value
    return env


def _origin(pod: Object, container: Object, origin: Object, allocatable: dict[str, str], lookup: Lookup) -> str | None:
    match next(iter(origin)):
        case "fieldRef":
            return field(pod, origin["fieldRef"]["fieldPath"])
        case "resourceFieldRef":
            return resource(pod, container, origin["resourceFieldRef"], allocatable)
        case "configMapKeyRef":
            return referenced("configmaps", origin["configMapKeyRef"], lookup)
        case "secretKeyRef":
            return referenced("secrets", origin["secretKeyRef"], lookup)
        case other:
            raise NotReady(f"the rehearsal's kubelet does not know valueFrom.{other}")
