"""Program that the AWS CLI starts for `aws ssm start-session`, as session-manager-plugin: a tunnel
from a port of this machine to the API server.

On AWS the connections go through Systems Manager and the agent of a node. Here they go to a port of
the rehearsal that leads past the private endpoint. Who may open a tunnel, and through which
instance, the account decides: rehearsal/aws/sessions.py.
"""

from __future__ import annotations

import json
import socket
import sys

from rehearsal import paths, relay, terminal

VERSION = "1.2.707.0"
"""A version that takes its arguments as below (aws-cli, customizations/sessionmanager.py)."""


def main(arguments: list[str]) -> int:
    """Arguments: session, region, operation, profile, parameters, endpoint; or --version."""
    if arguments == ["--version"]:
        print(VERSION)
        return 0
    asked = json.loads(arguments[4])["Parameters"]
    port = int(asked["localPortNumber"][0])
    try:
        listening = socket.create_server(("127.0.0.1", port))
    except OSError as error:
        print(f"port {port} of 127.0.0.1 cannot be opened: {error}", file=sys.stderr)
        return 1
    with listening:
        print(f"Port {port} opened; the tunnel ends with ctrl-C", flush=True)
        relay.serve(listening, paths.world().tunnel_port)
    return 0


if __name__ == "__main__":
    terminal.run(main)
