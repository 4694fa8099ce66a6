"""Carries TCP connections between the machine and the world's network namespace, over Unix sockets.

A Unix socket's path means the same in every network namespace, so one relay listens outside on 127.0.0.1 and one
inside connects to the server. Addresses are `host:port` or the path of a socket.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def serve(listen: str, target: str) -> asyncio.Server:
    """Accept at `listen` and carry every connection to `target`, until the server is closed."""
    at_work: set[asyncio.Task[None]] = set()  # nothing else holds the task of a half-closed connection: it would vanish

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(_carry((reader, writer), target))
        at_work.add(task)
        task.add_done_callback(at_work.discard)

    if is_path(listen):
        Path(listen).unlink(missing_ok=True)
        return await asyncio.start_unix_server(accept, listen)
    host, port = listen.rsplit(":", 1)
    return await asyncio.start_server(accept, host, int(port))


def is_path(address: str) -> bool:
    """Whether an address is a Unix socket."""
    return address.startswith("/")


async def _carry(near: Streams, target: str) -> None:
    """Both directions at once; where nobody listens at the target the caller is hung up on, as by a closed port."""
    try:
        far = await _connect(target)
    except OSError:
        near[1].close()
        return
    await asyncio.gather(_pump(near[0], far[1]), _pump(far[0], near[1]))
    for _, writer in (near, far):
        writer.close()


async def _connect(target: str) -> Streams:
    if is_path(target):
        return await asyncio.open_unix_connection(target)
    host, port = target.rsplit(":", 1)
    return await asyncio.open_connection(host, int(port))


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy until one side ends; the other direction may go on, as with `kubectl logs`."""
    with suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.write_eof()
