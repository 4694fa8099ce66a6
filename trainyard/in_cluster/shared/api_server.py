"""The API server as a program in a pod calls it, with nothing but Python, and the port at which kubelet
asks whether the program goes on: for the folders beside this one."""

from __future__ import annotations

import http.client
import json
import os
import socket
import ssl
import sys
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, BinaryIO

Object = dict[str, Any]

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
REQUEST_SECONDS = 10
NOT_FOUND = 404
LONGEST, PART = 1 << 20, 1 << 16
"""Bytes that are kept of a log, and that are read at once."""
KEPT_ALIVE = {
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE): 1,
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE): 10,
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL): 5,
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT): 3,
}
"""Of a connection: an API server that is gone without a word is noticed after 25 seconds."""


class ApiError(Exception):
    """The API server refused, or did not answer."""

    def __init__(self, code: int, message: str, reason: str = "") -> None:
        """`reason`: of its Status, such as AlreadyExists."""
        super().__init__(f"{code}: {message}")
        self.code, self.reason = code, reason


class Api:
    """The API server, as the pod's service account."""

    def __init__(self) -> None:
        self._trust = ssl.create_default_context(cafile=str(ACCOUNT / "ca.crt"))
        # EKS clusters that began with Kubernetes 1.16 or earlier have an authority without key identifiers, which
        # Python refuses since 3.13 (kubernetes-client/python#2394). Chain, name and date are still verified.
        self._trust.verify_flags &= ~ssl.VERIFY_X509_STRICT

    def ask(self, method: str, path: str, body: Object | None = None, kind: str = "json") -> Object:
        """Its answer; ApiError for a refusal and for none. `kind`: of a patch."""
        return json.loads(self._send(method, path, body, kind))

    def text(self, path: str, otherwise: str) -> str:
        """The last LONGEST bytes of what is no JSON, such as a log; `otherwise` where it cannot be had."""
        try:
            with self._answer("GET", path, None, "json", REQUEST_SECONDS) as answer:
                return _end(answer).decode(errors="replace")
        except ApiError:
            return otherwise

    def items(self, path: str, **query: str) -> list[Object]:
        """A list, as the API server's cache has it."""
        asked = urllib.parse.urlencode({"resourceVersion": "0", **query})
        return self.ask("GET", f"{path}?{asked}")["items"]

    def lines(self, path: str, seconds: float) -> Iterator[bytes]:
        """The lines of an answer that goes on. Raises ApiError where none comes for so many seconds."""
        with self._answer("GET", path, None, "json", seconds) as answer:
            while line := answer.readline():
                yield line

    def _send(
        self, method: str, path: str, body: Object | None = None, kind: str = "json"
    ) -> bytes:
        with self._answer(method, path, body, kind, REQUEST_SECONDS) as answer:
            return answer.read()

    @contextmanager
    def _answer(
        self, method: str, path: str, body: Object | None, kind: str, seconds: float
    ) -> Iterator[http.client.HTTPResponse]:
        host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
        link = http.client.HTTPSConnection(host, int(port), timeout=seconds, context=self._trust)
        headers = {
            "Authorization": f"Bearer {(ACCOUNT / 'token').read_text()}",
            "Content-Type": f"application/{kind}",
        }
        try:
            link.connect()
            for option, value in KEPT_ALIVE.items():
                link.sock.setsockopt(*option, value)
            link.request(method, path, json.dumps(body) if body is not None else None, headers)
            answer = link.getresponse()
            if answer.status >= 300:
                text = answer.read().decode(errors="replace")
                raise ApiError(answer.status, text[:300], _reason(text))
            yield answer
        except (OSError, http.client.HTTPException) as error:
            raise ApiError(0, str(error)) from None
        finally:
            link.close()


def _end(answer: BinaryIO | http.client.HTTPResponse) -> bytes:
    """The end of an answer that may have no room as a whole: 5,000 lines of bars of progress are 10 MiB and more."""
    kept = b""
    while part := answer.read(PART):
        kept = (kept + part)[-LONGEST:]
    return kept


def _reason(text: str) -> str:
    """Reason of a Status; empty of an answer that is none."""
    try:
        return str(json.loads(text)["reason"])
    except (ValueError, KeyError, TypeError):
        return ""


def say(line: str) -> None:
    print(time.strftime("%H:%M:%S"), line, file=sys.stderr, flush=True)


@contextmanager
def apart(name: str) -> Iterator[None]:
    """Say an error about one job, and go on with the others: nothing that a team can write stops a program that
    serves all teams. The next look tries again."""
    try:
        yield
    except Exception as error:
        kind = "" if isinstance(error, ApiError) else f"{type(error).__name__}: "
        say(f"{name}: {kind}{error}")


def serve(port: int, alive: Callable[[], bool], metrics: Callable[[], str] = str) -> None:
    """Answer at a port, in a thread: /metrics as Prometheus reads it, and every other path with the
    status that kubelet takes for a failed probe where `alive` is false."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            text = metrics() if self.path == "/metrics" else "ok\n"
            self.send_response(200 if alive() else 503)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, format: str, *args: object) -> None:
            pass

    threading.Thread(
        target=ThreadingHTTPServer(("", port), Handler).serve_forever, daemon=True
    ).start()
