"""Waiting for an object: until it is ready (readiness.py, or what its annotation pulumi.com/waitFor says), or gone."""

from __future__ import annotations

import json
import re
import time
from typing import Any

from rehearsal.kube import Api, ApiError, Object
from rehearsal.plugins.base import Call, Cancelled, Refused
from rehearsal.plugins.kubernetes.readiness import (
    DELETE_MAY_SKIP_AWAIT,
    RULES,
    Hopeless,
    Rule,
    Unmet,
    condition,
    stale,
    unless,
)

POLL = 0.5
DEFAULT = 600.0
INTERRUPTED = "timed out waiting for the condition"


def annotation(obj: Object, key: str) -> str:
    """An annotation pulumi.com/<key>, "" where it is missing."""
    return ((obj.get("metadata") or {}).get("annotations") or {}).get(f"pulumi.com/{key}") or ""


def kind_of(obj: Object) -> tuple[str, str]:
    return obj["apiVersion"], obj["kind"]


def until_ready(call: Call, api: Api, inputs: Object, live: Object) -> tuple[Object, list[str]]:
    """The object when it is ready, or as it was last seen and why it is not ready."""
    goal, name = asked_for(live), live["metadata"]["name"]
    rule = Rule(unmet=goal) if goal else RULES.get(kind_of(live))
    if not rule or annotation(inputs, "skipAwait") == "true":
        return live, []
    late = f"Timeout occurred polling for '{name}'" if rule.limit else f"'{name}' timed out waiting to be Ready"
    end, shown = time.monotonic() + (rule.limit or _limit(call, inputs)), ""
    try:
        while missing := _missing(rule, live, api):
            if missing[0] != shown:
                call.report(shown := missing[0])
            if time.monotonic() > end:
                return live, [INTERRUPTED if goal else late, *missing]
            call.pause(POLL)
            live = _again(api, live) or live
    except Hopeless as fault:
        return live, [_not_initialized(live), str(fault)]
    except Cancelled:
        return live, [f'Resource operation was cancelled for "{name}"', shown]
    if shown:
        call.report("")
    return live, []


def faults_on_read(api: Api, live: Object) -> list[str]:
    """Why a refresh finds the object not ready."""
    rule = RULES.get(kind_of(live))
    if not rule or not rule.read or annotation(live, "skipAwait") == "true":
        return []
    try:
        missing = _missing(rule, live, api)
    except Hopeless as fault:
        missing = [str(fault)]
    return [_not_initialized(live), *missing] if missing else []


def until_gone(call: Call, api: Api, live: Object) -> None:
    """Return when the object does not exist any more."""
    if annotation(live, "skipAwait") == "true" and kind_of(live) in DELETE_MAY_SKIP_AWAIT:
        return
    end, first = time.monotonic() + _limit(call, live), api.get(live)
    left = first
    while first and left and left["metadata"]["uid"] == first["metadata"]["uid"]:
        if time.monotonic() > end:
            finalizers = ", ".join(left["metadata"].get("finalizers") or [])
            raise Refused(f"{INTERRUPTED}\nfinalizers might be preventing deletion ({finalizers})")
        call.pause(POLL)
        left = _again(api, left)


def _not_initialized(live: Object) -> str:
    return f"Resource '{live['metadata']['name']}' was created but failed to initialize"


def _limit(call: Call, obj: Object) -> float:
    """Seconds the program allows: customTimeouts before the annotation."""
    seconds = annotation(obj, "timeoutSeconds")
    return call.timeout or (float(seconds) if seconds.isdigit() else DEFAULT)


def _missing(rule: Rule, live: Object, api: Api) -> list[str]:
    try:
        return rule.unmet(live, api)
    except Hopeless:
        raise
    except (ApiError, Refused) as error:
        return [str(error)]


def _again(api: Api, live: Object) -> Object | None:
    """The object read again, None if it is gone; while the API server cannot be asked, as it was."""
    try:
        return api.get(live)
    except (ApiError, Refused):
        return live


def asked_for(obj: Object) -> Unmet | None:
    """What the annotation pulumi.com/waitFor asks for: one expression, or a JSON array of which all must hold."""
    value = annotation(obj, "waitFor")
    if not value:
        return None
    goals = [_goal(expression) for expression in _expressions(value)]
    if not goals:
        raise Refused("at least one condition must be specified")
    return lambda live, api: [reason for goal in goals for reason in goal(live, api)]


def _expressions(value: str) -> list[str]:
    try:
        return json.loads(value) if value.startswith("[") else [value]
    except ValueError:
        return [value]


def _goal(expression: str) -> Unmet:
    form, _, rest = expression.partition("=")
    reason = f"Waiting for {rest}"
    if form == "condition":
        type_, _, wanted = rest.partition("=")
        return lambda live, api: unless(_holds(live, type_, wanted or "True"), reason)
    if form == "jsonpath":
        steps, value = _json_path(rest)
        return lambda live, api: unless(not stale(live) and _matches(_selected(live, steps), value), reason)
    raise Refused(f'expected a "jsonpath=" or "condition=" prefix, got "{expression}"')


def _holds(live: Object, type_: str, wanted: str) -> bool:
    found = condition(live, type_)
    return bool(found) and not stale(live, found) and found["status"].lower() == wanted.lower()


def _matches(found: list[Any], wanted: str) -> bool:
    """The first value selected is the one wanted; where none is named, any is."""
    if not found or not wanted:
        return bool(found)
    return (found[0] if isinstance(found[0], str) else json.dumps(found[0])) == wanted


_STEP = re.compile(r"""\.([\w-]+)|\['([^']+)'\]|\[(\d+)\]|\[\?\(@\.([\w-]+)\s*==\s*(['"])(.*?)\5\)\]""")
"""A name, a quoted name, an index, or a filter on one field."""


def _json_path(text: str) -> tuple[list[re.Match[str]], str]:
    """The steps and the value of {.path}=value."""
    parsed = re.fullmatch(r"\{\s*\$?(.*?)\s*\}(?:=([^=].*))?", text)
    steps = list(_STEP.finditer(parsed[1])) if parsed else []
    if not parsed or "".join(step[0] for step in steps) != parsed[1]:
        raise Refused(f"this rehearsal's kubernetes plugin does not implement the JSONPath expression {text}")
    return steps, parsed[2] or ""


def _selected(live: Object, steps: list[re.Match[str]]) -> list[Any]:
    values: list[Any] = [live]
    for step in steps:
        values = [inner for value in values for inner in _step(value, step)]
    return values


def _step(value: Any, step: re.Match[str]) -> list[Any]:
    name, quoted, index, field, _, wanted = step.groups()
    if isinstance(value, dict):
        return [value[name or quoted]] if (name or quoted) in value else []
    if not isinstance(value, list):
        return []
    if index:
        return value[int(index):int(index) + 1]
    return [inner for inner in value if field and isinstance(inner, dict) and inner.get(field) == wanted]
