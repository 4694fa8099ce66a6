"""Stands in for the embedded account where a test is about the world: health, inventory and faults,
nothing of AWS."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from rehearsal import paths

FAULTS: list[Any] = []


class Answer(BaseHTTPRequestHandler):
    """Everything under /_world/."""

    def do_GET(self) -> None:
        if self.path == "/_world/crash":
            self.server.shutdown()
        self._send(
            {"/_world/health": {"ok": True}, "/_world/inventory": [], "/_world/faults": FAULTS}.get(
                self.path
            )
        )

    def do_POST(self) -> None:
        FAULTS.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self._send({"ok": True})

    def _send(self, body: Any) -> None:
        data = json.dumps(body).encode()
        self.send_response(404 if body is None else 200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


if __name__ == "__main__":
    ThreadingHTTPServer(("127.0.0.1", paths.world().account_port), Answer).serve_forever()
