"""The kubelet's HTTPS server, so that `kubectl logs`, `exec` and `port-forward` work. What else kubectl asks of
a kubelet is refused by name."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qsl, urlparse

from rehearsal import paths
from rehearsal.kubelet import exec, log_lines, port_forward
from rehearsal.kubelet.pod import Pod

PORT = 10250
UNDERSTOOD = {
    "follow",
    "limitBytes",
    "previous",
    "sinceSeconds",
    "sinceTime",
    "tailLines",
    "timestamps",
}


class LogRefused(RuntimeError):
    """A log cannot be read. The client gets the text, with status 400."""


def log_file(pod: Pod | None, name: str, previous: bool) -> tuple[Path, Callable[[], bool]]:
    """A container's log, and whether that run still goes on."""
    container = (
        next((c for c in [*pod.init, *pod.containers] if c.name == name), None) if pod else None
    )
    if pod is None or container is None:
        raise LogRefused(f'container "{name}" is not on this node')
    run = container.runs - 1 - previous
    if run < 0:
        raise LogRefused(
            f'previous terminated container "{name}" in pod "{pod.name}" not found'
            if previous
            else f'container "{name}" in pod "{pod.name}" is waiting to start: ContainerCreating'
        )
    return (
        pod.log_file(name, run),
        lambda: container.process is not None and container.runs - 1 == run,
    )


class _Handler(BaseHTTPRequestHandler):
    find: Callable[[str], Pod | None]
    unreached: Callable[[int], str]

    def do_GET(self) -> None:
        """/containerLogs/<namespace>/<pod>/<container>, /exec with the same words, /portForward/<namespace>/<pod>."""
        url = urlparse(self.path)
        kind, *words = url.path.strip("/").split("/")
        if (kind, len(words)) in (("exec", 3), ("portForward", 2)):
            return self._upgraded(words, parse_qsl(url.query))
        options = dict(parse_qsl(url.query))
        if wall := self.unreached(PORT):
            return self._send(504, f"dial tcp: port {PORT}: i/o timeout: {wall}".encode())
        try:
            if kind != "containerLogs" or len(words) != 3:
                raise LogRefused(f"the rehearsal's kubelet does not implement /{kind}")
            if unknown := set(options) - UNDERSTOOD:
                raise LogRefused(
                    "the rehearsal's kubelet does not implement logs with"
                    f" {', '.join(sorted(unknown))}"
                )
            path, running = log_file(
                self.find("/".join(words[:2])), words[2], options.get("previous") == "true"
            )
        except LogRefused as error:
            return self._send(400, str(error).encode())
        follow = options.get("follow") == "true"
        self._send(200, b"")
        for piece in log_lines.read(
            path, log_lines.selection(options), running if follow else None
        ):
            self.wfile.write(piece)

    do_POST = do_GET

    def _upgraded(self, words: list[str], options: list[tuple[str, str]]) -> None:
        """A command where the words name a container; connections to ports where they name a pod."""
        pod, to = self.find("/".join(words[:2])), self.connection
        try:
            if words[2:]:
                asked = exec.wanted(pod, words[2], options)
                talk = exec.Session(to, asked)  # type: ignore[arg-type]
            else:
                talk = port_forward.Forwarding(to, port_forward.network(pod))  # type: ignore[arg-type]
        except exec.ExecRefused as error:
            return self._send(400, str(error).encode())
        self.protocol_version = "HTTP/1.1"
        self.send_response(101)
        self.send_header("Connection", "Upgrade")
        self.send_header("Upgrade", "SPDY/3.1")
        self.send_header("X-Stream-Protocol-Version", talk.PROTOCOL)
        self.end_headers()
        self.close_connection = True
        talk.run()

    def _send(self, code: int, text: bytes) -> None:
        self.send_response(code)
        self.send_header("Content-Type", "text/plain")
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


def server(
    address: str, find: Callable[[str], Pod | None], unreached: Callable[[int], str]
) -> ThreadingHTTPServer:
    """Listening, under the API server's own certificate. Its only client is the API server, which
    does not check it, and must show its own: pods and other users reach the port, too."""
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=paths.PLANE / "ca.crt")
    context.verify_mode = ssl.CERT_REQUIRED
    context.load_cert_chain(paths.PLANE / "apiserver.crt", paths.PLANE / "apiserver.key")
    asked = {"find": staticmethod(find), "unreached": staticmethod(unreached)}
    made = ThreadingHTTPServer((address, PORT), type("Handler", (_Handler,), asked))
    made.socket = context.wrap_socket(made.socket, server_side=True, do_handshake_on_connect=False)
    return made
