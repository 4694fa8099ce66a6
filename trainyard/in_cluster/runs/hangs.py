"""Runs that stand still: all their pods run, and none has logged a line for long, nor may draw a bar of progress.

For trainyard/in_cluster/repair, which starts their gangs anew where repair.hung_minutes is set.
"""

from __future__ import annotations

import calendar
import math
import re
import time
import urllib.parse
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from api_server import Api
from pods import Object, gangs, labels, training, trains

HUNG = "Hung"
LOOK_SECONDS = 15.0
"""Between two looks at logs: each asks the kubelets of the gangs that may hang."""
UNKNOWN = "its node does not answer"
"""In the place of a log."""
SLOW_SECONDS = 5.0
"""A log that does not come for so long is of a node that is gone, or cut off: a refusal comes at once."""
MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d")
"""Beginning of a line with its time, which is in UTC."""

Run = tuple[str, str]
"""Namespace and name."""


class Settings(Protocol):
    """What the settings of a program say of runs that stand still."""

    @property
    def hung_minutes(self) -> int | None:
        """After so long without a log line a run stands still; None: no run does."""
        ...

    @property
    def shell_label(self) -> str:
        """Label of pods in which somebody has a terminal: they may be silent."""
        ...


class Hangs:
    """Looks at logs now and then."""

    def __init__(
        self,
        api: Api,
        settings: Settings,
        pods: Callable[[Api], list[Object]] = training,
    ) -> None:
        """`pods`: lists those of runs that go on, and may list others: a program keeps one list of them."""
        self._api, self._settings, self._pods = api, settings, pods
        self._looked = -math.inf
        self._spoke: dict[Run, tuple[float, str]] = {}
        """Run → until when it cannot stand still, and uid of the pod that has logged a line."""
        self._deaf: set[str] = set()
        """Nodes that have not answered in this look: each question takes ten seconds."""

    def hung(self, now: float) -> dict[Run, list[Object]]:
        """Namespace and name of each run that stands still → its pods. `now`: in seconds of a clock
        that only counts on."""
        minutes = self._settings.hung_minutes
        if not minutes or now - self._looked < LOOK_SECONDS:
            return {}
        self._looked, self._deaf = now, set()
        found = gangs(pod for pod in self._pods(self._api) if self._must_log(pod))
        self._spoke = {run: spoke for run, spoke in self._spoke.items() if run in found}
        return {run: gang for run, gang in found.items() if self._silent(run, gang, minutes, now)}

    def _must_log(self, pod: Object) -> bool:
        return trains(pod) and self._settings.shell_label not in labels(pod)

    def _silent(self, run: Run, pods: list[Object], minutes: int, now: float) -> bool:
        """Whether all of them run that long, and none has logged anything. The kubelets count: of
        their own logs they know best how old they are."""
        seconds = minutes * 60
        if not all(_runs_for(pod) > seconds for pod in pods):
            return False
        until, last = self._spoke.get(run, (-math.inf, ""))
        if now < until and any(pod["metadata"]["uid"] == last for pod in pods):
            return False
        # Whoever spoke last is asked first, and for the younger half: with a line in it the run cannot
        # stand still before the other half has passed.
        pods = sorted(pods, key=lambda pod: pod["metadata"]["uid"] != last)
        for pod in pods:
            if line := self._log(pod, seconds // 2):
                if line != UNKNOWN:
                    self._spoke[run] = (now + seconds // 2, pod["metadata"]["uid"])
                return False
        return not any(self._log(pod, seconds) or self._draws(run, pod, now) for pod in pods)

    def _draws(self, run: Run, pod: Object, now: float) -> bool:
        """True where a pod may draw a bar of progress, or nobody can tell. A bar has no end of the line, and containerd
        writes a part of it each 16 KiB (containerd, internal/cri/io/logger.go: redirectLogs). The next part may take
        twice the time of the last one."""
        newest = self._ask(pod, tailLines=1, timestamps="true")
        found = MOMENT.match(newest)
        if not found or "\r" not in newest or newest.endswith("\n"):
            return newest == UNKNOWN
        before = MOMENT.match(self._ask(pod, tailLines=2, timestamps="true"))
        drawn = _seconds(f"{found[0]}Z")
        began = _seconds(f"{before[0]}Z") if before else drawn
        if began == drawn:  # the log has no other line
            began = int(time.time() - _runs_for(pod))
        left = 2 * (drawn - began) - (time.time() - drawn)
        if left > 0:
            self._spoke[run] = (now + left, pod["metadata"]["uid"])
        return left > 0

    def _log(self, pod: Object, seconds: int) -> str:
        """The last line of so many seconds; empty where there is none, and not where nobody can tell."""
        return self._ask(pod, sinceSeconds=seconds, tailLines=1)

    def _ask(self, pod: Object, **which: int | str) -> str:
        """Lines of a pod's log."""
        meta, node = pod["metadata"], pod["spec"].get("nodeName", "")
        if node in self._deaf:
            return UNKNOWN
        asked = time.monotonic()
        wanted = {"container": pod["spec"]["containers"][0]["name"], **which}
        line = self._api.text(
            f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/log"
            f"?{urllib.parse.urlencode(wanted)}",
            otherwise=UNKNOWN,
        )
        if line == UNKNOWN and time.monotonic() - asked > SLOW_SECONDS:
            self._deaf.add(node)
        return line


def _runs_for(pod: Object) -> float:
    """Seconds since the last of its containers started; below 0 where one does not run, or ends."""
    statuses = pod.get("status", {}).get("containerStatuses", [])
    starts = [each.get("state", {}).get("running", {}).get("startedAt") for each in statuses]
    if not starts or not all(starts) or pod["metadata"].get("deletionTimestamp"):
        return -1.0
    return time.time() - max(map(_seconds, starts))


def _seconds(moment: str) -> int:
    return calendar.timegm(time.strptime(moment, "%Y-%m-%dT%H:%M:%SZ"))


def words(run: str, pods: Iterable[Object], minutes: int) -> str:
    """What is said of a run that is started anew."""
    where: Mapping[str, str] = {
        pod["metadata"]["name"]: pod["spec"].get("nodeName", "?") for pod in pods
    }
    listed = ", ".join(f"{pod} on {node}" for pod, node in sorted(where.items()))
    return (
        f"{run} stands still: its pods run, and none has logged a line for {minutes} minutes; the gang"
        f" starts anew ({listed})"
    )
