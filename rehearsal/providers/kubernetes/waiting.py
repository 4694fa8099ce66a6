"""Waiting for an object: until it is ready (kinds.py, or what its annotation pulumi.com/waitFor
says), or gone."""

from __future__ import annotations

import time

from rehearsal.kube import Api, ApiError, Object
from rehearsal.providers.call import Call
from rehearsal.providers.kubernetes import kinds
from rehearsal.providers.kubernetes.kinds import Unmet, condition, stale, unless
from rehearsal.providers.problems import Cancelled, Refused
from trainyard.catalog.limits import AWAIT_SECONDS

POLL = 0.5
INTERRUPTED = "timed out waiting for the condition"
WAIT_FOR, SKIP = "pulumi.com/waitFor", "pulumi.com/skipAwait"
DELETION = "pulumi.com/deletionPropagationPolicy"
KNOWN = (WAIT_FOR, SKIP, DELETION)
"""Annotations of the genuine plugin that this one follows."""


def annotated(obj: Object) -> Object:
    meta = obj.get("metadata")
    return (meta.get("annotations") or {}) if isinstance(meta, dict) else {}


def skipped(obj: Object) -> bool:
    """True where the object's annotation pulumi.com/skipAwait asks to wait for nothing of it."""
    return annotated(obj).get(SKIP) == "true"


def deletion_policy(obj: Object) -> str:
    """The propagation policy with which the object is deleted (overrides.go, DeletionPropagation): in
    the foreground by default, also for a word that nobody knows."""
    asked = annotated(obj).get(DELETION, "").capitalize()
    return asked if asked in ("Background", "Orphan") else "Foreground"


def until_ready(call: Call, api: Api, live: Object) -> tuple[Object, list[str]]:
    """The object when it is ready, or as it was last seen and why it is not ready."""
    if skipped(live):
        return live, []
    goal, kind, name = asked_for(live), kinds.of(live), live["metadata"]["name"]
    late = (
        f"Timeout occurred polling for '{name}'"
        if kind.limit
        else f"'{name}' timed out waiting to be Ready"
    )
    end, shown = time.monotonic() + (kind.limit or call.timeout or AWAIT_SECONDS), ""
    try:
        while missing := _missing(goal or kind.unmet, live, api):
            if missing[0] != shown:
                call.report(shown := missing[0])
            if time.monotonic() > end:
                return live, [INTERRUPTED if goal else late, *missing]
            call.pause(POLL)
            live = _again(api, live) or live
    except Cancelled:
        return live, [f'Resource operation was cancelled for "{name}"', shown]
    if shown:
        call.report("")
    return live, []


def faults_on_read(api: Api, live: Object) -> list[str]:
    """Reasons why a refresh finds the object not ready."""
    kind = kinds.of(live)
    missing = _missing(kind.unmet, live, api) if kind.read and not skipped(live) else []
    said = f"Resource '{live['metadata']['name']}' was created but failed to initialize"
    return [said, *missing] if missing else []


def until_gone(call: Call, api: Api, obj: Object) -> None:
    """Return when the object does not exist any more."""
    end, first = time.monotonic() + (call.timeout or AWAIT_SECONDS), api.get(obj)
    left = first
    while first and left and left["metadata"]["uid"] == first["metadata"]["uid"]:
        if time.monotonic() > end:
            finalizers = ", ".join(left["metadata"].get("finalizers") or [])
            raise Refused(f"{INTERRUPTED}\nfinalizers might be preventing deletion ({finalizers})")
        call.pause(POLL)
        left = _again(api, left)


def _missing(unmet: Unmet, live: Object, api: Api) -> list[str]:
    try:
        return unmet(live, api)
    except (ApiError, Refused) as error:
        return [str(error)]


def _again(api: Api, live: Object) -> Object | None:
    """The object read again, None if it is gone; while the API server cannot be asked, as it
    was."""
    try:
        return api.get(live)
    except (ApiError, Refused):
        return live


def asked_for(obj: Object) -> Unmet | None:
    """Condition that the annotation pulumi.com/waitFor names: condition=TYPE[=STATUS]."""
    value = annotated(obj).get(WAIT_FOR)
    if not value:
        return None
    form, _, rest = value.partition("=")
    if form != "condition":
        raise Refused(
            f"this rehearsal's kubernetes plugin waits for condition=… only, not for {value}"
        )
    type_, _, wanted = rest.partition("=")
    return lambda live, api: unless(_holds(live, type_, wanted or "True"), f"Waiting for {rest}")


def _holds(live: Object, type_: str, wanted: str) -> bool:
    found = condition(live, type_)
    return bool(found) and not stale(live, found) and found["status"].lower() == wanted.lower()
