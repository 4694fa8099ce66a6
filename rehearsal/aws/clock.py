"""Time in the account: AWS's typical durations divided by the world's speed.

Nothing here runs by itself: what is due happens when the next request comes. A duration is changed
in trainyard/catalog/aws/latencies.py, or below for what only AWS itself waits for.
"""

from __future__ import annotations

import heapq
import itertools
import time
from collections.abc import Callable

from rehearsal import paths
from trainyard.catalog.aws.latencies import TYPICAL

_ALSO: dict[str, float] = {
    "aps.workspace": 10,
    "eks.update": 60,
    "eks.cluster.upgrade": 434,
    "eks.nodegroup.upgrade": 402,
    "eks.nodegroup.timeout": 1800,
    "eks.addon.timeout": 1200,
    "sqs.queue.deleted": 60,
    "ec2.interface-endpoint.delete": 60,
    "ec2.spot-warning": 120,
    "ec2.block-warning": 600,
}
"""Seconds. Timeouts are from EKS's user guide, warnings from EC2's. The upgrade times are from a public
record of upgrades in somebody else's account (2026-09-23: 1.34 to 1.35, a node group of one node). The
rest is an order of magnitude."""

PATIENCE = 60.0
"""Real seconds that what happens for real always has, however fast the clock runs: nodes join, pods
start."""


class Clock:
    """Clock of the account, with what is to happen at which time."""

    def __init__(self) -> None:
        self._due: list[tuple[float, int, Callable[[], None], Callable[[], bool]]] = []
        self._order = itertools.count()
        self._speed: float | None = None

    def seconds(self, what: str) -> float:
        """Seconds that something of AWS takes in this world."""
        self._speed = self._speed or paths.world().speed
        return (TYPICAL | _ALSO)[what] / self._speed

    def later(
        self, what: str, action: Callable[[], None], *, ready: Callable[[], bool] = lambda: True
    ) -> None:
        """Do it after the time `what` takes, and not before it is ready."""
        self.at(time.time() + self.seconds(what), action, ready=ready)

    def at(
        self, when: float, action: Callable[[], None], *, ready: Callable[[], bool] = lambda: True
    ) -> None:
        """Do it at that second of the Unix clock."""
        heapq.heappush(self._due, (when, next(self._order), action, ready))

    def deadline(self, what: str) -> float:
        """Time at which to give up waiting for something real, in Unix seconds."""
        return time.time() + max(PATIENCE, self.seconds(what))

    def settle(self) -> None:
        """Let everything happen that is due and ready."""
        due = []
        while self._due and self._due[0][0] <= time.time():
            due.append(heapq.heappop(self._due))
        for entry in due:
            if entry[3]():
                entry[2]()
            else:
                heapq.heappush(self._due, entry)

    def forget(self) -> None:
        """Nothing is to happen any more."""
        self._due, self._speed = [], None


CLOCK = Clock()
