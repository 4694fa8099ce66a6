"""The process behind a container: sandboxed (a program in its own namespaces) or simulated (nothing
but an exit code).

What is mounted into a container is decided here; sandbox.py only carries it out.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rehearsal.kubelet import images, log_lines

SHM = "64m"
"""/dev/shm of a container that mounts nothing there: containerd's default."""
RESOLVER = "nameserver 127.0.0.1\noptions timeout:1 attempts:1\n"
"""Fails at once: with an unreachable server torch waits 10 s at every lookup."""
HOST_FOLDERS = ("/usr", "/bin", "/sbin", "/lib", "/lib64")
HOST_FILES = tuple(
    f"/etc/{name}"
    for name in (
        "alternatives",
        "ca-certificates",
        "group",
        "ld.so.cache",
        "ld.so.conf",
        "ld.so.conf.d",
        "localtime",
        "nsswitch.conf",
        "passwd",
        "pki",
        "ssl",
    )
)
MIRROR = "/opt/mirror"
"""Folder in which the git stand-in finds what it can clone."""
PLAN = "plan.json"
"""Name of the file that tells a container's sandbox what to build."""
SIMULATED_JOB_SECONDS = 2.0
LAST_WORDS_SECONDS = 5.0
"""Seconds that the log of a container that has ended may take to be written."""
DIE_WITH_PARENT = ("setpriv", "--pdeathsig", "KILL")
"""The parent is the thread that starts the process, so only a thread that outlives it may."""


@dataclass(frozen=True, kw_only=True)
class Mount:
    """A folder or file of the host, or memory of a size, at a path of the container."""

    target: str = ""
    source: str = ""
    inside: str = ""
    """Path below the source, which a job may have written: symbolic links must not leave it."""
    size: str = ""
    read_only: bool = False


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Everything sandbox.py needs for one container."""

    root: str
    hostname: str
    argv: list[str]
    env: dict[str, str]
    folder: str
    mounts: list[Mount]
    links: dict[str, str] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    folders: tuple[str, ...] = ("/tmp", "/root", "/workspace", "/var/run", "/etc")


def mounts(
    program: images.Program | None,
    volumes: list[Mount],
    files: Mapping[str, str] | None = None,
    *,
    hosts: str,
) -> list[Mount]:
    """Everything a container sees, its own volumes winning, also over `files` that its image brings. `hosts` is its
    /etc/hosts. A controller has nothing but its program, as in a distroless image; training has the host's programs,
    this interpreter, the stand-ins and what there is to clone."""
    if program:
        places = {program.entrypoint: str(program.built)}
    else:
        same = [p for p in (*HOST_FOLDERS, *images.interpreter_folders()) if os.path.exists(p)]
        places = {
            **{p: p for p in same},
            images.STAND_INS_AT: str(images.STAND_INS),
            **({MIRROR: folder} if (folder := images.clones()) else {}),
        }
    places |= {"/etc/hosts": hosts} | {f: f for f in HOST_FILES if os.path.exists(f)}
    taken = {v.target for v in volumes}
    places |= {
        path: source for path, source in (files or {}).items() if os.path.dirname(path) not in taken
    }
    given = [
        Mount(target=target, source=source, read_only=True) for target, source in places.items()
    ]
    return [
        m for m in (*given, Mount(target="/dev/shm", size=SHM)) if m.target not in taken
    ] + volumes


class Sandbox:
    """The namespaces the containers of one pod share: network, host name, IPC. A sleeping process
    holds them."""

    SHARED = ("-n", "-u", "-i")

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [*DIE_WITH_PARENT, "unshare", *self.SHARED, "sleep", "infinity"],
            stdin=subprocess.DEVNULL,
        )
        while Path(f"/proc/{self.pid}/comm").read_text() != "sleep\n":
            if self._process.poll() is not None:
                raise OSError("the pod's sandbox did not start")
            time.sleep(0.005)

    @property
    def pid(self) -> int:
        return self._process.pid

    def start(self, plan: Plan, folder: Path, log: Path) -> Sandboxed:
        """Run one container here."""
        Path(plan.root).mkdir(parents=True, exist_ok=True)
        path = folder / PLAN
        path.touch(mode=0o600)
        path.write_text(json.dumps(asdict(plan)))
        return Sandboxed(
            subprocess.Popen(
                [
                    *DIE_WITH_PARENT,
                    "nsenter",
                    "-t",
                    str(self.pid),
                    *self.SHARED,
                    "unshare",
                    "-m",
                    "-p",
                    "-f",
                    "--kill-child",
                    sys.executable,
                    "-I",
                    "-S",
                    str(Path(__file__).with_name("sandbox.py")),
                    str(path),
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            ),
            log,
        )

    def close(self) -> None:
        """Let the namespaces go."""
        self._process.kill()
        self._process.wait()


class Sandboxed:
    """A running container: unshare, whose only child is the container's process 1."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self._process, self._log = process, log
        self._code: int | None = None
        self.reason = ""
        """Reason why the process ended, where its exit code does not say it."""
        log.touch()
        self._recorder = threading.Thread(
            target=log_lines.record, args=(process.stdout, log), daemon=True
        )
        self._recorder.start()

    @property
    def pid(self) -> int:
        """Process id of unshare."""
        return self._process.pid

    def inside(self) -> list[int]:
        """Process ids of all that runs in it, process 1 first."""
        return _below(self.pid)

    def poll(self) -> int | None:
        """The exit code, 128 + n for signal n, None while it runs. When it has ended, its log is
        whole."""
        code = self._process.poll()
        if code is None:
            return None
        self._recorder.join(LAST_WORDS_SECONDS)
        if self._code is not None:
            return self._code
        return code if code >= 0 else 128 - code

    def terminate(self) -> None:
        """SIGTERM to process 1, which ignores it unless it has a handler, as in any container."""
        pid = self._process.pid
        with suppress(OSError, IndexError):  # it has just ended, or not begun
            os.kill(
                int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0]), signal.SIGTERM
            )

    def kill(self) -> None:
        """unshare takes process 1, and with it the whole PID namespace, along."""
        self._process.kill()
        self._process.wait()

    def end_with(self, code: int, reason: str = "", words: str = "") -> None:
        """Kill it, as if it had ended by itself with these last words."""
        with self._log.open("ab") as log:
            log.write(log_lines.entry(words.encode()) if words else b"")
        self._code, self.reason = code, reason
        self.kill()


def _below(pid: int) -> list[int]:
    """Every process that it has started, and those that these have."""
    children = Path(f"/proc/{pid}/task/{pid}/children")
    try:
        found = [int(each) for each in children.read_text().split()]
    except OSError:  # it has just ended
        return []
    return [one for child in found for one in (child, *_below(child))]


class Simulated:
    """A container of an image the rehearsal does not have: it runs for ever, or succeeds soon where
    it should end."""

    def __init__(self, seconds: float | None) -> None:
        self._end = None if seconds is None else time.monotonic() + seconds
        self._code: int | None = None

    def poll(self) -> int | None:
        """0 when its time is over."""
        if self._code is None and self._end is not None and time.monotonic() >= self._end:
            self._code = 0
        return self._code

    def terminate(self) -> None:
        """It obeys."""
        self._code = 143 if self._code is None else self._code

    kill = terminate


Process = Sandboxed | Simulated
