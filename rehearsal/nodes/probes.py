"""Readiness, startup and liveness of containers that are processes."""

from __future__ import annotations

import http.client
import socket
import ssl
import time
from collections.abc import Callable

from rehearsal.kube import Object
from rehearsal.nodes.process import Process, Sandboxed

FASTEST, SLOWEST_ANSWER = 0.5, 2.0
"""Readiness is asked this often and without its initial delay, which is for images that start slower than ours; and a
probe holds its pod up no longer than this."""


class Probe:
    """One probe of a running container. `passes` asks once."""

    def __init__(self, spec: Object, passes: Callable[[Object], bool], *, eager: bool) -> None:
        self._spec, self._passes = spec, passes
        self._period = min(FASTEST, spec.get("periodSeconds", 10)) if eager else spec.get("periodSeconds", 10)
        self._next = time.monotonic() + (0 if eager else spec.get("initialDelaySeconds", 0))
        self._in_a_row, self._last = 0, False
        self.good: bool | None = None
        """None until it has passed or failed often enough."""

    def tick(self) -> bool | None:
        """Ask again if it is time; the verdict."""
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + self._period
            passed = self._passes(self._spec)
            self._in_a_row, self._last = self._in_a_row + 1 if passed == self._last else 1, passed
            enough = self._spec.get("successThreshold", 1) if passed else self._spec.get("failureThreshold", 3)
            self.good = passed if self._in_a_row >= enough else self.good
        return self.good


class Probes:
    """The probes of one start of a container; what has no probe is started, ready and alive."""

    def __init__(self, container: Object, address: str, process: Process | None) -> None:
        def passes(spec: Object) -> bool:
            return not isinstance(process, Sandboxed) or asked(spec, container, address, process)

        self._probes = {kind: Probe(container[f"{kind}Probe"], passes, eager=kind != "liveness")
                        for kind in ("startup", "readiness", "liveness") if f"{kind}Probe" in container}
        self.started = "startup" not in self._probes
        self.ready = self.started and "readiness" not in self._probes

    def tick(self) -> str:
        """Ask what is due; why the container must be restarted, or nothing."""
        if not self.started:
            verdict = self._probes["startup"].tick()
            self.started = verdict is True
            return "failed startup probe" if verdict is False else ""
        self.ready = "readiness" not in self._probes or self._probes["readiness"].tick() is True
        dead = "liveness" in self._probes and self._probes["liveness"].tick() is False
        return "failed liveness probe" if dead else ""


def asked(spec: Object, container: Object, address: str, process: Sandboxed) -> bool:
    """Whether a probe's question is answered well."""
    timeout = min(SLOWEST_ANSWER, spec.get("timeoutSeconds", 1))
    try:
        match next((kind for kind in ("exec", "httpGet", "tcpSocket") if kind in spec), ""):
            case "exec":
                return process.run(spec["exec"]["command"], timeout)
            case "httpGet":
                return got(spec["httpGet"], address, port(spec["httpGet"]["port"], container), timeout)
            case "tcpSocket":
                where = address, port(spec["tcpSocket"]["port"], container)
                socket.create_connection(where, timeout=timeout).close()
                return True
            case _:
                raise OSError(f"the rehearsal's kubelet does not know the probe {spec}")
    except (OSError, http.client.HTTPException):
        return False


def got(request: Object, address: str, number: int, timeout: float) -> bool:
    """Whether HTTP answers with success; a certificate is not checked."""
    connection = http.client.HTTPConnection(address, number, timeout=timeout)
    if request.get("scheme") == "HTTPS":
        context = ssl._create_unverified_context()
        connection = http.client.HTTPSConnection(address, number, timeout=timeout, context=context)
    connection.request("GET", request.get("path", "/"))
    return 200 <= connection.getresponse().status < 400


def port(wanted: int | str, container: Object) -> int:
    """A port by number or by name."""
    named = {p.get("name"): p["containerPort"] for p in container.get("ports", [])}
    return wanted if isinstance(wanted, int) else named.get(wanted) or int(wanted)
