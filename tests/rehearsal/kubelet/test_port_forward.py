"""`kubectl port-forward`: connections to a pod's own loopback, with their bytes, ends and errors."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest

from rehearsal.kubelet.exec import ExecRefused
from rehearsal.kubelet.port_forward import Forwarding, network
from rehearsal.kubelet.process import Simulated
from rehearsal.kubelet.spdy import Data, Frames, data
from tests.support.patience import PATIENCE
from tests.support.worlds import NEEDS_A_WORLD

pytestmark = NEEDS_A_WORLD


class Client:
    """Opens connections as the API server does, and reads until both streams of one have ended."""

    def __init__(self, ours: socket.socket) -> None:
        self._socket, self._frames, self._next = ours, Frames(), 1

    def connects(self, port: int) -> int:
        """The stream of the bytes; that of the errors is 2 less."""
        for kind in ("error", "data"):
            headers = {"streamtype": kind, "port": str(port), "requestid": str(self._next // 4)}
            self._socket.sendall(self._frames.open(self._next, headers))
            self._next += 2
        return self._next - 2

    def sends(self, stream: int, text: bytes, *, last: bool = False) -> None:
        self._socket.sendall(data(stream, text, last=last))

    def reads(self, *streams: int) -> dict[int, bytes]:
        said, ended = dict.fromkeys(streams, b""), set[int]()
        while ended != {*streams} and (content := self._socket.recv(65536)):
            for event in self._frames.feed(content):
                if isinstance(event, Data) and event.stream in said:
                    said[event.stream] += event.content
                    ended |= {event.stream} if event.last else set()
        return said


@pytest.fixture
def client() -> Iterator[Client]:
    ours, theirs = socket.socketpair()
    ours.settimeout(PATIENCE)
    server: Any = SimpleNamespace(
        recv=theirs.recv, sendall=theirs.sendall, fileno=theirs.fileno, pending=lambda: 0
    )
    thread = threading.Thread(target=Forwarding(server, "/proc/self/ns/net").run, daemon=True)
    thread.start()
    yield Client(ours)
    ours.close()
    thread.join(PATIENCE)
    assert not thread.is_alive()
    theirs.close()


@pytest.fixture
def echo() -> Iterator[int]:
    """Port of a program that answers with what it got, when it has got all."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    one, _ = server.accept()
                    with one:
                        got = b"".join(iter(lambda: one.recv(65536), b""))  # noqa: B023
                        one.sendall(b"got " + got)

        threading.Thread(target=serve, daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)


def test_a_connection_carries_bytes_both_ways_until_both_sides_have_ended(
    client: Client, echo: int
) -> None:
    stream = client.connects(echo)
    client.sends(stream, b"one ")
    client.sends(stream, b"x" * 300_000, last=True)
    said = client.reads(stream, stream - 2)
    assert said == {stream: b"got one " + b"x" * 300_000, stream - 2: b""}


def test_two_connections_at_once_do_not_mix(client: Client, echo: int) -> None:
    first, second = client.connects(echo), client.connects(echo)
    client.sends(second, b"second", last=True)
    client.sends(first, b"first", last=True)
    said = client.reads(first, second)
    assert said == {first: b"got first", second: b"got second"}


def test_a_port_where_nothing_listens_is_an_error_of_that_connection_alone(
    client: Client, echo: int
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    stream = client.connects(port)
    said = client.reads(stream, stream - 2)
    assert b"Connection refused" in said[stream - 2] and said[stream] == b""
    other = client.connects(echo)
    client.sends(other, b"still", last=True)
    assert client.reads(other)[other] == b"got still"


def test_a_pod_of_which_nothing_runs_has_no_network() -> None:
    simulated = SimpleNamespace(process=Simulated(None))
    for pod in (None, SimpleNamespace(containers=[simulated])):
        with pytest.raises(ExecRefused, match="no container of the pod runs"):
            network(pod)  # type: ignore[arg-type]
