"""`kubectl port-forward`: connections to ports of a pod's own loopback, with the protocol that kubelets speak with
the API server (portforward.k8s.io over SPDY). A connection has two streams: one for its bytes, one for errors."""

from __future__ import annotations

import ctypes
import os
import select
import socket
import ssl
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from rehearsal.kubelet.exec import PIECE, ExecRefused, Upgraded
from rehearsal.kubelet.pod import Pod
from rehearsal.kubelet.process import Sandboxed
from rehearsal.kubelet.spdy import Data, Event, Left, Opened, data

CLONE_NEWNET = 0x40000000


def network(pod: Pod | None) -> str:
    """The network of a pod that runs, as a file; ExecRefused where there is none."""
    for each in pod.containers if pod else ():
        if isinstance(each.process, Sandboxed):
            return f"/proc/{each.process.pid}/ns/net"
    raise ExecRefused("no container of the pod runs on this node")


def dialled(network: str, port: int) -> socket.socket:
    """A connection that a thread of its own makes, which enters the network. OSError where nothing listens."""

    def enter() -> socket.socket:
        with open(network) as file:
            if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), CLONE_NEWNET):
                raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        return socket.create_connection(("127.0.0.1", port))

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(enter).result()


class Forwarding(Upgraded):
    """All connections of one `kubectl port-forward`."""

    PROTOCOL = "portforward.k8s.io"

    def __init__(self, connection: ssl.SSLSocket, network: str) -> None:
        super().__init__(connection)
        self._network = network
        self._errors: dict[str, int] = {}
        """Number of a connection → its stream for errors."""
        self._open: dict[int, socket.socket] = {}
        """Stream → the connection in the pod."""

    def run(self) -> None:
        """Until the client leaves."""
        while self._carried():
            pass
        for each in self._open.values():
            each.close()

    def _carried(self) -> bool:
        """Carry what has come, in both directions; False where the client has left."""
        watched = [self._connection.fileno(), *self._open.values()]
        pending = self._connection.pending()
        ready = watched[:1] if pending else select.select(watched, [], [])[0]
        for stream in [stream for stream, one in self._open.items() if one in ready]:
            content = b""
            with suppress(OSError):
                content = self._open[stream].recv(PIECE)
            self._send(data(stream, content, last=not content))
            if not content:
                self._open.pop(stream).close()
        events = self._read() if watched[0] in ready else []
        for event in events or ():
            self._take(event)
        return events is not None and Left(0) not in events

    def _take(self, event: Event) -> None:
        if isinstance(event, Opened):
            self._send(self._frames.accept(event.stream))
            self._begin(event.stream, event.headers)
        elif isinstance(event, Data) and event.stream in self._open:
            with suppress(OSError):
                self._open[event.stream].sendall(event.content)
                if event.last:
                    self._open[event.stream].shutdown(socket.SHUT_WR)

    def _begin(self, stream: int, headers: dict[str, str]) -> None:
        if headers["streamtype"] == "error":
            self._errors[headers["requestid"]] = stream
            return
        said, port = b"", int(headers["port"])
        try:
            self._open[stream] = dialled(self._network, port)
        except OSError as error:
            said = f"failed to connect to localhost:{port}: {error}".encode()
            self._send(data(stream, b"", last=True))
        self._send(data(self._errors.pop(headers["requestid"]), said, last=True))
