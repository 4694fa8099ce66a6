"""One container: its process however often restarted, and its status."""

from __future__ import annotations

import time
from collections.abc import Callable

from rehearsal.kube import Object
from rehearsal.nodes.environment import NotReady
from rehearsal.nodes.node import now
from rehearsal.nodes.probes import Probes
from rehearsal.nodes.process import Process

BACK_OFF, LONGEST_BACK_OFF = 0.5, 15.0
"""Doubled at each restart. Kubernetes' are 10 s and 5 min: a twentieth here."""
STEADY_SECONDS = 30.0
"""After this long a run, the back-off starts anew: a twentieth of 10 min."""

Start = Callable[["Container"], Process]


class Container:
    """`start` makes a process for it; `policy` says when there is another one."""

    def __init__(self, spec: Object, *, policy: str, start: Start, address: Callable[[], str]) -> None:
        self.spec, self.name = spec, spec["name"]
        self._policy, self._start, self._address = policy, start, address
        self.process: Process | None = None
        self.runs = 0
        self._probes = Probes({}, "", None)
        self._state: Object = {"waiting": {"reason": "ContainerCreating"}}
        self._last_state: Object = {}
        self._failures, self._due, self._began = 0, 0.0, 0.0
        self._started_at = ""

    @property
    def exit_code(self) -> int | None:
        """Set when it has ended for good."""
        return self._state.get("terminated", {}).get("exitCode")

    @property
    def running(self) -> bool:
        """Whether its process runs."""
        return self.process is not None

    @property
    def ready(self) -> bool:
        """Whether it runs and its readiness probe passes."""
        return self.running and self._probes.ready

    @property
    def started(self) -> bool:
        """Whether it runs and its startup probe has passed."""
        return self.running and self._probes.started

    def tick(self) -> str:
        """Start, reap, probe, restart; what happened that deserves an event, or nothing."""
        if self.exit_code is not None:
            return ""
        if self.process is None:
            return self._try_to_start() if time.monotonic() >= self._due else ""
        code = self.process.poll()
        if code is not None:
            return self._ended(code)
        if trouble := self._probes.tick():
            self.process.kill()
            self._ended(137)
        return trouble

    def stop(self, grace: float) -> None:
        """SIGTERM, `grace` seconds, SIGKILL; the end is final."""
        self._policy = "Never"
        if self.process is None:
            if self.exit_code is None and self.runs == 0:
                self._state = {"terminated": {"exitCode": 137, "reason": "ContainerStatusUnknown", "finishedAt": now()}}
            return
        self.process.terminate()
        end = time.monotonic() + grace
        while (code := self.process.poll()) is None and time.monotonic() < end:
            time.sleep(0.02)
        if code is None:
            self.process.kill()
        self._ended(137 if code is None else code)

    def status(self, *, init: bool = False) -> Object:
        """Its entry in the pod's status; an init container is ready when it has done its work."""
        return {"name": self.name, "image": self.spec["image"], "imageID": "", "state": self._state,
                "lastState": self._last_state, "started": self.started,
                "ready": self.ready or (init and self.exit_code == 0), "restartCount": max(0, self.runs - 1)}

    def _try_to_start(self) -> str:
        try:
            self.process = self._start(self)
        except NotReady as missing:
            self._due = time.monotonic() + 1
            self._state = {"waiting": {"reason": "CreateContainerConfigError", "message": str(missing)}}
            return str(missing)
        self.runs += 1
        self._began, self._started_at = time.monotonic(), now()
        self._state = {"running": {"startedAt": self._started_at}}
        self._probes = Probes(self.spec, self._address(), self.process)
        return ""

    def _ended(self, code: int) -> str:
        self.process = None
        reason = "Completed" if code == 0 else "StartError" if code == 128 else "Error"
        end = {"terminated": {"exitCode": code, "reason": reason, "startedAt": self._started_at, "finishedAt": now()}}
        if self._policy == "Never" or (self._policy == "OnFailure" and code == 0):
            self._state = end
            return ""
        self._failures = 0 if time.monotonic() - self._began > STEADY_SECONDS else self._failures + 1
        wait = min(LONGEST_BACK_OFF, BACK_OFF * 2 ** self._failures)
        self._due, self._last_state = time.monotonic() + wait, end
        self._state = {"waiting": {"reason": "CrashLoopBackOff", "message": f"back-off {wait:g}s restarting"}}
        return f"Back-off restarting failed container {self.name}: exit code {code}"
