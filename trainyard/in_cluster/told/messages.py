"""Messages that are published once each: claimed in a ConfigMap, published to a topic of SNS, confirmed in
the ConfigMap.

A claim is written with the resourceVersion that was read, so of two programs one gets it. A program that
ends between its claim and its confirmation leaves nobody who knows whether SNS has the message. Who
publishes: told.py.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import threading
import time
from collections.abc import Callable, Mapping

import query
from api_server import Api, ApiError, say
from record import Object, stamp

CONFLICT = 409
TAKE_OVER_SECONDS = 60.0
"""A claim that another program has left as it is for so long is taken over: that program has ended."""
SEND_SECONDS = 20.0
"""Within so many seconds of reading the ConfigMap a program begins to publish, or does not. With the time
that a request takes that is less than TAKE_OVER_SECONDS."""
RETRY_SECONDS, LONGEST_RETRY_SECONDS = 15.0, 900.0
"""Before it publishes again what SNS has not taken; twice as long each time."""
CLAIMED, TOLD = "claimed", "told"
"""What a ConfigMap says of a message."""

Publish = Callable[[Mapping[str, str]], str]
"""Publishes, and returns SNS's id of the message. Raises query.AwsError."""
Key = tuple[str, str]
"""Uid of a run, and which of its messages."""
Fields = Callable[[bool], Mapping[str, str]]
"""Whether the message may have been published before → the parameters of Publish."""


def place(namespace: str, uid: str = "") -> str:
    """Path of the ConfigMap of a run, or of all of them."""
    every = f"/api/v1/namespaces/{namespace}/configmaps"
    return f"{every}/run-{uid}" if uid else every


def serial(key: Key) -> str:
    """The number of a message: the same in every copy of it, and in no other message."""
    return hashlib.sha256("/".join(key).encode()).hexdigest()[:16]


class Messages:
    """The messages of all runs."""

    def __init__(self, api: Api, namespace: str, publish: Publish) -> None:
        self._api, self._namespace, self._publish = api, namespace, publish
        self._me = f"{os.environ.get('HOSTNAME', '')}-{secrets.token_hex(4)}"
        self.told: set[Key] = set()
        self._seen: dict[Key, tuple[str, float]] = {}
        """Claims of other programs, and since when they are what they are."""
        self._sent: dict[Key, str] = {}
        """Published by this program and not confirmed yet → SNS's id."""
        self._retry: dict[Key, tuple[float, float]] = {}
        """What SNS has not taken → when it is published again, and the wait before that."""
        self.ends = threading.Event()
        """Set where the pod is to end: nothing is claimed any more, and what is claimed is confirmed."""

    def recall(self, uid: str, kept: Object) -> set[str]:
        """Which messages of a run are told, as its ConfigMap says."""
        told = {name for name in kept["data"] if _state(kept, name).get("state") == TOLD}
        self.told |= {(uid, name) for name in told}
        return told

    def tell(self, key: Key, fields: Fields, now: float, clock: float) -> bool:
        """Publish a message, unless it is told. Returns whether it is told now. Raises ApiError. `clock`:
        seconds that only count on."""
        if key not in self._sent:
            due, _ = self._retry.get(key, (0.0, 0.0))
            if self.ends.is_set() or key in self.told or clock < due:
                return key in self.told
            began = time.monotonic()
            again = self._claim(key, clock)
            if again is None:
                return key in self.told
            if not self._send(key, fields, again, began, clock):
                return False
        self._mark(key, {"state": TOLD, "by": self._me, "id": self._sent[key], "at": stamp(now)})
        self.told.add(key)
        del self._sent[key]
        return True

    def _claim(self, key: Key, clock: float) -> bool | None:
        """Claim a message, so that no other program publishes it. Returns whether it may have been
        published before; None where it is told, or another program has the claim."""
        kept = self._api.ask("GET", place(self._namespace, key[0]))
        claim = _state(kept, key[1])
        if claim.get("state") == TOLD:
            self.told.add(key)
            return None
        if claim and claim["by"] != self._me and not self._is_left(key, claim, clock):
            return None
        mine = {"state": CLAIMED, "by": self._me, "mark": secrets.token_hex(4)}
        try:
            self._mark(key, mine, kept["metadata"]["resourceVersion"])
        except ApiError as error:
            if error.code != CONFLICT:
                raise
            return None  # another one was quicker
        return bool(claim)

    def _is_left(self, key: Key, claim: Mapping[str, str], clock: float) -> bool:
        """Whether another program has left its claim as it is for so long that it has ended."""
        text = json.dumps(claim)
        before, since = self._seen.get(key, ("", clock))
        if text != before:
            self._seen[key] = (text, clock)
            return False
        return clock - since >= TAKE_OVER_SECONDS

    def _send(self, key: Key, fields: Fields, again: bool, began: float, clock: float) -> bool:
        """Publish what is claimed. Returns whether SNS has taken it."""
        if time.monotonic() - began > SEND_SECONDS:
            return False  # it was stopped in between: the claim may be another program's by now
        try:
            self._sent[key] = self._publish(fields(again))
        except query.AwsError as error:
            say(f"SNS: {error}")
            _, wait = self._retry.get(key, (0.0, RETRY_SECONDS / 2))
            wait = min(2 * wait, LONGEST_RETRY_SECONDS)
            self._retry[key] = (clock + wait, wait)
            if error.refused and not again:
                self._mark(key, None)  # nothing was published
            return False
        return True

    def _mark(self, key: Key, said: Mapping[str, str] | None, version: str | None = None) -> None:
        """Write what becomes of a message; None takes the claim away. `version`: that of the ConfigMap,
        which must be the same still."""
        body: Object = {"data": {key[1]: said and json.dumps(said)}}
        if version:
            body["metadata"] = {"resourceVersion": version}
        path = place(self._namespace, key[0])
        self._api.ask("PATCH", path, body, "merge-patch+json")


def _state(kept: Object, name: str) -> Mapping[str, str]:
    """What a ConfigMap says of a message; empty where it says nothing, or `name` is none of a message."""
    said = kept["data"].get(name) or "{}"
    found = json.loads(said) if said.startswith("{") else {}
    return found if "state" in found else {}
