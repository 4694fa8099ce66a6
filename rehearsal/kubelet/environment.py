"""A container's environment and command line as a kubelet computes them: fields, resources, $(VAR)
expansion."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from rehearsal.kube import Object
from trainyard.catalog.quantities import amount

REFERENCE = re.compile(r"\$\$|\$\(([-._a-zA-Z][-._a-zA-Z0-9]*)\)")
SUBSCRIPT = re.compile(r"metadata\.(labels|annotations)\['(.+)'\]")
Read = Callable[[str, Object], dict[str, bytes]]
"""Function from a kind ("configMap", "secret") and a reference by name to the object's content."""


class NotReady(RuntimeError):
    """Something a pod needs is missing now; it waits, and an event tells why. `reason` is what
    kubectl shows."""

    def __init__(self, message: str, reason: str = "CreateContainerConfigError") -> None:
        super().__init__(message)
        self.reason = reason


def quantity(text: str | int | float) -> Fraction:
    """A Kubernetes quantity as a number."""
    number = amount(text)
    if number is None:
        raise ValueError(f"not a quantity: {text!r}")
    return number


def expand(text: str, env: dict[str, str]) -> str:
    """$(NAME) becomes the variable's value, $$ a dollar; an unknown name stays as it is written."""
    return REFERENCE.sub(lambda m: "$" if m[0] == "$$" else env.get(m[1], m[0]), text)


def field(pod: Object, path: str) -> str:
    """A downward-API field of the pod: one word, or one label or annotation."""
    if found := SUBSCRIPT.fullmatch(path):
        return (pod["metadata"].get(found[1]) or {}).get(found[2], "")
    here: Any = pod
    for part in path.split("."):
        here = here.get(part) if isinstance(here, dict) else None
    if not isinstance(here, str):
        raise NotReady(f"the rehearsal's kubelet does not know the field {path}")
    return here


def resource(pod: Object, container: Object, ref: Object, allocatable: dict[str, str]) -> str:
    """A resourceFieldRef: a limit that is not set means what the node can give."""
    owner = next(
        (c for c in pod["spec"]["containers"] if c["name"] == ref.get("containerName")), container
    )
    kind, _, name = ref["resource"].partition(".")
    default = allocatable.get(name, "0") if kind == "limits" else "0"
    value = quantity(owner.get("resources", {}).get(kind, {}).get(name, default))
    return str(math.ceil(value / (quantity(ref.get("divisor") or 1) or 1)))


def keyed(variable: str, ref: Object, held: dict[str, bytes], where: str) -> dict[str, str]:
    """The variable with the value of a key; nothing where the key is optional and absent."""
    if ref["key"] not in held and not ref.get("optional"):
        raise NotReady(f"couldn't find key {ref['key']} in {where}/{ref['name']}")
    return {variable: held[ref["key"]].decode()} if ref["key"] in held else {}


def environment(
    pod: Object, container: Object, base: dict[str, str], allocatable: dict[str, str], read: Read
) -> dict[str, str]:
    """`base` is what image and cluster set; the pod's own variables come on top, each may use those
    before it."""
    env, space = dict(base), pod["metadata"]["namespace"]
    for entry in container.get("env", []):
        match entry.get("valueFrom"):
            case None:
                env[entry["name"]] = expand(entry.get("value", ""), env)
            case {"fieldRef": ref}:
                env[entry["name"]] = field(pod, ref["fieldPath"])
            case {"resourceFieldRef": ref}:
                env[entry["name"]] = resource(pod, container, ref, allocatable)
            case {"configMapKeyRef": ref}:
                env |= keyed(entry["name"], ref, read("configMap", ref), f"ConfigMap {space}")
            case {"secretKeyRef": ref}:
                env |= keyed(entry["name"], ref, read("secret", ref), f"Secret {space}")
            case other:
                raise NotReady(
                    f"the rehearsal's kubelet does not know valueFrom.{next(iter(other))}"
                )
    return env
