"""The relay between the machine and the world."""

import asyncio
import gc
from pathlib import Path

from rehearsal import paths, relay


async def _echo_once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    words = await reader.read()
    await asyncio.sleep(0.1)
    gc.collect()  # a connection whose caller only waits must not depend on what else refers to it
    writer.write(b"heard " + words)
    await writer.drain()
    writer.close()


async def _say(port: int, words: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(words)
    writer.write_eof()
    return await reader.read()


def test_bytes_pass_both_relays_and_a_half_closed_connection_still_gets_its_answer(tmp_path: Path):
    async def scene() -> bytes:
        inside, outside, middle = paths.free_port(), paths.free_port(), str(tmp_path / "s")
        await asyncio.start_server(_echo_once, "127.0.0.1", inside)
        await relay.serve(middle, f"127.0.0.1:{inside}")
        await relay.serve(f"127.0.0.1:{outside}", middle)
        return await _say(outside, b"x" * 300_000)

    assert asyncio.run(scene()) == b"heard " + b"x" * 300_000


def test_where_nobody_listens_the_caller_is_hung_up_on(tmp_path: Path):
    async def scene() -> bytes:
        outside = paths.free_port()
        await relay.serve(f"127.0.0.1:{outside}", str(tmp_path / "absent"))
        return await asyncio.wait_for(_say(outside, b""), 5)

    assert asyncio.run(scene()) == b""


def test_a_socket_that_a_killed_relay_left_is_taken_over(tmp_path: Path):
    (tmp_path / "s").touch()

    async def scene() -> bool:
        return (await relay.serve(str(tmp_path / "s"), "127.0.0.1:1")).is_serving()

    assert asyncio.run(scene())
