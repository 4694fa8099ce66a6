"""Things that go wrong on purpose: set by POST /_world/faults, gone when they have happened `count` times."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from typing import Any

from rehearsal.account.operations import Call, Refused

KINDS = ("throttle", "lose-answer", "error", "no-capacity", "delay")
_THROTTLED = {"ec2": "RequestLimitExceeded", "iam": "Throttling", "sts": "Throttling"}


@dataclass(kw_only=True)
class Fault:
    """One thing that will go wrong. Empty fields mean any; service and action may hold wildcards."""

    kind: str
    service: str = "*"
    action: str = "*"
    zone: str = ""
    instance_type: str = ""
    count: int = 1
    """How often it happens still; below zero for ever."""
    seconds: float = 1.0
    code: str = "InternalFailure"
    """AWS's error code, for `error`."""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"no fault of kind {self.kind!r}: {', '.join(KINDS)}")

    def hits(self, call: Call) -> bool:
        return fnmatchcase(call.prefix, self.service) and fnmatchcase(call.action, self.action)


class Faults:
    """What will go wrong."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []

    def add(self, fields: dict[str, Any]) -> None:
        """ValueError or TypeError where that is no fault."""
        self._faults.append(Fault(**fields))

    def list(self) -> list[dict[str, Any]]:
        return [asdict(fault) for fault in self._faults]

    def clear(self) -> None:
        self._faults = []

    def before(self, call: Call) -> None:
        """Delay the call, or refuse it as an AWS under load would."""
        for fault in self._of(call, "delay"):
            time.sleep(fault.seconds)
        for _ in self._of(call, "throttle"):
            raise Refused(_THROTTLED.get(call.service, "ThrottlingException"), "Rate exceeded", status=400)
        for fault in self._of(call, "error"):
            raise Refused(fault.code, f"injected into {call.name}", status=500)

    def loses_answer(self, call: Call) -> bool:
        """Whether the caller is not to learn that it worked."""
        return any(True for _ in self._of(call, "lose-answer"))

    def no_capacity(self, instance_type: str, zone: str) -> bool:
        """Whether AWS has none of these now."""
        for fault in self._faults:
            if (fault.kind == "no-capacity" and fault.instance_type in ("", instance_type)
                    and fault.zone in ("", zone)):
                self._happened(fault)
                return True
        return False

    def _of(self, call: Call, kind: str) -> Iterator[Fault]:
        for fault in [fault for fault in self._faults if fault.kind == kind and fault.hits(call)]:
            self._happened(fault)
            yield fault

    def _happened(self, fault: Fault) -> None:
        if fault.count > 0:
            fault.count -= 1
        if fault.count == 0:
            self._faults.remove(fault)


FAULTS = Faults()
