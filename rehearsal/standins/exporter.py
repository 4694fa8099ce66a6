#!/usr/bin/env -S python3 -S
"""The exporters of GPUs and of nodes where their images are not: Prometheus finds them up. They have no
figure of a GPU or a file system, because nothing here has one.

The port is that of the pod: `--web.listen-address=:9100`, or DCGM_EXPORTER_LISTEN.
"""

import os
import signal
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Answer(BaseHTTPRequestHandler):
    """No figures, in Prometheus's text format."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


def main(arguments: list[str]) -> int:
    """Serve until it is killed."""
    flags = dict(each.split("=", 1) for each in arguments if "=" in each)
    listens = flags.get("--web.listen-address") or os.environ["DCGM_EXPORTER_LISTEN"]
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    ThreadingHTTPServer(("", int(listens.rpartition(":")[2])), Answer).serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
