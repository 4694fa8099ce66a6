"""Starts, watches and stops the control plane's processes; they die with the process that holds the
ControlPlane."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import threading
import time

import urllib3

from rehearsal import paths
from rehearsal.control_plane import pki
from rehearsal.control_plane.parts import Part, parts, write_configuration
from rehearsal.toolchain.programs import KUBERNETES_RELEASES

_LOG = logging.getLogger(__name__)
_TICK = 0.1
_RESTART_SECONDS = 1.0
_GRACE_SECONDS = 5.0


class ControlPlane:
    """One cluster's control plane. A thread of its own owns the processes: start and stop may be
    called from any."""

    def __init__(self, world: paths.World) -> None:
        self.world = world
        self.parts: list[Part] = []
        self.problem = ""
        """Last problem, in one line: the reason to show while the control plane is not ready."""
        self._pool = urllib3.PoolManager()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._supervise, daemon=True)

    def start(self, version: str, service_cidr: str) -> None:
        """Begin to start; goes on with the data that stop(wipe=False), or a process that died, left
        behind."""
        _check(version)
        if not (paths.PLANE / "sa.pub").exists():
            pki.write(paths.PLANE, self.world.api_url, service_cidr)
        write_configuration(self.world)
        self.parts = parts(self.world, service_cidr, version)
        self._pool = urllib3.PoolManager(
            ca_certs=str(paths.PLANE / "ca.crt"), retries=False, timeout=2
        )
        self._thread.start()

    def upgrade(self, version: str) -> None:
        """Begin to end every part but etcd, and to start it again with the programs of that minor
        version, on the same data."""
        _check(version)
        for part in self.parts:
            if part.kubernetes:
                part.kubernetes, part.ends = version, True

    def go_away(self, seconds: float) -> None:
        """Begin to end the API server, which starts again after so many seconds."""
        for part in self.parts:
            if part.name == "kube-apiserver":
                part.rests, part.ends = seconds, True

    def ready(self) -> bool:
        """True where every part works now."""
        return bool(self.parts) and all(part.healthy and not part.ends for part in self.parts)

    def stop(self, wipe: bool = True) -> None:
        """End every part, for good; with `wipe` the cluster's data, keys and kubeconfigs are gone
        too."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()
        self.parts = []
        if wipe:
            shutil.rmtree(paths.PLANE, ignore_errors=True)

    def _supervise(self) -> None:
        # The kernel kills a child when the *thread* that started it ends, so this one starts all
        # and stays.
        paths.LOGS.mkdir(parents=True, exist_ok=True)
        while not self._stopping.wait(_TICK):
            for part in self.parts:
                try:
                    self._tend(part)
                except OSError as error:  # such as a full disk: it may pass
                    self.problem = f"{part.name}: {error}"
        for part in reversed(self.parts):
            _end(part)

    def _tend(self, part: Part) -> None:
        """Start it if it may, end it if it shall, notice if it died, else ask how it is."""
        if part.ends:
            _end(part)
            part.process, part.healthy, part.not_before = None, False, time.monotonic() + part.rests
            part.rests, part.ends = 0.0, False
        elif part.process is None:
            if time.monotonic() >= part.not_before and (part.after is None or part.after.healthy):
                part.process = _launch(part)
        elif part.process.poll() is not None:
            self._lost(part, part.process.returncode)
        elif not part.healthy:
            part.healthy = self._answers(part)

    def _lost(self, part: Part, status: int) -> None:
        last = part.log.read_text(errors="replace").rstrip().rpartition("\n")[2]
        self.problem = f"{part.name} ended with {status}: {last[:300]}"
        _LOG.warning("%s; it is started again (%s)", self.problem, part.log)
        part.process, part.healthy, part.not_before = (
            None,
            False,
            time.monotonic() + _RESTART_SECONDS,
        )

    def _answers(self, part: Part) -> bool:
        try:
            return self._pool.request("GET", part.health).status == 200
        except urllib3.exceptions.HTTPError:
            return False


def _check(version: str) -> None:
    """ValueError for a version that the toolchain has no control plane of, or has not built."""
    if version not in KUBERNETES_RELEASES:
        known = " or ".join(KUBERNETES_RELEASES)
        raise ValueError(f"the rehearsal's control plane is Kubernetes {known}, not {version}")
    if not (paths.BIN / f"kube-apiserver-{version}").exists():
        raise ValueError(f"Kubernetes {version} is not built; make up builds what its stack wants")


def _launch(part: Part) -> subprocess.Popen[bytes]:
    # Nothing of the user's environment: a proxy named there would get the API server's calls to
    # webhooks.
    with part.log.open("ab") as log:
        return subprocess.Popen(
            part.command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=paths.PLANE,
            env={"PATH": os.environ["PATH"]},
        )


def _end(part: Part) -> None:
    if part.process is None:
        return
    part.process.terminate()
    try:
        part.process.wait(_GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        part.process.kill()
        part.process.wait()
