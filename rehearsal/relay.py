"""Carries TCP connections from the machine into the world's network namespace.

A socket belongs to the namespace it was made in, whoever holds it: the world's keeper gets sockets
that listen outside, and connects to the servers inside.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from contextlib import suppress


def serve(listening: socket.socket, port: int, closed: Callable[[], bool] = lambda: False) -> None:
    """Carry every connection to this port of 127.0.0.1, for ever; hang up on callers while it is
    `closed`."""
    while True:
        near, _ = listening.accept()
        if closed():
            near.close()
            continue
        threading.Thread(target=_carry, args=(near, port), daemon=True).start()


def _carry(near: socket.socket, port: int) -> None:
    """Both directions at once; where nobody listens the caller is hung up on, as by a closed
    port."""
    with near, suppress(OSError), socket.create_connection(("127.0.0.1", port)) as far:
        back = threading.Thread(target=_pump, args=(far, near), daemon=True)
        back.start()
        _pump(near, far)
        back.join()


def _pump(source: socket.socket, target: socket.socket) -> None:
    """Copy until the source ends; the other direction may go on, as with `kubectl logs`."""
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
