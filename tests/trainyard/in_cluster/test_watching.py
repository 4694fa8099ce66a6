"""Lists that a watch keeps up to date, at an API server that is a list of answers."""

from __future__ import annotations

import json
import queue
import threading
import time
import urllib.parse
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from tests.support.patience import until
from tests.support.programs import imported

Object = dict[str, Any]
PODS = "/api/v1/pods"


@pytest.fixture(scope="module")
def program() -> Iterator[ModuleType]:
    """watching.py, as the program of repair has it."""
    with imported("repair"):
        import watching  # pyright: ignore[reportMissingImports]

        yield watching


class Server:
    """What an API server has of one kind, and the changes that it sends to a watch."""

    def __init__(self, program: ModuleType, patch: pytest.MonkeyPatch, *names: str) -> None:
        self.program = program
        self.objects = {name: _object(name) for name in names}
        self.asked: list[str] = []
        self.changes: queue.Queue[Object | Exception | None] = queue.Queue()
        """None: the API server ends the watch."""
        self.refuses: Exception | None = None
        patch.setattr(program, "RETRY_SECONDS", (0.01, 0.02))
        patch.setattr(program.Api, "__init__", lambda *_: None)
        patch.setattr(program.Api, "ask", self._ask)
        patch.setattr(program.Api, "lines", self._lines)
        self.api = program.Watching()

    def names(self) -> set[str]:
        return {each["metadata"]["name"] for each in self.api.items(PODS, labelSelector="a=b")}

    def send(self, kind: str, obj: Object) -> None:
        self.changes.put({"type": kind, "object": obj})

    def _ask(self, method: str, path: str) -> Object:
        self.asked.append(path)
        if self.refuses:
            raise self.refuses
        query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(path).query))
        first = int(query.get("continue", 0))
        last = first + int(query["limit"])
        items = [*self.objects.values()]
        more = {"continue": str(last)} if last < len(items) else {}
        meta = {"resourceVersion": str(len(self.asked))} | more
        return {"items": json.loads(json.dumps(items[first:last])), "metadata": meta}

    def _lines(self, path: str, seconds: float) -> Iterator[bytes]:
        self.asked.append(path)
        while (change := self.changes.get()) is not None:
            if isinstance(change, Exception):
                raise change
            yield json.dumps(change).encode() + b"\n"


def _object(name: str, version: str = "1", **more: Any) -> Object:
    return {"metadata": {"name": name, "uid": name, "resourceVersion": version}, **more}


