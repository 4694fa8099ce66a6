"""Where the stand-in torchrun's nodes and ranks meet: a TCP server in the agent of the rendezvous host.

One JSON object a line, each answered by one line. Nodes join until the world is complete; then at every step all ranks
meet, so that the loss of one is noticed by all.
"""

from __future__ import annotations

import json
import os
import socket
import socketserver
import threading
import time
from dataclasses import dataclass, field
from typing import Any

FIRST_STEP_SECONDS = 60.0
"""Ranks may need this long to start."""
HEARTBEAT_SECONDS = float(os.environ.get("HEARTBEAT_SECONDS", "8"))
"""Longer silence between two steps means that a rank or its node is gone."""
END = -1
"""The step at which all ranks end together."""


class Lost(RuntimeError):
    """A peer is gone, or the ranks disagree."""


@dataclass
class World:
    """The ranks of one round."""

    size: int
    arrived: dict[int, int] = field(default_factory=dict)
    meetings: int = 0
    error: str = ""


class Hub:
    """Who has come, and who waits."""

    def __init__(self, nodes: int, join_seconds: float) -> None:
        self._nodes, self._join_seconds = nodes, join_seconds
        self._waiting: dict[str, list[dict[str, Any]]] = {}
        self._worlds: list[World] = []
        self._changed = threading.Condition()
        self.connections = 0

    def join(self, node: dict[str, Any]) -> dict[str, Any] | None:
        """Wait until all nodes of this run are there; None where they do not come in time."""
        with self._changed:
            self._waiting.setdefault(node["run"], []).append(node)
            if len(self._waiting[node["run"]]) == self._nodes:
                self._complete(self._waiting.pop(node["run"]))
            self._changed.wait_for(lambda: "answer" in node, timeout=self._join_seconds)
            return node.get("answer")

    def _complete(self, nodes: list[dict[str, Any]]) -> None:
        ordered = sorted(nodes, key=lambda n: n["node_rank"]) if nodes[0]["fixed"] else nodes
        world, first = World(sum(n["ranks"] for n in nodes)), 0
        self._worlds.append(world)
        for number, node in enumerate(ordered):
            node["answer"] = {"node": number, "nodes": len(nodes), "first": first, "size": world.size,
                              "round": len(self._worlds) - 1}
            first += node["ranks"]
        self._changed.notify_all()

    def meet(self, number: int, rank: int, step: int) -> str:
        """Wait for all ranks at this step; why they will not come, or nothing."""
        with self._changed:
            world = self._worlds[number]
            meeting = world.meetings
            world.arrived[rank] = step
            if len(world.arrived) == world.size:
                self._leave(world)
            patience = HEARTBEAT_SECONDS if meeting else FIRST_STEP_SECONDS
            if not self._changed.wait_for(lambda: world.meetings != meeting or world.error, timeout=patience):
                missing = sorted(set(range(world.size)) - set(world.arrived))
                self.lose(number, f"no sign of rank {', '.join(map(str, missing))} for {patience:g} s")
            return world.error

    def _leave(self, world: World) -> None:
        if len(set(world.arrived.values())) > 1:
            world.error = f"ranks are at different steps {sorted(set(world.arrived.values()))}: not one checkpoint"
        world.arrived, world.meetings = {}, world.meetings + 1
        self._changed.notify_all()

    def lose(self, number: int, why: str) -> None:
        """The round is over for everybody."""
        with self._changed:
            self._worlds[number].error = self._worlds[number].error or why
            self._changed.notify_all()


class _Connection(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        hub: Hub = self.server.hub  # type: ignore[attr-defined]
        hub.connections += 1
        last: dict[str, Any] = {}
        try:
            for line in self.rfile:
                last = json.loads(line)
                rank = last["kind"] == "rank"
                answer = hub.meet(last["round"], last["rank"], last["step"]) if rank else hub.join(last)
                self.wfile.write(json.dumps(answer).encode() + b"\n")
        except OSError:
            pass
        finally:
            hub.connections -= 1
            if last.get("kind") == "rank" and last["step"] != END:
                hub.lose(last["round"], f"rank {last['rank']} was lost")


class Server(socketserver.ThreadingTCPServer):
    """The hub's server; it ends with its process."""

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128

    def __init__(self, port: int, hub: Hub) -> None:
        super().__init__(("0.0.0.0", port), _Connection)
        self.hub = hub


def serve(port: int, nodes: int, join_seconds: float) -> tuple[Server, int]:
    """Start a hub in this process; port 0 takes a free one."""
    server = Server(port, Hub(nodes, join_seconds))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, server.server_address[1]


def linger(server: Server, seconds: float = 2) -> None:
    """Let the others read their last answers before the hub ends with its process."""
    end = time.monotonic() + seconds
    while server.hub.connections and time.monotonic() < end:
        time.sleep(0.02)


class Member:
    """A node's or a rank's connection to the hub."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._file = connection.makefile("rb")

    def ask(self, question: dict[str, Any], patience: float) -> Any:
        """The hub's answer; None where it does not come in time, Lost where the hub is gone."""
        self._connection.settimeout(patience)
        try:
            self._connection.sendall(json.dumps(question).encode() + b"\n")
            line = self._file.readline()
        except TimeoutError:
            return None
        except OSError as error:
            raise Lost(f"the rendezvous host is gone: {error}") from None
        if not line:
            raise Lost("the rendezvous host closed the connection")
        return json.loads(line)

    def meet(self, number: int, rank: int, step: int) -> None:
        """Meet all other ranks."""
        patience = FIRST_STEP_SECONDS + HEARTBEAT_SECONDS
        error = self.ask({"kind": "rank", "round": number, "rank": rank, "step": step}, patience)
        if error != "":
            raise Lost(error or f"the rendezvous host did not answer for {patience:g} s")

    def close(self) -> None:
        """Leave."""
        self._file.close()
        self._connection.close()


def connect(address: tuple[str, int], seconds: float) -> Member:
    """Keep trying, names included, as torch's TCPStore does."""
    end = time.monotonic() + seconds
    while True:
        try:
            return Member(socket.create_connection(address, timeout=5))
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.2)
