"""Ports of this machine for servers of tests."""

from __future__ import annotations

import random
import socket

CHOSEN = range(12_000, 32_000)
"""Below the ports that a kernel gives to connections and to servers without a port of their own (32768 and up
on Linux, 49152 and up on macOS): nothing else takes one before the server of a test does."""


def free_port() -> int:
    """A TCP port that nobody on this machine uses now.

    Raises:
        OSError: a hundred of them are all in use.
    """
    # not the seed of a test, which is the same in each worker
    for port in random.SystemRandom().sample(CHOSEN, 100):
        with socket.socket() as one:
            try:
                one.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise OSError("100 ports of this machine are all in use")
