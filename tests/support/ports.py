"""Ports of this machine for servers of tests."""

from __future__ import annotations

import socket


def free_port() -> int:
    """A TCP port nobody on this machine uses now."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]
