"""One container: its process however often restarted, its probes, and its status."""

from __future__ import annotations

import http.client
import time
from collections.abc import Callable

from rehearsal.kube import Object
from rehearsal.kubelet.environment import NotReady
from rehearsal.kubelet.node import now
from rehearsal.kubelet.process import Process, Simulated
from trainyard.catalog.limits import CRASH_BACKOFF_SECONDS, LONGEST_CRASH_BACKOFF_SECONDS
from trainyard.catalog.limits import STEADY_SECONDS as STEADY

FASTER = 20
"""So many times faster than Kubernetes the pauses between restarts go by."""
BACK_OFF = CRASH_BACKOFF_SECONDS / FASTER
LONGEST_BACK_OFF = LONGEST_CRASH_BACKOFF_SECONDS / FASTER
"""Seconds, doubled at each restart."""
STEADY_SECONDS = STEADY / FASTER
"""After this long a run, the back-off starts anew."""
FASTEST, SLOWEST_ANSWER = 0.5, 2.0
"""Readiness is asked this often and without its initial delay, which is for images that start
slower than ours; and a probe holds its pod up no longer than this."""
PROBES = ("readinessProbe", "livenessProbe")
UNKNOWN = ("hostNetwork", "envFrom", "lifecycle", "startupProbe")
"""Fields of pods and containers on which nothing here acts: what has them is not started."""

EVENT_OF_REASON = {
    "ErrImagePull": ("Failed", 'Failed to pull image "{}": {}'),
    "InvalidImageName": ("InspectFailed", "{1}"),
}
"""Reason why a container waits → reason and message of the event; others: its configuration."""
Event = tuple[str, str] | None
Start = Callable[["Container"], Process]


class Container:
    """`start` makes a process for it; `policy` says when there is another one; `pod` is for what is told."""

    def __init__(
        self, spec: Object, *, pod: str, policy: str, start: Start, address: Callable[[], str]
    ) -> None:
        self.spec, self.name, self._pod = spec, spec["name"], pod
        self._policy, self._start, self._address = policy, start, address
        self.process: Process | None = None
        self.runs = 0
        self._probes: dict[str, Probe] = {}
        self._state: Object = {"waiting": {"reason": "ContainerCreating"}}
        self._last_state: Object = {}
        self._failures, self._due, self._began, self._started_at = 0, 0.0, 0.0, ""

    @property
    def exit_code(self) -> int | None:
        """Set when it has ended for good."""
        return self._state.get("terminated", {}).get("exitCode")

    @property
    def ready(self) -> bool:
        """True where the container runs and its readiness probe passes."""
        return self.process is not None and (
            "readinessProbe" not in self._probes or self._probes["readinessProbe"].good is True
        )

    def tick(self) -> Event:
        """Start, reap, probe, restart; what happened that deserves an event, or nothing."""
        if self.exit_code is not None:
            return None
        if self.process is None:
            return self._try_to_start() if time.monotonic() >= self._due else self._wait()
        code = self.process.poll()
        if code is not None:
            return self._ended(code)
        for kind, probe in self._probes.items():
            if probe.tick() is False and kind == "livenessProbe":
                self.process.kill()
                self._ended(137)
                return "Unhealthy", "Liveness probe failed"
        return None

    def stop(self, grace: float) -> None:
        """SIGTERM, `grace` seconds, SIGKILL; the end is final."""
        self._policy = "Never"
        if self.process is None:
            if self.exit_code is None and self.runs == 0:
                self._state = {
                    "terminated": {
                        "exitCode": 137,
                        "reason": "ContainerStatusUnknown",
                        "finishedAt": now(),
                    }
                }
            elif self.exit_code is None:  # between two runs: the last one counts
                self._state = self._last_state
            return
        self.process.terminate()
        end = time.monotonic() + grace
        while (code := self.process.poll()) is None and time.monotonic() < end:
            time.sleep(0.02)
        if code is None:
            self.process.kill()
        self._ended(137 if code is None else code)

    def status(self) -> Object:
        """Its entry in the pod's status."""
        return {
            "name": self.name,
            "image": self.spec["image"],
            "imageID": "",
            "state": self._state,
            "lastState": self._last_state,
            "started": self.process is not None,
            "ready": self.ready,
            "restartCount": max(0, self.runs - 1),
        }

    def _try_to_start(self) -> Event:
        try:
            self.process = self._start(self)
        except NotReady as missing:
            self._due = time.monotonic() + (
                self._back_off_seconds() if missing.reason in EVENT_OF_REASON else 1
            )
            self._state = {"waiting": {"reason": missing.reason, "message": str(missing)}}
            reason, words = EVENT_OF_REASON.get(missing.reason, ("Failed", "Error: {1}"))
            return reason, words.format(self.spec["image"], missing)
        self.runs += 1
        self._began, self._started_at = time.monotonic(), now()
        self._state = {"running": {"startedAt": self._started_at}}
        asked = () if isinstance(self.process, Simulated) else PROBES
        self._probes = {
            kind: Probe(self.spec, kind, self._address()) for kind in asked if kind in self.spec
        }
        return None

    def _wait(self) -> None:
        waiting = self._state["waiting"]
        if waiting["reason"] == "ErrImagePull":
            words = (
                f'Back-off pulling image "{self.spec["image"]}": ErrImagePull: {waiting["message"]}'
            )
            self._state = {"waiting": {"reason": "ImagePullBackOff", "message": words}}

    def _back_off_seconds(self) -> float:
        self._failures += 1
        return min(LONGEST_BACK_OFF, BACK_OFF * 2**self._failures)

    def _ended(self, code: int) -> Event:
        told = getattr(self.process, "reason", "")
        self.process = None
        reason = told or ("Completed" if code == 0 else "StartError" if code == 128 else "Error")
        end = {
            "terminated": {
                "exitCode": code,
                "reason": reason,
                "startedAt": self._started_at,
                "finishedAt": now(),
            }
        }
        if self._policy == "Never" or (self._policy == "OnFailure" and code == 0):
            self._state = end
            return None
        self._failures = -1 if time.monotonic() - self._began > STEADY_SECONDS else self._failures
        wait = self._back_off_seconds()
        self._due, self._last_state = time.monotonic() + wait, end
        self._state = {
            "waiting": {
                "reason": "CrashLoopBackOff",
                "message": (
                    f"back-off {wait:g}s restarting failed container={self.name} pod={self._pod}"
                ),
            }
        }
        return "BackOff", f"Back-off restarting failed container {self.name} in pod {self._pod}"


