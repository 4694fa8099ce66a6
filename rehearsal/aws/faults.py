"""Things that go wrong on purpose: set by POST /_world/faults, gone when they have happened `count`
times."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from rehearsal.aws.operations import Call, Refused

KINDS = ("throttle", "lose-answer", "error", "no-capacity", "delay")
_THROTTLED = {"ec2": "RequestLimitExceeded", "iam": "Throttling", "sts": "Throttling"}


@dataclass(kw_only=True)
class Fault:
    """One thing that will go wrong. Empty fields mean any; service and action may hold
    wildcards."""

    kind: str
    service: str = "*"
    action: str = "*"
    zone: str = ""
    instance_type: str = ""
    count: int = 1
    """Number of times that the fault still happens; below zero: for ever."""
    available: int | None = None
    """Instances that no-capacity still leaves; the fault then lasts until it is cleared."""
    seconds: float = 1.0
    code: str = "InternalFailure"
    """AWS's error code, for `error`."""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"no fault of kind {self.kind!r}: {', '.join(KINDS)}")
        self.count = self.count if self.available is None else -1


class Faults(list[Fault]):
    """List of the faults that will happen."""

    def before(self, call: Call) -> None:
        """Delay the call, or refuse it as an AWS under load would."""
        for fault in self._of("delay", call):
            time.sleep(fault.seconds)
        for _ in self._of("throttle", call):
            raise Refused(
                _THROTTLED.get(call.service, "ThrottlingException"), "Rate exceeded", status=400
            )
        for fault in self._of("error", call):
            raise Refused(fault.code, f"injected into {call.name}", status=500)

    def loses_answer(self, call: Call) -> bool:
        """True where the caller shall not learn that the call worked."""
        return any(True for _ in self._of("lose-answer", call))

    def no_capacity(self, instance_type: str, zone: str) -> bool:
        """True where AWS has no such instance now. Else it has one less from now on."""
        for fault in self._happening(
            "no-capacity",
            lambda fault: fault.instance_type in ("", instance_type) and fault.zone in ("", zone),
        ):
            if not fault.available:
                return True
            fault.available -= 1
        return False

    def _of(self, kind: str, call: Call) -> Iterator[Fault]:
        return self._happening(
            kind,
            lambda fault: (
                fnmatchcase(call.prefix, fault.service) and fnmatchcase(call.action, fault.action)
            ),
        )

    def _happening(self, kind: str, hits: Any) -> Iterator[Fault]:
        for fault in [fault for fault in self if fault.kind == kind and hits(fault)]:
            fault.count -= fault.count > 0
            if fault.count == 0:
                self.remove(fault)
            yield fault


FAULTS = Faults()
