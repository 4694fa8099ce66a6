#!/usr/bin/env -S python3 -S
"""alpine's nslookup, by which a PyTorchJob's workers wait for their master: asks what every pod's
/etc/hosts says.

There a pod has its name, which is also that of its Service, from the moment it has an address.
"""

import socket
import sys


def main(name: str) -> int:
    """0 once the name is known."""
    try:
        print(f"Name:      {name}\nAddress 1: {socket.gethostbyname(name)}")
    except OSError:
        print(f"nslookup: can't resolve '{name}': Name does not resolve", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
