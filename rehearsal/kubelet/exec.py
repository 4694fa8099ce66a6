"""`kubectl exec`: a command in the namespaces of a running container, with the protocol that kubelets
speak with the API server (remotecommand, v4.channel.k8s.io over SPDY)."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import queue
import select
import shutil
import ssl
import struct
import subprocess
import termios
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from rehearsal.kubelet.pod import Pod
from rehearsal.kubelet.process import DIE_WITH_PARENT, Sandboxed
from rehearsal.kubelet.spdy import Data, Event, Frames, Left, Opened, data

PIECE = 32 * 1024
LINGER_SECONDS = 5.0
"""Seconds that the API server may take to leave after the end of the command."""
QUIET_SECONDS = 0.2
"""A command has ended, and so long nobody has written: what it left behind may hold its output."""


class ExecRefused(RuntimeError):
    """A command cannot run in that container. The client gets the text."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Command that shall run, and its streams."""

    argv: list[str]
    env: dict[str, str]
    tty: bool
    streams: frozenset[str]
    """stdin, stdout, stderr and error; with a terminal resize, and no stderr."""


def wanted(pod: Pod | None, name: str, options: list[tuple[str, str]]) -> Wanted:
    """From the query of /exec. ExecRefused where the container cannot run it."""
    container = next((each for each in pod.containers if each.name == name), None) if pod else None
    if pod is None or container is None:
        raise ExecRefused(f'container "{name}" is not on this node')
    if container.process is None:
        raise ExecRefused(f'container not found ("{name}"): it does not run')
    if not isinstance(container.process, Sandboxed):
        raise ExecRefused(f"simulated by the rehearsal: nothing of {container.spec['image']} runs")
    plan = json.loads((pod.folder / name / "plan.json").read_text())
    asked = {key for key, value in options if value in ("1", "true")}
    argv = [value for key, value in options if key == "command"]
    return Wanted(
        argv=[*DIE_WITH_PARENT, *_entering(container.process.pid), *argv],
        env=plan["env"] | ({"TERM": "xterm"} if "tty" in asked else {}),
        tty="tty" in asked,
        streams=_streams(asked),
    )


def _entering(pid: int) -> list[str]:
    """The command that enters the namespaces of a container, by its unshare."""
    first = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0]
    return [
        shutil.which("nsenter") or "nsenter",
        "-t",
        first,
        *["-n", "-u", "-i", "-m", "-p", "-r", "-w", "--"],
    ]


def _streams(asked: set[str]) -> frozenset[str]:
    """Streams that the client opens. A terminal has one output, and a size."""
    names = {"input": "stdin", "output": "stdout", "error": "stderr", "tty": "resize"}
    streams = {stream for key, stream in names.items() if key in asked} | {"error"}
    return frozenset(streams - ({"stderr"} if "tty" in asked else set()))


def status(code: int) -> bytes:
    """Status that the error stream carries at the end of a command."""
    if code == 0:
        return json.dumps({"metadata": {}, "status": "Success"}).encode()
    said = f"command terminated with non-zero exit code: exit status {code}"
    causes = {"causes": [{"reason": "ExitCode", "message": str(code)}]}
    ended = {"status": "Failure", "reason": "NonZeroExitCode", "message": said, "details": causes}
    return json.dumps({"metadata": {}, **ended}).encode()


class Upgraded:
    """A connection that has been upgraded. One thread reads and writes it."""

    def __init__(self, connection: ssl.SSLSocket) -> None:
        self._connection, self._frames = connection, Frames()

    def _read(self) -> list[Event] | None:
        """Events that have come; None where the client has left."""
        try:
            content = self._connection.recv(PIECE)
        except OSError:
            return None
        events = [*self._frames.feed(content)]
        for answer in self._frames.answers:
            self._send(answer)
        self._frames.answers.clear()
        return events if content else None

    def _send(self, content: bytes) -> None:
        with suppress(OSError):  # the next read says that it has left
            self._connection.sendall(content)


