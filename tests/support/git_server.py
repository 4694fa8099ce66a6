"""A server of Git repositories over HTTPS, on this machine's loopback, by git's own program."""

from __future__ import annotations

import http.server
import os
import ssl
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HOST = "127.0.0.2"
PORT = 443
"""An address with a port cannot be the address of a package: Pulumi names a folder by it, and Python makes no
virtual environment below a folder with a colon."""


@contextmanager
def serving(repositories: Path, folder: Path) -> Iterator[Path]:
    """Serve every repository below `repositories`; yields the file of the certificate. PermissionError where
    this user must not listen on the port."""
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    made = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    made += ["-nodes", "-days", "2", "-subj", "/CN=git", "-addext", f"subjectAltName=IP:{HOST}"]
    subprocess.run([*made, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    handler = type("Handler", (_Handler,), {"repositories": repositories})
    with http.server.ThreadingHTTPServer((HOST, PORT), handler) as server:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield certificate
        finally:
            server.shutdown()


class _Handler(http.server.BaseHTTPRequestHandler):
    repositories: Path

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def log_message(self, format: str, *args: object) -> None:
        pass

    def _answer(self) -> None:
        """The answer of git's program for CGI (git-http-backend(1))."""
        path, _, query = self.path.partition("?")
        asked = {
            "GIT_PROJECT_ROOT": str(self.repositories),
            "GIT_HTTP_EXPORT_ALL": "1",
            "REQUEST_METHOD": self.command,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
        }
        said = subprocess.run(
            ["git", "http-backend"],
            input=self.rfile.read(int(self.headers.get("Content-Length") or 0)),
            env={**os.environ, **asked},
            stdout=subprocess.PIPE,
            check=True,
        )
        head, _, body = said.stdout.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        self.send_response(int(fields.pop("Status", "200").split()[0]))
        for name, value in fields.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
