"""Statuses that EC2 tells of instances: their state, and its status checks.

Source: EC2 user guide, monitoring-system-instance-status-check: EC2 checks an instance that runs each
minute. How long it takes until an instance that died is `impaired` is said nowhere: two checks must fail, and
what people write is two or three minutes. An instance whose kubelet alone is dead passes: its system answers.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from rehearsal.aws.operations import Call, Fields, NotBuilt, answers, follows

CHECK_SECONDS = 150.0
"""Real seconds from the death of a machine to the failed check, and from a launch to the first that passes,
however fast the clock runs: the leases of kubelets, and the programs that look at both, are real."""
FILTERS: dict[str, Callable[[Fields], str]] = {
    "event.code": lambda _: "",
    "instance-state-name": lambda view: view["InstanceState"]["Name"],
    "instance-status.status": lambda view: view["InstanceStatus"]["Status"],
    "system-status.status": lambda view: view["SystemStatus"]["Status"],
}
"""Name of a filter → what it looks at. No instance has scheduled events."""
DETAILS = {"ok": "passed", "impaired": "failed", "initializing": "initializing"}
"""Status of a check → that of its only detail."""
_DIED: dict[str, float] = {}
"""Instance → when its machine died, in seconds of the Unix clock."""


def died(instance: Any) -> None:
    """The machine of an instance that runs is dead: nothing of it answers any more."""
    _DIED.setdefault(instance.id, time.time())


@follows("ec2", "StopInstances")
def _stopped(call: Call, _: Fields) -> None:
    """A machine that is started again lives."""
    for id_ in call["InstanceIds"]:
        _DIED.pop(id_, None)


@answers("ec2", "DescribeInstanceStatus")
def _describe(call: Call) -> Fields:
    found = (
        call.ec2.get_multi_instances_by_id(call["InstanceIds"])
        if call["InstanceIds"]
        else call.ec2.all_instances()
    )
    views = [_view(one) for one in found if call["IncludeAllInstances"] or one.state == "running"]
    for wanted in call["Filters"] or ():
        look = FILTERS.get(wanted["Name"])
        if look is None:
            raise NotBuilt(f"the filter {wanted['Name']} of {call.name}")
        views = [view for view in views if look(view) in wanted["Values"]]
    return {"InstanceStatuses": views}


def _view(instance: Any) -> Fields:
    return {
        "InstanceId": instance.id,
        "AvailabilityZone": instance.placement.zone,
        "InstanceState": {"Code": instance._state.code, "Name": instance.state},
        "InstanceStatus": _check(instance, _DIED.get(instance.id)),
        "SystemStatus": _check(instance, None),
    }


def _check(instance: Any, since: float | None) -> Fields:
    """One check. `since`: when what it checks died."""
    if instance.state != "running":
        return {"Status": "not-applicable"}
    now = time.time()
    status = "ok" if now - _launched(instance) >= CHECK_SECONDS else "initializing"
    failed = since + CHECK_SECONDS if since is not None else now
    if failed < now:
        status = "impaired"
    moment = {"ImpairedSince": datetime.fromtimestamp(failed, UTC)} if status == "impaired" else {}
    return {
        "Status": status,
        "Details": [{"Name": "reachability", "Status": DETAILS[status], **moment}],
    }


def _launched(instance: Any) -> float:
    launched = instance.launch_time
    moment = launched if isinstance(launched, datetime) else datetime.fromisoformat(launched)
    return moment.replace(tzinfo=moment.tzinfo or UTC).timestamp()