@pytest.fixture
def server(program: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Server:
    return Server(program, monkeypatch, "a", "b")


def test_a_list_is_asked_for_once_and_followed(server: Server) -> None:
    assert server.names() == server.names() == {"a", "b"}
    server.send("ADDED", _object("c"))
    server.send("DELETED", _object("a"))
    server.send("MODIFIED", _object("b", phase="Running"))
    until(lambda: server.names() == {"b", "c"})
    until(lambda: any(each.get("phase") for each in server.api.items(PODS, labelSelector="a=b")))
    lists = [path for path in server.asked if "watch=1" not in path]
    assert lists == [f"{PODS}?labelSelector=a%3Db&limit=100"]


def test_every_list_is_one_of_its_own(server: Server) -> None:
    server.names()
    server.api.items("/api/v1/nodes")
    assert "/api/v1/nodes?limit=100" in server.asked


def test_a_long_list_is_read_page_by_page(
    program: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = Server(program, monkeypatch, *(f"pod-{number}" for number in range(250)))
    assert len(server.names()) == 250
    assert sum("limit=100" in path for path in server.asked) == 3


def test_a_watch_that_ends_goes_on_from_the_last_change(server: Server) -> None:
    server.names()
    server.send("BOOKMARK", _object("", version="77"))
    server.changes.put(None)
    until(lambda: any("resourceVersion=77" in path for path in server.asked))
    assert server.names() == {"a", "b"}, "a bookmark is no object"


@pytest.mark.parametrize("forgotten", [True, False])
def test_after_an_error_the_list_is_read_again(server: Server, forgotten: bool) -> None:
    """The API server has forgotten the version, or the connection breaks."""
    assert server.names() == {"a", "b"}
    server.objects = {"z": _object("z")}
    if forgotten:
        server.send("ERROR", {"code": 410, "message": "too old resource version"})
    else:
        server.changes.put(server.program.ApiError(0, "connection reset"))
    until(lambda: _names_or_nothing(server) == {"z"})


def _names_or_nothing(server: Server) -> set[str]:
    try:
        return server.names()
    except server.program.ApiError:
        return set()


def test_an_old_list_is_never_taken_for_a_new_one(server: Server) -> None:
    assert server.names() == {"a", "b"}
    server.refuses = server.program.ApiError(0, "nobody answers")
    server.changes.put(server.program.ApiError(0, "connection reset"))
    until(lambda: _names_or_nothing(server) == set())
    for _ in range(3):
        time.sleep(0.01)
        with pytest.raises(server.program.ApiError):
            server.names()
    server.refuses = None
    until(lambda: _names_or_nothing(server) == {"a", "b"})


def test_a_list_that_two_threads_ask_for_at_once_is_watched_once(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, begins = list[Any](), server.program._Watched

    def slowly(*args: Any) -> Any:
        made.append(args)
        time.sleep(0.1)
        return begins(*args)

    monkeypatch.setattr(server.program, "_Watched", slowly)
    both = [threading.Thread(target=server.names) for _ in range(2)]
    for each in both:
        each.start()
    for each in both:
        each.join()
    assert len(made) == 1


def test_an_answer_that_makes_no_sense_is_an_error_and_ends_nothing(server: Server) -> None:
    server.names()
    server.changes.put({"type": "ADDED"})
    until(
        lambda: (
            _names_or_nothing(server) == {"a", "b"} and sum("limit" in p for p in server.asked) == 2
        )
    )


def test_a_kind_that_is_not_served_yet_is_there_when_it_is(server: Server) -> None:
    server.refuses = server.program.ApiError(404, "not found")
    with pytest.raises(server.program.ApiError) as refused:
        server.names()
    assert refused.value.code == 404
    server.refuses = None
    until(lambda: _names_or_nothing(server) == {"a", "b"})


def test_large_parts_that_nobody_reads_are_not_kept(server: Server) -> None:
    server.objects = {
        "a": {
            **_object("a"),
            "spec": {"nodeName": "n", "volumes": ["v"], "podSets": [{"count": 2, "template": {}}]},
            "status": {"phase": "Running", "images": ["i"]},
        }
    }
    server.objects["a"]["metadata"]["managedFields"] = ["m"]
    [kept] = server.api.items(PODS)
    assert kept["spec"] == {"nodeName": "n", "podSets": [{"count": 2}]}
    assert kept["status"] == {"phase": "Running"} and "managedFields" not in kept["metadata"]


def test_what_was_deleted_is_known_once_with_its_last_state_and_its_moment(server: Server) -> None:
    began = time.time()
    assert server.names() == {"a", "b"}
    assert server.api.gone(PODS, labelSelector="a=b") == []
    server.send("DELETED", _object("a", phase="Failed"))
    until(lambda: server.names() == {"b"})
    [(pod, at)] = server.api.gone(PODS, labelSelector="a=b")
    assert (pod["metadata"]["name"], pod["phase"]) == ("a", "Failed")
    assert began <= at <= time.time()
    assert server.api.gone(PODS, labelSelector="a=b") == []


def test_what_was_deleted_is_not_kept_for_a_program_that_does_not_ask(server: Server) -> None:
    server.names()
    server.send("DELETED", _object("a"))
    until(lambda: server.names() == {"b"})
    assert server.api.gone(PODS, labelSelector="a=b") == []


def test_of_a_container_stays_what_a_program_reads(server: Server) -> None:
    secret = {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hub", "key": "token"}}}
    container = {
        "name": "pytorch",
        "image": "train:1",
        "resources": {"limits": {"nvidia.com/gpu": "8"}},
        "env": [{"name": "PET_NNODES", "value": "2:4"}, {"name": "DATA", "value": "x"}, secret],
        "command": ["bash", "-c", "torchrun train.py"],
        "volumeMounts": [{"name": "store"}],
    }
    ended = {"exitCode": 1, "finishedAt": "2026-06-01T10:00:00Z", "message": "the end of its log"}
    server.objects = {
        "a": {
            **_object("a"),
            "spec": {"containers": [container], "tolerations": ["t"], "affinity": {}},
            "status": {
                "containerStatuses": [
                    {"name": "pytorch", "imageID": "sha256:0", "state": {"terminated": ended}}
                ]
            },
        }
    }
    [kept] = server.api.items(PODS)
    assert kept["spec"] == {
        "containers": [
            {
                "name": "pytorch",
                "image": "train:1",
                "resources": {"limits": {"nvidia.com/gpu": "8"}},
                "env": [{"name": "PET_NNODES", "value": "2:4"}, secret],
            }
        ]
    }
    [status] = kept["status"]["containerStatuses"]
    assert status == {
        "name": "pytorch",
        "state": {"terminated": {"exitCode": 1, "finishedAt": "2026-06-01T10:00:00Z"}},
    }


@pytest.mark.parametrize("part", ["command", "args", "env"])
def test_a_container_that_meets_by_etcd_is_known_by_it(program: ModuleType, part: str) -> None:
    said: Any = ["torchrun", "--rdzv_backend=etcd-v2"]
    if part == "env":
        said = [{"name": "OPTIONS", "value": "--rdzv_backend=etcd"}]
    pod = {"metadata": {}, "spec": {"containers": [{"name": "pytorch", part: said}]}}
    assert "rdzv_backend=etcd" in str(program.slimmed(pod))


def test_an_old_list_takes_no_room_while_it_is_read_again(server: Server) -> None:
    server.names()
    [watched] = server.api._lists.values()
    server.refuses = server.program.ApiError(0, "nobody answers")
    server.changes.put(server.program.ApiError(0, "connection reset"))
    until(lambda: _names_or_nothing(server) == set())
    assert watched._items == {}


def test_a_watch_of_events_ends_before_it_is_silent_for_too_long(
    server: Server, program: ModuleType
) -> None:
    """The API server sends no bookmark of events: their watch was taken for broken each 90 seconds."""
    events = "/api/v1/namespaces/default/events"
    assert len(server.api.items(events, fieldSelector="type=Warning")) == 2
    until(lambda: any("watch=1" in path for path in server.asked))
    [asked] = [path for path in server.asked if "watch=1" in path]
    query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(asked).query))
    assert int(query["timeoutSeconds"]) < program.SILENT_SECONDS
    server.objects = {"z": _object("z")}
    server.changes.put(None)

    def names() -> set[str]:
        """Raises an error where there is a moment without the list."""
        found = server.api.items(events, fieldSelector="type=Warning")
        return {each["metadata"]["name"] for each in found}

    until(lambda: names() == {"z"})
