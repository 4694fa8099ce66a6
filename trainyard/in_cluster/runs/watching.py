"""Lists that a watch keeps up to date. For the programs in the folders beside this one.

A program looks every few seconds, and a cluster can have a thousand nodes: asked for as often, their list
would be most of what the API server does, and more than the pod's memory holds.
"""

from __future__ import annotations

import json
import threading
import time
import urllib.parse
from typing import Any

from api_server import REQUEST_SECONDS, Api, ApiError, Object

PAGE = 100
"""Objects of one answer, which are in memory as a whole."""
WATCH_SECONDS = 600
"""After so long the API server ends a watch, and the next one goes on from there."""
SILENT_SECONDS = 90
"""The API server says something once a minute on each watch but that of events (BOOKMARK). Silent for longer it is
gone."""
EVENTS, EVENTS_SECONDS = "/events", 80
"""End of the path of events, and how long they are watched. It has no cache of them and so says nothing while there
is none (Kubernetes 1.34, pkg/kubeapiserver/default_storage_factory_builder.go, DefaultWatchCacheSizes). With no
bookmark the version gets old as well: their list is read again after each watch."""
RETRY_SECONDS = (1.0, 30.0)
"""After an error: the first wait and the longest one. Each is twice the one before."""


class Watching(Api):
    """The API server. It asks for each list once, and then for its changes only."""

    def __init__(self) -> None:
        super().__init__()
        self._lists: dict[str, _Watched] = {}
        self._begins = threading.Lock()
        """Two threads of a program may ask for one list at a time: it is watched once."""

    def items(self, path: str, **query: str) -> list[Object]:
        """A list as it is now, without what no program reads. Its objects must not be changed. Raises
        ApiError while it cannot be had, or its watch is interrupted."""
        return self._list(path, query).items()

    def gone(self, path: str, **query: str) -> list[tuple[Object, float]]:
        """The objects of a list that were deleted since this was asked last, as they were then, and the moments, in
        seconds since 1970. Those that went while the watch was interrupted are not among them."""
        return self._list(path, query).gone()

    def _list(self, path: str, query: dict[str, str]) -> _Watched:
        key = f"{path}?{urllib.parse.urlencode(query)}"
        with self._begins:
            if key not in self._lists:
                self._lists[key] = _Watched(self, path, query)
            return self._lists[key]


