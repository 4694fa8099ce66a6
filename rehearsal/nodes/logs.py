"""The kubelet's HTTPS server, so that `kubectl logs` works. What else kubectl asks of a kubelet is refused by name."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qsl, urlparse

from rehearsal import paths
from rehearsal.nodes.pod import Pod

PORT = 10250
POLL_SECONDS = 0.2
UNDERSTOOD = {"follow", "tailLines", "previous"}

Find = Callable[[str, str], Pod | None]


class Refused(RuntimeError):
    """What the client is told, with 400."""


def log_file(find: Find, namespace: str, name: str, container: str, previous: bool) -> tuple[Path, Callable[[], bool]]:
    """A container's log, and whether that run still goes on."""
    pod = find(namespace, name)
    found = next((c for c in pod.containers if c.name == container), None) if pod else None
    if pod is None or found is None:
        raise Refused(f'container "{container}" of pod "{namespace}/{name}" is not on this node')
    run = found.runs - 1 - previous
    if run < 0:
        raise Refused(f'previous terminated container "{container}" in pod "{name}" not found' if previous else
                      f'container "{container}" in pod "{name}" is waiting to start: ContainerCreating')
    return pod.log_file(container, run), lambda: found.running and found.runs - 1 == run


def last_lines(text: bytes, count: str | None) -> bytes:
    """The end of a log; all of it without a count."""
    if count is None:
        return text
    return b"".join(text.splitlines(keepends=True)[-int(count):]) if int(count) else b""


class _Handler(BaseHTTPRequestHandler):
    find: Find

    def do_GET(self) -> None:
        """/containerLogs/<namespace>/<pod>/<container>."""
        url = urlparse(self.path)
        kind, *words = url.path.strip("/").split("/")
        options = dict(parse_qsl(url.query))
        try:
            if kind != "containerLogs" or len(words) != 3:
                raise Refused(f"the rehearsal's kubelet does not implement /{kind}")
            if unknown := set(options) - UNDERSTOOD:
                raise Refused(f"the rehearsal's kubelet does not implement logs with {', '.join(sorted(unknown))}")
            path, running = log_file(self.find, words[0], words[1], words[2], options.get("previous") == "true")
        except Refused as error:
            return self.send_error(400, str(error))
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.end_headers()
        self._send(path, running if options.get("follow") == "true" else lambda: False, options.get("tailLines"))

    do_POST = do_GET

    def _send(self, path: Path, running: Callable[[], bool], tail: str | None) -> None:
        with path.open("rb") as log:
            self.wfile.write(last_lines(log.read(), tail))
            more = True
            while more:
                more = running()
                self.wfile.write(log.read())
                time.sleep(POLL_SECONDS if more else 0)

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Plain text, as kubectl shows it."""
        self.send_response(code)
        self.end_headers()
        self.wfile.write((message or "").encode())

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


def server(address: str, find: Find) -> ThreadingHTTPServer:
    """Listening, under the API server's own certificate: its only client is the API server, which does not check it."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(paths.PLANE / "apiserver.crt", paths.PLANE / "apiserver.key")
    made = ThreadingHTTPServer((address, PORT), type("Handler", (_Handler,), {"find": staticmethod(find)}))
    made.daemon_threads = True
    made.socket = context.wrap_socket(made.socket, server_side=True, do_handshake_on_connect=False)
    return made
