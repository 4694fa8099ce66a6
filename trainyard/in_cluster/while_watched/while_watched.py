"""Run a program that a person looks at, such as TensorBoard, for as long as that person's tool is connected.

Its one argument is JSON: `command`, the program; `port`, where the program listens; `door`, where this one listens;
`seconds`, after which the program ends in any case; `alone_seconds`, after which it ends where the tool says nothing.

Both ports are on the pod's own loopback, which the tool reaches by `kubectl port-forward` and no other pod can. The
first line of a connection to `door` has variables for the program as JSON: a token is in no spec and in no log. Then
the tool sends a byte every few seconds. It gets a line when the program listens. The exit code is always 0: a pod
that fails would be started again.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

LOOK_SECONDS = 0.5
STOP_SECONDS = 10.0
READY = b"ready\n"
LOOPBACK = "127.0.0.1"
WAY_OUT = "take an image that has it with --image (docs/runs.md, TensorBoard and notebooks)"


class Watched:
    """The program, the door, and who is at it."""

    def __init__(self, settings: dict[str, Any], door: socket.socket) -> None:
        self._settings, self._door = settings, door
        self._heard = self._began = time.monotonic()
        self._said: dict[socket.socket, bytes] = {}
        """Connection → all that it has said, up to its first line."""
        self._told = set[socket.socket]()
        self._program: subprocess.Popen[bytes] | None = None

    def run(self) -> str:
        """Until the program has ended; how it ended, in words."""
        try:
            while not (end := self._end()):
                self._listen()
                self._tell()
            return end
        finally:
            if self._program:
                _stop(self._program)

    def _end(self) -> str:
        """Why the program has ended or must end; empty where it goes on."""
        now = time.monotonic()
        if self._program and self._program.poll() is not None:
            return f"the program ended with exit code {self._program.returncode}"
        if now - self._began > self._settings["seconds"]:
            return f"its time is over: {self._settings['seconds']:g} s"
        if now - self._heard > self._settings["alone_seconds"]:
            return f"nobody was connected for {self._settings['alone_seconds']:g} s"
        return ""

    def _listen(self) -> None:
        """Take what has come; start the program with the first whole line."""
        for one in select.select([self._door, *self._said], [], [], LOOK_SECONDS)[0]:
            if one is self._door:
                self._said[self._door.accept()[0]] = b""
                continue
            content = b""
            with contextlib.suppress(OSError):
                content = one.recv(4096)
            if not content:
                del self._said[one]
                self._told.discard(one)
                one.close()
                continue
            self._heard = time.monotonic()
            if b"\n" not in self._said[one]:
                self._said[one] += content
                self._begin(self._said[one])

    def _begin(self, said: bytes) -> None:
        line, whole, _ = said.partition(b"\n")
        if whole and not self._program:
            self._program = subprocess.Popen(
                self._settings["command"],
                env={**os.environ, **json.loads(line)},
                start_new_session=True,
            )

    def _tell(self) -> None:
        """Say to each connection, once, that the program listens."""
        waiting = [one for one, said in self._said.items() if b"\n" in said]
        waiting = [one for one in waiting if one not in self._told]
        if not waiting or not _listens(self._settings["port"]):
            return
        for one in waiting:
            with contextlib.suppress(OSError):
                one.sendall(READY)
            self._told.add(one)


def _listens(port: int) -> bool:
    try:
        socket.create_connection((LOOPBACK, port), LOOK_SECONDS).close()
    except OSError:
        return False
    return True


def _stop(program: subprocess.Popen[bytes]) -> None:
    """End the program with the processes that it has started."""
    for kind in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(program.pid, kind)
        with contextlib.suppress(subprocess.TimeoutExpired):
            program.wait(STOP_SECONDS)
            return


@contextlib.contextmanager
def _ended_in_order() -> Iterator[None]:
    """SIGTERM, which deletes a pod, ends the block as ctrl-C does."""

    def leave(*_: Any) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, leave)
    with contextlib.suppress(KeyboardInterrupt):
        yield


def main(settings: dict[str, Any]) -> None:
    """Run the program; the last line says how it ended."""
    with _ended_in_order(), socket.create_server((LOOPBACK, settings["door"])) as door:
        try:
            said = Watched(settings, door).run()
        except FileNotFoundError as error:
            said = f"the image has no program {error.filename}: {WAY_OUT}"
        print(f"[{said}]", flush=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
