#!/usr/bin/env -S python3 -S
"""mpirun for containers without Open MPI: the command itself, once for each rank, on the hosts of the
hostfile.

Ranks have Open MPI's variables and no MPI. Those of other hosts start over the stand-in sshd.
"""

import argparse
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from queue import Queue

from rendezvous import Line, Lost
from sshd import KEYS, PORT
from torchrun import is_this_machine

HOSTFILE = "OMPI_MCA_orte_default_hostfile"
CONNECT_SECONDS = 10.0
"""ConnectionAttempts=10, which the Trainer sets, one a second."""
IGNORED = {"--mca": 2, "-mca": 2, "--bind-to": 1, "-bind-to": 1, "--map-by": 1, "-map-by": 1}
"""Options that place ranks or choose networks, and how many words follow."""


def arguments(words: list[str]) -> argparse.Namespace:
    """The command line of Open MPI 4, as far as it decides who runs what."""
    parser = argparse.ArgumentParser(prog="mpirun", allow_abbrev=False)
    parser.add_argument("-np", "-n", "--np", "-c", dest="number", type=int)
    parser.add_argument("--hostfile", "-hostfile", "--machinefile", dest="hostfile")
    parser.add_argument("-x", dest="exported", action="append", default=[])
    for option in ("--allow-run-as-root", "--tag-output"):
        parser.add_argument(option, action="store_true")
    for option, count in IGNORED.items():
        parser.add_argument(option, nargs=count, action="append", dest="ignored")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    return parser.parse_args(words)


def hosts(file: str | None) -> list[tuple[str, int]]:
    """Hosts and their slots; this host alone without a hostfile."""
    if not file:
        return [("localhost", os.cpu_count() or 1)]
    rows = [line.split() for line in Path(file).read_text().splitlines() if line.strip()]
    return [
        (name, next((int(w.partition("=")[2]) for w in rest if w.startswith("slots=")), 1))
        for name, *rest in rows
    ]


def ranks(found: list[tuple[str, int]], number: int | None) -> list[tuple[str, dict[str, str]]]:
    """Host and variables of each rank, by slot."""
    slots = [(host, local) for host, count in found for local in range(count)]
    size = len(slots) if number is None else number
    if size > len(slots):
        print(
            f"There are not enough slots available in the system to satisfy the {size} slots that"
            " were requested by the application",
            file=sys.stderr,
        )
        raise SystemExit(1)
    names = ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK")
    return [
        (host, dict(zip(names, map(str, (rank, size, local)), strict=True)))
        for rank, (host, local) in enumerate(slots[:size])
    ]


def there(host: str, command: list[str], env: dict[str, str]) -> int:
    """A rank of another host."""
    end = time.monotonic() + CONNECT_SECONDS
    while True:
        try:
            line = Line(socket.create_connection((host, PORT), timeout=1))
            break
        except OSError as error:
            if time.monotonic() > end:
                print(f"ssh: connect to host {host} port {PORT}: {error}", file=sys.stderr)
                return 255
            time.sleep(0.5)
    key = (KEYS / "id_rsa.pub").read_text().strip() if (KEYS / "id_rsa").exists() else ""
    try:
        line.say({"key": key, "command": command, "env": env})
        while True:
            told = line.hear(10**6)
            if "code" in told:
                return told["code"]
            if "refused" in told:
                print(f"{host}: {told['refused']}", file=sys.stderr)
                return 255
            print(told["said"], end="", flush=True)
    except Lost as error:
        print(f"Connection to {host} closed: {error}", file=sys.stderr)
        return 255


def run(
    command: list[str], exported: dict[str, str], wanted: list[tuple[str, dict[str, str]]]
) -> int:
    """The first exit code that is not 0 ends all ranks."""
    mine = {host for host, _ in wanted if is_this_machine(host)}
    here = [
        subprocess.Popen(command, env=os.environ | exported | env, start_new_session=True)
        for host, env in wanted
        if host in mine
    ]
    ends = [process.wait for process in here]
    ends += [
        partial(there, host, command, exported | env) for host, env in wanted if host not in mine
    ]
    codes: Queue[int] = Queue()
    for end in ends:
        threading.Thread(target=lambda end=end: codes.put(end()), daemon=True).start()
    failed = next((code for _ in ends if (code := codes.get())), 0)
    for process in here if failed else ():
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    return failed if failed >= 0 else 128 - failed


def main(words: list[str]) -> int:
    """mpirun's exit code, that of a rank."""
    asked = arguments(words)
    exported = {
        name: value if given else os.environ.get(name, "")
        for name, given, value in (one.partition("=") for one in asked.exported)
    }
    found = hosts(asked.hostfile or os.environ.get(HOSTFILE))
    code = run(asked.command, exported, ranks(found, asked.number))
    if code:
        print(
            "Primary job terminated normally, but 1 process returned a non-zero exit code. Per"
            " user-direction, the job has been aborted.",
            file=sys.stderr,
        )
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
