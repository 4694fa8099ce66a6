"""Starts, watches and stops the control plane's processes; they die with the process that holds the ControlPlane."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import threading
import time
from dataclasses import dataclass
from pathlib import Path

import urllib3

from rehearsal import paths
from rehearsal.plane import pki
from rehearsal.plane.parts import Cluster, Part, parts, write_configuration

VERSION = "1.34"
"""The one Kubernetes minor the toolchain builds."""
_LOG = logging.getLogger(__name__)
_TICK = 0.1
_RESTART_SECONDS = 1.0
_GRACE_SECONDS = 5.0


class UnsupportedVersion(ValueError):
    """The rehearsal has no such Kubernetes."""


@dataclass(kw_only=True)
class _Running:
    """One part and its process."""

    part: Part
    process: subprocess.Popen[bytes] | None = None
    healthy: bool = False
    not_before: float = 0.0

    @property
    def log(self) -> Path:
        return paths.LOGS / f"{self.part.name}.log"


class ControlPlane:
    """One cluster's control plane. A thread of its own owns the processes: start and stop may be called from any."""

    def __init__(self, world: paths.World) -> None:
        self.world = world
        self.problem = ""
        """What went wrong last, in one line: the reason to show while it is not ready."""
        self._running: dict[str, _Running] = {}
        self._pool = urllib3.PoolManager()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, version: str, service_cidr: str) -> None:
        """Begin to start; goes on with the data that stop(wipe=False), or a process that died, left behind."""
        if version != VERSION:
            raise UnsupportedVersion(f"the rehearsal's control plane is Kubernetes {VERSION}, not {version}")
        if self._thread:
            raise RuntimeError("the control plane has been started")
        cluster = Cluster(world=self.world, service_cidr=service_cidr, pki=paths.PLANE, data=paths.PLANE / "etcd")
        if not (paths.PLANE / "sa.pub").exists():
            pki.write(paths.PLANE, cluster.api, service_cidr)
        write_configuration(cluster)
        self._pool = urllib3.PoolManager(ca_certs=str(paths.PLANE / "ca.crt"), retries=False, timeout=2)
        self._running = {part.name: _Running(part=part) for part in parts(cluster)}
        self.problem = ""
        self._stopping.clear()
        self._thread = threading.Thread(target=self._supervise, name="control-plane", daemon=True)
        self._thread.start()

    def ready(self) -> bool:
        """Whether every part works now."""
        return bool(self._running) and all(running.healthy for running in self._running.values())

    def stop(self, wipe: bool = True) -> None:
        """End every part; with `wipe` the cluster's data, keys and kubeconfigs are gone too."""
        if self._thread:
            self._stopping.set()
            self._thread.join()
            self._thread = None
        self._running = {}
        if wipe:
            shutil.rmtree(paths.PLANE, ignore_errors=True)

    @property
    def pids(self) -> dict[str, int]:
        """Process ids of the parts that run."""
        return {name: running.process.pid for name, running in self._running.items() if running.process}

    def _supervise(self) -> None:
        # The kernel kills a child when the *thread* that started it ends, so this one starts all and stays.
        paths.LOGS.mkdir(parents=True, exist_ok=True)
        while not self._stopping.wait(_TICK):
            for running in self._running.values():
                try:
                    self._tend(running)
                except OSError as error:  # such as a full disk: it may pass
                    self.problem = f"{running.part.name}: {error}"
        for running in reversed(self._running.values()):
            _end(running)

    def _tend(self, running: _Running) -> None:
        """Start it if it may, notice if it died, else ask how it is."""
        process = running.process
        if process is None:
            if time.monotonic() >= running.not_before and self._may_start(running.part):
                running.process = _launch(running)
        elif process.poll() is not None:
            self._lost(running, process.returncode)
        elif not running.healthy:
            running.healthy = self._answers(running.part)

    def _lost(self, running: _Running, status: int) -> None:
        last = running.log.read_text(errors="replace").rstrip().rpartition("\n")[2]
        self.problem = f"{running.part.name} ended with {status}: {last[:300]}"
        _LOG.warning("%s; it is started again (%s)", self.problem, running.log)
        running.process, running.healthy = None, False
        running.not_before = time.monotonic() + _RESTART_SECONDS

    def _may_start(self, part: Part) -> bool:
        return part.after is None or self._running[part.after].healthy

    def _answers(self, part: Part) -> bool:
        try:
            return self._pool.request("GET", part.health).status == 200
        except urllib3.exceptions.HTTPError:
            return False


def _launch(running: _Running) -> subprocess.Popen[bytes]:
    # Nothing of the user's environment: a proxy named there would get the API server's calls to webhooks.
    with running.log.open("ab") as log:
        return subprocess.Popen(running.part.command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
                                cwd=paths.PLANE, env={"PATH": os.environ["PATH"]})


def _end(running: _Running) -> None:
    if running.process is None:
        return
    running.process.terminate()
    try:
        running.process.wait(_GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        running.process.kill()
        running.process.wait()
