"""Notices, as events of EventBridge, that AWS sends before it takes an instance away."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rehearsal.aws import backends, instances, services
from rehearsal.aws.clock import CLOCK
from rehearsal.aws.operations import Fields, refuse

LEAST_SECONDS = 30.0
"""Real seconds that are left after a notice, however fast the clock runs: Karpenter, the program of
repair and the pods, which it gives time to end, are real."""


@dataclass(frozen=True, kw_only=True)
class Notice:
    """One kind of announcement."""

    detail_type: str
    detail: Callable[[str], Fields]
    """Id of the instance → what the event says."""
    source: str = "aws.ec2"
    only: str = ""
    """Lifecycle of the instances that get it; empty: all."""
    ends: str = ""
    """The clock's name of the time until the instance ends; empty: AWS does not end it soon."""


NOTICES: dict[str, Notice] = {
    "spot": Notice(
        detail_type="EC2 Spot Instance Interruption Warning",
        detail=lambda id_: {"instance-id": id_, "instance-action": "terminate"},
        only="spot",
        ends="ec2.spot-warning",
    ),
    "rebalance": Notice(
        detail_type="EC2 Instance Rebalance Recommendation",
        detail=lambda id_: {"instance-id": id_},
        only="spot",
    ),
    "reservation": Notice(
        detail_type="EC2 Capacity Reservation Instance Interruption Warning",
        detail=lambda id_: {
            "instance-id": id_,
            "instance-action": "terminate",
            "instance-lifecycle": "capacity-block",
        },
        only="capacity-block",
        ends="ec2.block-warning",
    ),
    "health": Notice(
        source="aws.health",
        detail_type="AWS Health Event",
        detail=lambda id_: {
            "service": "EC2",
            "eventTypeCategory": "scheduledChange",
            "eventTypeCode": "AWS_EC2_INSTANCE_RETIREMENT_SCHEDULED",
            "affectedEntities": [{"entityValue": id_}],
        },
    ),
}
"""Name → notice. Texts: the user guides of EC2 (Spot interruption notices, rebalance recommendations,
monitoring of Capacity Blocks) and of AWS Health (EventBridge schema)."""


def send(instance: Any, name: str) -> None:
    """Announce it, and end the instance when AWS does. Refused where AWS sends no such notice."""
    notice = NOTICES[name]
    lifecycle = instance.lifecycle or "on-demand"
    refuse(
        notice.only not in ("", lifecycle),
        "InvalidInstance",
        f"AWS sends the notice `{name}` for {notice.only} instances; {instance.id} is {lifecycle}",
    )
    region = instance.region_name
    arn = f"arn:aws:ec2:{region}:{backends.ACCOUNT}:instance/{instance.id}"
    services.emit(region, notice.detail_type, arn, notice.detail(instance.id), source=notice.source)
    if notice.ends:
        CLOCK.at(
            time.time() + max(LEAST_SECONDS, CLOCK.seconds(notice.ends)),
            lambda: instances.vanish(instance),
        )