class Session(Upgraded):
    """One command and its connection."""

    PROTOCOL = "v4.channel.k8s.io"

    def __init__(self, connection: ssl.SSLSocket, asked: Wanted) -> None:
        super().__init__(connection)
        self._asked = asked
        self._ids: dict[str, int] = {}
        self._typed: queue.Queue[bytes | None] = queue.Queue()
        self._outputs: dict[int, str] = {}
        """Descriptor → name of the stream that its bytes go to."""
        self._terminal = -1
        self._early: list[Event] = []
        """Events that came before all streams were open."""

    def run(self) -> None:
        """Until the command has ended and its client knows, or until the client leaves."""
        if not self._opened():
            return
        process = self._start()
        try:
            self._pump(process)
        finally:
            self._typed.put(None)
            if process.poll() is None:
                process.kill()
            process.wait()
            for descriptor in {*self._outputs, self._terminal} - {-1}:
                with suppress(OSError):
                    os.close(descriptor)

    def _opened(self) -> bool:
        """Wait for all streams; False where the client has left."""
        while self._ids.keys() != self._asked.streams:
            events = self._read()
            if events is None:
                return False
            for event in events:
                if isinstance(event, Opened):
                    self._ids[event.headers.get("streamtype", "")] = event.stream
                    self._send(self._frames.accept(event.stream))
                else:
                    self._early.append(event)
        return True

    def _start(self) -> subprocess.Popen[bytes]:
        if self._asked.tty:
            self._terminal, ours = pty.openpty()
            process = subprocess.Popen(
                self._asked.argv,
                env=self._asked.env,
                stdin=ours,
                stdout=ours,
                stderr=ours,
                start_new_session=True,
                preexec_fn=_controls_terminal,
            )
            os.close(ours)
            self._outputs = {self._terminal: "stdout"}
            descriptor = self._terminal
        else:
            process = subprocess.Popen(
                self._asked.argv,
                env=self._asked.env,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
            assert process.stdin and process.stdout and process.stderr
            self._outputs = {
                os.dup(process.stdout.fileno()): "stdout",
                os.dup(process.stderr.fileno()): "stderr",
            }
            descriptor = os.dup(process.stdin.fileno())
            for pipe in (process.stdin, process.stdout, process.stderr):
                pipe.close()
        if "stdin" not in self._asked.streams:
            self._typed.put(None)
        feeds = threading.Thread(target=self._feed, args=(descriptor,), daemon=True)
        feeds.start()
        return process

    def _feed(self, descriptor: int) -> None:
        """Hand what the client types to the command, which may be slow to read it."""
        while (typed := self._typed.get()) is not None:
            with suppress(OSError):
                while typed:
                    typed = typed[os.write(descriptor, typed) :]
        if descriptor != self._terminal:
            os.close(descriptor)

    def _pump(self, process: subprocess.Popen[bytes]) -> None:
        for event in self._early:
            self._take(event)
        heard = time.monotonic()
        while True:
            ready = self._ready()
            for descriptor in [each for each in self._outputs if each in ready]:
                heard = time.monotonic()
                self._forward(descriptor)
            if self._connection.fileno() in ready and not self._heard():
                return
            quiet = time.monotonic() - heard > QUIET_SECONDS
            if process.poll() is not None and (not self._outputs or quiet):
                return self._tell(process.returncode)

    def _heard(self) -> bool:
        """Take what has come; False where the client has left."""
        events = self._read()
        if events is None or any(isinstance(each, Left) and not each.stream for each in events):
            return False
        for event in events:
            self._take(event)
        return True

    def _ready(self) -> list[int]:
        watched = [self._connection.fileno(), *self._outputs]
        if self._connection.pending():
            return [self._connection.fileno()]
        return select.select(watched, [], [], QUIET_SECONDS / 2)[0]

    def _forward(self, descriptor: int) -> None:
        try:
            content = os.read(descriptor, PIECE)
        except OSError:  # a terminal whose last process has ended
            content = b""
        if not content:
            del self._outputs[descriptor]
            if descriptor != self._terminal:
                os.close(descriptor)
        elif self._outputs[descriptor] in self._ids:
            self._send(data(self._ids[self._outputs[descriptor]], content))

    def _take(self, event: Event) -> None:
        if not isinstance(event, Data):
            return
        if event.stream == self._ids.get("stdin"):
            if event.content:
                self._typed.put(event.content)
            if event.last and not self._asked.tty:
                self._typed.put(None)
        elif event.stream == self._ids.get("resize") and event.content:
            size = json.loads(event.content)
            packed = struct.pack("HHHH", size["Height"], size["Width"], 0, 0)
            fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, packed)

    def _tell(self, code: int) -> None:
        """Send how the command ended, and the end of each stream; then the client leaves."""
        self._send(data(self._ids["error"], status(code if code >= 0 else 128 - code)))
        for stream in self._ids.values():
            self._send(data(stream, b"", last=True))
        end = time.monotonic() + LINGER_SECONDS
        self._connection.settimeout(LINGER_SECONDS)
        with suppress(OSError):
            while time.monotonic() < end and self._read() is not None:
                pass


def _controls_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
