"""The relay between the machine and the world."""

import socket
import threading
import time

import pytest

from rehearsal import relay
from tests.support.patience import PATIENCE
from tests.support.ports import free_port


def _served(port: int) -> int:
    """The relay's own port."""
    outside = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=relay.serve, args=(outside, port), daemon=True).start()
    return outside.getsockname()[1]


def _say(port: int, words: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as connection:
        connection.sendall(words)
        connection.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: connection.recv(65536), b""))


def test_bytes_pass_and_a_half_closed_connection_still_gets_its_answer():
    inside = socket.create_server(("127.0.0.1", 0))

    def echo_once() -> None:
        connection, _ = inside.accept()
        words = b"".join(iter(lambda: connection.recv(65536), b""))
        time.sleep(0.1)
        connection.sendall(b"heard " + words)
        connection.close()

    threading.Thread(target=echo_once, daemon=True).start()
    assert _say(_served(inside.getsockname()[1]), b"x" * 300_000) == b"heard " + b"x" * 300_000


def test_where_nobody_listens_the_caller_is_hung_up_on():
    assert _say(_served(free_port()), b"") == b""


def test_while_it_is_closed_every_caller_is_hung_up_on():
    inside, outside = (socket.create_server(("127.0.0.1", 0)) for _ in range(2))
    closed = [True]
    threading.Thread(
        target=relay.serve,
        args=(outside, inside.getsockname()[1], lambda: closed[0]),
        daemon=True,
    ).start()
    assert _say(outside.getsockname()[1], b"") == b""
    inside.setblocking(False)
    with pytest.raises(BlockingIOError):
        inside.accept()
    closed[0] = False
    with socket.create_connection(("127.0.0.1", outside.getsockname()[1])):
        inside.settimeout(PATIENCE)
        inside.accept()[0].close()