def refused(pod: Object) -> list[str]:
    """Parts of a pod's specification that the rehearsal's kubelet would pass over."""
    init = pod.get("initContainers", [])
    found = [
        field for part in (pod, *init, *pod["containers"]) for field in UNKNOWN if part.get(field)
    ]
    found += ["initContainers that go on"] * any("restartPolicy" in container for container in init)
    probes = [(kind, c[kind]) for c in pod["containers"] for kind in PROBES if kind in c]
    return found + [
        f"{kind} by anything but HTTP and TCP"
        for kind, probe in probes
        if "tcpSocket" not in probe and probe.get("httpGet", {}).get("scheme") != "HTTP"
    ]


class Probe:
    """A probe by HTTP or TCP of one start of a container. Fields without a default here the API server
    has filled in."""

    def __init__(self, container: Object, field: str, address: str) -> None:
        self._spec = container[field]
        self._request = self._spec.get("httpGet")
        request = self._request or self._spec["tcpSocket"]
        named = {p.get("name"): p["containerPort"] for p in container.get("ports", [])}
        self._where = address, named.get(request["port"], request["port"])
        eager = field == "readinessProbe"
        self._period = (
            min(FASTEST, self._spec["periodSeconds"]) if eager else self._spec["periodSeconds"]
        )
        self._next = time.monotonic() + (0 if eager else self._spec.get("initialDelaySeconds", 0))
        self._failures = 0
        self.good: bool | None = None
        """None until it has passed once or failed often enough."""

    def tick(self) -> bool | None:
        """Ask again if it is time; the verdict."""
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + self._period
            passed = self._passes()
            self._failures = 0 if passed else self._failures + 1
            self.good = (
                passed if passed or self._failures >= self._spec["failureThreshold"] else self.good
            )
        return self.good

    def _passes(self) -> bool:
        """True where HTTP answers with success, or TCP at all."""
        connection = http.client.HTTPConnection(
            *self._where, timeout=min(SLOWEST_ANSWER, self._spec["timeoutSeconds"])
        )
        try:
            if not self._request:
                connection.connect()
                return True
            connection.request("GET", self._request["path"])
            return 200 <= connection.getresponse().status < 400
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()
