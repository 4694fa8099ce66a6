#!/usr/bin/env -S python3 -S
"""sshd for containers without one: runs a command for whoever brings a key that is authorized here.

No SSH: one JSON value a line. As sshd's, a session has none of the container's variables.
"""

import os
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

from rendezvous import Line, Lost

KEYS = Path(os.environ.get("STAND_IN_SSH", "/home/mpiuser/.ssh"))
"""Folder in which the Trainer mounts a job's keys (sshAuthMountPath)."""
PORT = int(os.environ.get("STAND_IN_SSH_PORT", "2222"))
"""Port of sshd in upstream's images for MPI, which run as mpiuser."""
HELLO_SECONDS = 30.0


def session(line: Line) -> None:
    """One command: its words as they come, then its exit code. It ends with its caller."""
    with suppress(Lost, TimeoutError):
        asked = line.hear(HELLO_SECONDS)
        if asked["key"] not in (KEYS / "authorized_keys").read_text().splitlines():
            line.say({"refused": "Permission denied (publickey)."})
            return
        process = subprocess.Popen(
            asked["command"],
            env={"HOME": "/root", "PATH": os.environ["PATH"], **asked["env"]},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            text=True,
        )
        threading.Thread(target=_end_with_caller, args=(line, process), daemon=True).start()
        for words in process.stdout or ():
            line.say({"said": words})
        line.say({"code": process.wait()})


def _end_with_caller(line: Line, process: subprocess.Popen[str]) -> None:
    with suppress(Lost, TimeoutError, ValueError):
        line.hear(10**6)
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


def main(arguments: list[str]) -> int:
    """`sshd -De -f <file>`: in the foreground, until it is told to end."""
    if "-De" not in arguments:
        print("the rehearsal's sshd implements -De only", file=sys.stderr)
        return 1
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    with socket.create_server(("", PORT), backlog=128) as server:
        while True:
            line = Line(server.accept()[0])
            threading.Thread(target=session, args=(line,), daemon=True).start()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