class _Watched:
    """One list, in a thread."""

    def __init__(self, api: Watching, path: str, query: dict[str, str]) -> None:
        self._api, self._path, self._query = api, path, query
        self._items: dict[str, Object] = {}
        """By uid."""
        self._gone: list[tuple[Object, float]] | None = None
        """None until somebody asks: a program that does not ask must not keep them."""
        self._version = ""
        self._error: ApiError | None = None
        self._lock = threading.Lock()
        self._answered = threading.Event()
        """The list is there, or an error."""
        threading.Thread(target=self._follow, daemon=True).start()

    def items(self) -> list[Object]:
        if not self._answered.wait(REQUEST_SECONDS):
            raise ApiError(0, f"{self._path} is not there after {REQUEST_SECONDS} seconds")
        with self._lock:
            if self._error:
                raise self._error
            return [*self._items.values()]

    def gone(self) -> list[tuple[Object, float]]:
        with self._lock:
            found, self._gone = self._gone or [], []
            return found

    def _follow(self) -> None:
        """For ever. Whatever goes wrong, the list is read again: an old one must not pass for a new one."""
        first, longest = RETRY_SECONDS
        wait = first
        while True:
            try:
                self._list()
                wait = first
                while True:
                    self._watch()
                    time.sleep(first)
                    if self._path.endswith(EVENTS):
                        self._list()
            except Exception as error:
                self._fail(error if isinstance(error, ApiError) else ApiError(0, repr(error)))
            time.sleep(wait)
            wait = min(wait * 2, longest)

    def _fail(self, error: ApiError) -> None:
        """Forget the list: nobody gets it before it is read anew, and both have no room beside each other."""
        with self._lock:
            self._error, self._items = error, {}
        self._answered.set()

    def _list(self) -> None:
        found: dict[str, Object] = {}
        more, version = "", ""
        while True:
            page = self._api.ask(
                "GET", self._with(limit=PAGE, **({"continue": more} if more else {}))
            )
            for each in page["items"]:
                found[each["metadata"]["uid"]] = slimmed(each)
            version, more = (
                page["metadata"]["resourceVersion"],
                page["metadata"].get("continue", ""),
            )
            if not more:
                break
        with self._lock:
            self._items, self._version, self._error = found, version, None
        self._answered.set()

    def _watch(self) -> None:
        """Until the API server ends the watch. Raises ApiError where it does not say that it ends, or has
        forgotten the version from which to go on."""
        asked = self._with(
            watch="1",
            resourceVersion=self._version,
            allowWatchBookmarks="true",
            timeoutSeconds=EVENTS_SECONDS if self._path.endswith(EVENTS) else WATCH_SECONDS,
        )
        for line in self._api.lines(asked, SILENT_SECONDS):
            event = json.loads(line)
            kind, obj = event["type"], event["object"]
            if kind == "ERROR":
                raise ApiError(obj.get("code", 0), obj.get("message", ""))
            with self._lock:
                self._version = obj["metadata"]["resourceVersion"]
                if kind == "DELETED":
                    self._items.pop(obj["metadata"]["uid"], None)
                    if self._gone is not None:
                        self._gone.append((slimmed(obj), time.time()))
                elif kind != "BOOKMARK":
                    self._items[obj["metadata"]["uid"]] = slimmed(obj)

    def _with(self, **query: Any) -> str:
        return f"{self._path}?{urllib.parse.urlencode(self._query | query)}"


UNREAD: tuple[tuple[str, ...], ...] = (
    ("metadata", "managedFields"),
    ("spec", "volumes"),
    ("spec", "tolerations"),
    ("spec", "affinity"),
    ("spec", "replicatedJobs"),
    ("status", "images"),
    ("status", "volumesInUse"),
)
"""Large parts of pods, JobSets and nodes that no program reads."""
OF_CONTAINERS = ("name", "image", "resources")
"""Fields that stay of a container of a pod, with the variables that somebody reads."""
OF_OPERATOR = "PET_"
"""Beginning of the variables by which the training-operator tells torchrun how many pods there are (gangs.py,
sickness.py). A variable from a Secret stays as well: it has no value here."""
ETCD = "rdzv_backend=etcd"
"""Stays of a container that says so anywhere (sickness.py)."""


def slimmed(obj: Object) -> Object:
    """The object, without what no program reads."""
    for outer, inner in UNREAD:
        obj.get(outer, {}).pop(inner, None)
    spec, status = obj.get("spec") or {}, obj.get("status") or {}
    for pods in spec.get("podSets", ()):
        pods.pop("template", None)
    for kind in ("containers", "initContainers"):
        if kind in spec:
            spec[kind] = [_container(each) for each in spec[kind]]
        for each in status.get(f"{kind[:-1]}Statuses") or ():
            _slim_status(each)
    return obj


def _container(container: Object) -> Object:
    """A container of a pod, without what no program reads: variables and scripts are most of a pod."""
    kept = {key: container[key] for key in OF_CONTAINERS if key in container}
    if ETCD in str(container):
        kept["args"] = [ETCD]
    if env := [each for each in container.get("env") or () if _is_read(each)]:
        kept["env"] = env
    return kept


def _is_read(variable: Object) -> bool:
    of_secret = "secretKeyRef" in (variable.get("valueFrom") or {})
    return of_secret or variable["name"].startswith(OF_OPERATOR)


def _slim_status(status: Object) -> None:
    """Take away from the status of a container: ids, and the end of its log, which it has where it failed."""
    for part in ("imageID", "containerID"):
        status.pop(part, None)
    for state in ("state", "lastState"):
        ((status.get(state) or {}).get("terminated") or {}).pop("message", None)
