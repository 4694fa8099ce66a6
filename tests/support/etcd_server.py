"""An etcd that speaks version 2 of the API, as far as torch asks: what a user of rendezvous.etcd brings.
It needs the standard library only, so that a pod can run the file."""

from __future__ import annotations

import http.server
import json
import sys
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

IDLE_SECONDS = 20.0


class Etcd(http.server.BaseHTTPRequestHandler):
    """Version 2 of etcd's API, as far as torch asks for a key."""

    values: dict[str, str]

    def _answer(self, code: int, value: str = "") -> None:
        self.send_response(code)
        self.end_headers()
        self.wfile.write(json.dumps({"node": {"value": value}}).encode())

    def do_GET(self) -> None:
        found = self.values.get(self.path)
        self._answer(404 if found is None else 200, found or "")

    def do_PUT(self) -> None:
        path, _, how = self.path.partition("?")
        said = self.rfile.read(int(self.headers["Content-Length"])).decode()
        if how == "prevExist=false" and path in self.values:
            return self._answer(412)
        self.values[path] = urllib.parse.parse_qs(said)["value"][0]
        self._answer(201, self.values[path])

    def do_DELETE(self) -> None:
        path, _, how = self.path.partition("?prevValue=")
        same = self.values.get(path) == urllib.parse.unquote(how)
        self._answer(200 if same else 412, self.values.pop(path) if same else "")

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing."""


@contextmanager
def serving(
    address: str, port: int
) -> Iterator[tuple[http.server.ThreadingHTTPServer, dict[str, str]]]:
    """The server, and what it keeps."""
    values: dict[str, str] = {}
    handler = type("Kept", (Etcd,), {"values": values})
    with http.server.ThreadingHTTPServer((address, port), handler) as server:
        yield server, values


def main(port: int) -> None:
    """Serve until nobody has asked for IDLE_SECONDS, once a key is there: `make up` waits for every job
    of a stack, this one as well."""
    ended: list[bool] = []
    with serving("", port) as (server, values):
        server.timeout = IDLE_SECONDS
        server.handle_timeout = lambda: ended.append(True) if values else None
        while not ended:
            server.handle_request()


if __name__ == "__main__":
    main(int(sys.argv[1]))
