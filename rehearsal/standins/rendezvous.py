"""Meeting place of the nodes and ranks of the stand-in torchrun: a TCP server beside the agent of
the rendezvous host.

One JSON value a line. Nodes join until the world is complete; then all ranks meet at every step, so
that the loss of one is noticed by all. A round that is lost is followed by another.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from contextlib import suppress
from typing import Any

FIRST_STEP_SECONDS = 60.0
"""Ranks may need this long to start."""
HEARTBEAT_SECONDS = float(os.environ.get("HEARTBEAT_SECONDS", "60"))
"""Longer silence between two steps means that a rank or its node is gone. NCCL waits 600 s; on a busy
machine a sound rank can be silent for more than 10 s."""
END = -1
"""The step at which all ranks end together."""


class Lost(RuntimeError):
    """A peer is gone, or the ranks disagree."""


class Line:
    """A connection on which both sides say and hear JSON values."""

    def __init__(self, connection: socket.socket) -> None:
        self._socket, self._file = connection, connection.makefile("rb")

    def say(self, value: Any) -> None:
        """Send; Lost where the other side is gone."""
        try:
            self._socket.sendall(json.dumps(value).encode() + b"\n")
        except OSError as error:
            raise Lost(str(error)) from None

    def hear(self, seconds: float) -> Any:
        """Word of the other side; Lost where it is gone, TimeoutError where it is silent."""
        self._socket.settimeout(max(seconds, 0.001))
        try:
            said = self._file.readline()
        except ConnectionError as error:
            raise Lost(str(error)) from None
        if not said:
            raise Lost("the other side closed the connection")
        return json.loads(said)


def connect(address: tuple[str, int], seconds: float) -> Line:
    """Keep trying, names included, as torch's TCPStore does. It says once that a name is not known
    (torch 2.7, c10d/socket.cpp)."""
    end, told = time.monotonic() + seconds, False
    while True:
        try:
            return Line(socket.create_connection(address, timeout=5))
        except OSError as error:
            if isinstance(error, socket.gaierror) and not told:
                told = True
                print(
                    f"[c10d] The IPv4 network addresses of ({address[0]}, {address[1]}) cannot be"
                    f" retrieved (gai error: {error.errno} - {error.strerror}).",
                    file=sys.stderr,
                    flush=True,
                )
            if time.monotonic() > end:
                raise
            time.sleep(0.2)


class Hub:
    """The nodes of one run and their ranks: as many nodes as are there in time, of an elastic run. A
    node that comes later waits for the next round."""

    def __init__(self, port: int, run: str, nodes: tuple[int, int], last_call: float) -> None:
        """`nodes`: at least and at most. `last_call`: seconds from the least on in which more may
        come."""
        self._server = socket.create_server(("", port), backlog=128)
        self._run, (self._fewest, self._most), self._last_call = run, nodes, last_call
        self._joined: list[tuple[dict[str, Any], Line]] = []
        self._others: list[Line] = []
        """Nodes of another run: they wait in vain."""

    @property
    def port(self) -> int:
        return self._server.getsockname()[1]

    def serve(self) -> None:
        """Rounds, until one ends well."""
        while not self._round({}):
            pass

    def _round(self, ranks: dict[int, Line]) -> bool:
        """All nodes, then all ranks, at every step; whether they came to the end."""
        try:
            self._await_ranks(ranks, self._gather())
            step, patience = 0, FIRST_STEP_SECONDS
            while step != END:
                step, patience = self._meet(ranks, patience), HEARTBEAT_SECONDS
            return True
        except Lost as loss:
            for line in ranks.values():
                with suppress(Lost):
                    line.say(str(loss))
            return False

    def _gather(self) -> int:
        """Wait for the nodes and tell each its place; the number of ranks."""
        self._server.settimeout(None)
        while len(self._joined) < self._fewest:
            self._welcome({})
        end = time.monotonic() + self._last_call
        while len(self._joined) < self._most and (left := end - time.monotonic()) > 0:
            self._server.settimeout(left)
            with suppress(TimeoutError):
                self._welcome({})
        nodes, self._joined = self._joined, []
        if nodes[0][0]["fixed"]:
            nodes.sort(key=lambda node: node[0]["node_rank"])
        size, first = sum(node["ranks"] for node, _ in nodes), 0
        for node, line in nodes:
            line.say({"first": first, "size": size})
            first += node["ranks"]
        return size

    def _await_ranks(self, ranks: dict[int, Line], size: int) -> None:
        self._server.settimeout(FIRST_STEP_SECONDS)
        while len(ranks) < size:
            try:
                self._welcome(ranks)
            except TimeoutError:
                _miss(set(range(size)) - set(ranks), FIRST_STEP_SECONDS)
            if self._joined:
                raise Lost("a node began anew")

    def _welcome(self, ranks: dict[int, Line]) -> None:
        """Take the next caller in, a rank or a node; TimeoutError where nobody calls."""
        line = Line(self._server.accept()[0])
        try:
            who = line.hear(HEARTBEAT_SECONDS)
        except (Lost, TimeoutError):
            return  # it went before it said who it is
        if "rank" in who:
            ranks[who["rank"]] = line
        elif who["run"] == self._run:
            self._joined.append((who, line))
        else:
            self._others.append(line)

    def _meet(self, ranks: dict[int, Line], patience: float) -> int:
        """Hear every rank's step, and let them go on where it is the same."""
        end, steps = time.monotonic() + patience, dict[int, int]()
        for rank, line in ranks.items():
            try:
                steps[rank] = line.hear(end - time.monotonic())
            except Lost:
                raise Lost(f"rank {rank} was lost") from None
            except TimeoutError:
                continue
        if missing := set(ranks) - set(steps):
            _miss(missing, patience)
        if len(set(steps.values())) > 1:
            raise Lost(
                f"ranks are at different steps {sorted(set(steps.values()))}: not one checkpoint"
            )
        for line in ranks.values():
            line.say("")
        return steps[0]


def _miss(ranks: set[int], seconds: float) -> None:
    raise Lost(f"no sign of rank {', '.join(map(str, sorted(ranks)))} for {seconds:g} s")


def meet(line: Line, step: int) -> None:
    """A rank meets all others; Lost with the hub's reason where one does not come."""
    line.say(step)
    try:
        reason = line.hear(FIRST_STEP_SECONDS + HEARTBEAT_SECONDS)
    except TimeoutError:
        reason = "the rendezvous host did not answer"
    if reason:
        raise Lost(reason)
