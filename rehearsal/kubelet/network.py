"""Addresses and cables of pods and nodes on the world's bridge. Runs inside the world's namespaces."""

from __future__ import annotations

import fcntl
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rehearsal import paths


@contextmanager
def locked(path: Path) -> Iterator[int]:
    """An open file that no other machine process reads or writes meanwhile."""
    path.parent.mkdir(parents=True, exist_ok=True)
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file
    finally:
        os.close(file)


def node_address() -> str:
    """Take a free address for a node, 10.244.255.1 to .254; the bridge itself is the register."""
    for last in range(1, 255):
        address = f"10.244.255.{last}"
        if (
            subprocess.run(
                ["ip", "addr", "add", f"{address}/32", "dev", "br0"], capture_output=True
            ).returncode
            == 0
        ):
            return address
    raise OSError("the rehearsal has 254 addresses for nodes and all are taken")


def pod_address() -> str:
    """10.244.1.0 to 10.244.254.255, each only after 65,000 other pods: nobody may remember whose it
    was."""
    with locked(paths.NODES / "last-address") as file:
        number = max(256, (int(os.read(file, 16) or 0) + 1) % (255 * 256))
        os.pwrite(file, f"{number:<6}".encode(), 0)
    return f"10.244.{number // 256}.{number % 256}"


def connect(pid: int, address: str) -> None:
    """Give the network namespace of a process one end of a cable to the bridge."""
    cable = "p" + "-".join(address.split(".")[2:])
    _batch(
        ["ip"],
        f"link add {cable} type veth peer name eth0 netns {pid}",
        f"link set {cable} master br0 up",
    )
    _batch(
        ["nsenter", "-t", str(pid), "-n", "ip"],
        "link set lo up",
        f"addr add {address}/16 dev eth0",
        "link set eth0 up",
        f"route add default via {paths.BRIDGE}",
    )


def _batch(ip: list[str], *commands: str) -> None:
    done = subprocess.run(
        [*ip, "-batch", "-"], input="\n".join(commands), capture_output=True, text=True
    )
    if done.returncode:
        raise OSError(f"ip {commands[0]} …: {done.stderr.strip()}")
