"""Objects in the cluster that are not as the last update of the stack left them: somebody, or another
program, deleted or changed them. Pulumi compares a stack file with its state, not with the cluster, so
that neither a preview nor `pulumi up` sees this before a refresh.

Jobs are not compared: they come and go by themselves, and Kueue changes them. Neither are Secrets, Helm
releases and objects of AWS: `trainyard drift` lets Pulumi read each one.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

from trainyard.catalog.job_kinds import JOB_KINDS
from trainyard.catalog.quantities import amount
from trainyard.command_line import cut_apart
from trainyard.operations.reach.kubectl import NOT_FOUND, Kubectl, Object
from trainyard.operations.reach.pods import AT_ONCE
from trainyard.operations.reach.pulumi import PATCH_FORCE, deployment
from trainyard.operations.reach.snapshot import FORBIDDEN, objects_at, root_of
from trainyard.operations.status.finding import Finding

NOT_COMPARED = {*JOB_KINDS, "Job", "Secret"}
"""Kinds whose objects end and are deleted in the course of their life, and Secrets, which no command of
this program reads."""
CIPHER = "4dabf18193072939515e22adb298388d"
"""Key of an object that takes the place of a secret value in a state (pulumi 3.259,
sdk/go/common/resource/sig)."""
PLUGIN = "pulumi.com/"
"""Begin of annotations that tell Pulumi's plugin something."""
AGAIN_SECONDS = 60
"""Seconds for which `trainyard watch` keeps an answer."""
WIDTH = 60
"""Characters of a value in a message."""
SHOWN = 3
"""Changed fields of an object that are named."""
BY_HAND = "somebody, or another program, {} it; no preview shows this before a refresh"
REFRESH, FORCE, UP = (
    "pulumi refresh --stack {stack}",
    f"{PATCH_FORCE}=true ",
    "pulumi up --stack {stack}",
)
"""Commands that make objects again what the stack file says."""
PLAIN = re.compile(r"[\w./:@ -]+")
"""Text that needs no quotes in a message."""


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of objects in one namespace, or without any."""

    version: str
    """Its apiVersion."""
    name: str
    namespace: str


def changed_by_hand(stack: str, kubectl: Kubectl) -> list[Finding]:
    """A finding for each object of the stack that is gone or changed. PulumiError where the stack has no
    state; RuntimeError where the cluster does not answer."""
    return drifted(wanted(deployment(stack)), kubectl, stack)


class Changes:
    """Findings of changed_by_hand(), asked for anew after AGAIN_SECONDS: a look that somebody repeats
    every few seconds asks the API server and the backend no more often than that."""

    def __init__(self, stack: str, kubectl: Kubectl) -> None:
        self._stack, self._kubectl = stack, kubectl
        self._found: list[Finding] = []
        self._until = -math.inf

    def __call__(self) -> list[Finding]:
        if time.monotonic() >= self._until:
            self._found = changed_by_hand(self._stack, self._kubectl)
            self._until = time.monotonic() + AGAIN_SECONDS
        return self._found


def wanted(state: Mapping[str, Any]) -> list[Object]:
    """The objects that the last update left in the cluster, as the program described them. `state`: the
    checkpoint, as `pulumi stack export` gives it. Nothing where an update has not ended: it changes them
    itself."""
    if state["deployment"].get("pending_operations"):
        return []
    resources = state["deployment"].get("resources") or []
    inputs = [each.get("inputs") or {} for each in resources if _compared(each)]
    return [each for each in inputs if {"apiVersion", "kind", "metadata"} <= each.keys()]


def _compared(resource: Mapping[str, Any]) -> bool:
    kind = resource["type"]
    return (
        kind.startswith("kubernetes:")
        and not kind.endswith("Patch")
        and bool(resource.get("custom"))
        and not resource.get("external")
        and not resource.get("delete")
        and kind.rpartition(":")[2] not in NOT_COMPARED
    )


def drifted(objects: Iterable[Object], kubectl: Kubectl, stack: str) -> list[Finding]:
    """A finding for each of these objects that is gone or changed. What this caller cannot read is not
    judged. RuntimeError where the cluster does not answer."""
    by_kind: dict[Kind, list[Object]] = {}
    for each in objects:
        by_kind.setdefault(_kind(each), []).append(each)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        plurals = _plurals(kubectl, {kind.version for kind in by_kind})
        found = dict(
            zip(by_kind, pool.map(partial(_there, kubectl, plurals), by_kind), strict=True)
        )
    return [
        finding
        for kind, own in by_kind.items()
        if (there := found[kind]) is not None
        for each in own
        if (finding := _finding(each, there.get(each["metadata"]["name"]), stack))
    ]


def _kind(obj: Object) -> Kind:
    return Kind(
        version=obj["apiVersion"],
        name=obj["kind"],
        namespace=obj["metadata"].get("namespace") or "",
    )


def _plurals(kubectl: Kubectl, versions: Iterable[str]) -> dict[tuple[str, str], str]:
    """apiVersion and kind → its plural; kinds that the API server does not serve are not there."""
    found = dict[tuple[str, str], str]()
    for version in versions:
        try:
            served = json.loads(kubectl("get", "--raw", root_of(version)))["resources"]
        except RuntimeError as error:
            if NOT_FOUND not in str(error):
                raise
            continue
        found |= {(version, one["kind"]): one["name"] for one in served if "/" not in one["name"]}
    return found


def _there(
    kubectl: Kubectl, plurals: Mapping[tuple[str, str], str], kind: Kind
) -> dict[str, Object] | None:
    """Name → object; None where this caller cannot list the kind."""
    plural = plurals.get((kind.version, kind.name))
    if plural is None:
        return {}
    scope = f"/namespaces/{kind.namespace}" if kind.namespace else ""
    try:
        listed = objects_at(kubectl, f"{root_of(kind.version)}{scope}/{plural}")
    except RuntimeError as error:
        if FORBIDDEN not in str(error):
            raise
        return None
    return {each["metadata"]["name"]: each for each in listed}


def _finding(obj: Object, live: Object | None, stack: str) -> Finding | None:
    name = _name(obj)
    if live is None:
        return Finding(
            what=f"{name} is gone",
            why=BY_HAND.format("deleted"),
            do=_mends(stack),
        )
    changed = list(_differences(_own(obj), live, ""))
    if not changed:
        return None
    more = [f"and {len(changed) - SHOWN} more"] if len(changed) > SHOWN else []
    return Finding(
        what=f"{name} was changed: {'; '.join([*changed[:SHOWN], *more])}",
        why=BY_HAND.format("changed"),
        do=_mends(stack, FORCE),
    )


def _mends(stack: str, variable: str = "") -> str:
    return f"{REFRESH}, then {variable}{UP}".format(stack=stack)


def _name(obj: Object) -> str:
    namespace = obj["metadata"].get("namespace")
    return f"{obj['kind']} {f'{namespace}/' if namespace else ''}{obj['metadata']['name']}"


def _own(obj: Object) -> Object:
    """Fields of an object that only its program writes."""
    meta = {
        name: {key: value for key, value in values.items() if not key.startswith(PLUGIN)}
        for name in ("labels", "annotations")
        if isinstance(values := obj["metadata"].get(name), dict) and CIPHER not in values
    }
    rest = {key: value for key, value in obj.items() if key not in ("metadata", "status")}
    return rest | {"metadata": meta}


def _differences(own: Any, live: Any, path: str) -> Iterator[str]:
    """A text for each value that is not in the live object. A default of the API server beside it is no
    difference, and neither is an empty value that the API server leaves out."""
    if isinstance(own, dict):
        if CIPHER not in own:
            for key, value in own.items():
                inside = live.get(key) if isinstance(live, dict) else None
                yield from _differences(value, inside, f"{path}.{key}" if path else key)
    elif isinstance(own, list) and isinstance(live, list) and len(own) == len(live):
        for number, (value, inside) in enumerate(zip(own, live, strict=True)):
            yield from _differences(value, inside, f"{path}[{number}]")
    elif not _same(own, live):
        yield difference(path, live, own)


def _same(own: Any, live: Any) -> bool:
    if own == live or not own and not live:
        return True
    if isinstance(own, list | dict | bool) or isinstance(live, list | dict | bool):
        return False
    quantity = amount(own), amount(live)
    return None not in quantity and quantity[0] == quantity[1]


def difference(path: str, now: Any, was: Any) -> str:
    """A changed field as a message shows it. Long values are cut where they do not differ."""
    here, before = cut_apart(_said(now), _said(was), WIDTH)
    return f"{path} is {here} and was {before}"


def _said(value: Any) -> str:
    if value is None:
        return "not there"
    plain = isinstance(value, str) and PLAIN.fullmatch(value)
    return value if plain else json.dumps(value)
