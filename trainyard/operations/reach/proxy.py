"""kubectl that asks the API server through one proxy: a process for each question takes longer than the
question."""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from trainyard.operations.reach.kubectl import Kubectl, Login, kubectl_with, logged_in_to
from trainyard.operations.reach.other_programs import not_on_path

NOT_FOUND = 404
NO_SUCH_PATH = "Error from server (NotFound): the server could not find the requested resource"
"""For a path of no kind, about which the API server says nothing."""
START_SECONDS = 30
"""Seconds that the proxy has until it listens."""
REQUEST_SECONDS = 30
"""Longest time of one question."""


@contextmanager
def asking(kubeconfig: str, seconds: float = REQUEST_SECONDS) -> Iterator[Kubectl]:
    """kubectl for many questions to the cluster of this kubeconfig, through one login and one proxy, as
    proxied() says."""
    with logged_in_to(kubeconfig) as login, proxied(login, seconds) as kubectl:
        yield kubectl


@contextmanager
def proxied(login: Login, seconds: float) -> Iterator[Kubectl]:
    """kubectl whose `get --raw` asks a `kubectl proxy`, which ends with the block. It listens on a
    Unix socket that nobody else can open. Every other command is a process, as in kubectl_with().

    `seconds`: longest time of one question. Raises RuntimeError with kubectl's error.
    """
    kubectl = kubectl_with(login, f"--request-timeout={seconds:g}s")
    with tempfile.TemporaryDirectory() as folder:
        proxy = _Proxy(login, Path(folder), seconds)
        try:
            yield (
                lambda *words: (
                    proxy.get(words[2]) if words[:2] == ("get", "--raw") else kubectl(*words)
                )
            )
        finally:
            proxy.stop()


class _Proxy:
    """One process, and a connection to it for each thread."""

    def __init__(self, login: Login, folder: Path, seconds: float) -> None:
        self._login, self._folder, self._seconds = login, folder, seconds
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._environment: Mapping[str, str] = {}
        self._socket = folder
        self._number = 0
        self._own = threading.local()

    def get(self, path: str) -> str:
        """The answer of the API server. Raises RuntimeError for a refusal and for none."""
        number = self._started()
        try:
            link = self._link(number)
            link.request("GET", path, headers={"Host": "localhost"})
            answer = link.getresponse()
            text = answer.read().decode(errors="replace")
        except (OSError, http.client.HTTPException) as error:
            self._own.link = None
            raise RuntimeError(f"the API server does not answer: {error}") from None
        if answer.status >= 300:
            raise RuntimeError(_refusal(answer.status, text))
        return text

    def stop(self) -> None:
        """End the process."""
        if self._process:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def _started(self) -> int:
        """Start the process, or another one where the login is a later one; its number."""
        with self._lock:
            environment = self._login()
            if self._process is None or environment is not self._environment:
                self.stop()
                self._environment = environment
                self._number += 1
                self._socket = self._folder / str(self._number)
                self._process = self._start()
            return self._number

    def _start(self) -> subprocess.Popen[str]:
        try:
            process = subprocess.Popen(
                ["kubectl", "proxy", f"--unix-socket={self._socket}"],
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                env=self._environment,
            )
        except FileNotFoundError:
            raise RuntimeError(not_on_path("kubectl")) from None
        until = time.monotonic() + START_SECONDS
        while not _listens(self._socket):
            if process.poll() is not None or time.monotonic() > until:
                process.kill()
                raise RuntimeError(process.communicate()[1].strip() or "kubectl proxy failed")
            time.sleep(0.01)
        return process

    def _link(self, number: int) -> http.client.HTTPConnection:
        """The connection of this thread to the process of that number."""
        if getattr(self._own, "link", None) is None or self._own.number != number:
            self._own.link = _UnixConnection(str(self._socket), self._seconds)
            self._own.number = number
        return self._own.link


class _UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: str, seconds: float) -> None:
        super().__init__("localhost", timeout=seconds)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def _listens(path: Path) -> bool:
    """True where somebody answers at the socket: its file is there a moment before."""
    with socket.socket(socket.AF_UNIX) as tried:
        return tried.connect_ex(str(path)) == 0


def _refusal(status: int, text: str) -> str:
    """The words of the API server, as kubectl writes them."""
    try:
        said = json.loads(text)
        return f"Error from server ({said['reason']}): {said['message']}"
    except (ValueError, KeyError, TypeError):
        return NO_SUCH_PATH if status == NOT_FOUND else f"{status}: {text.strip()[:300]}"
