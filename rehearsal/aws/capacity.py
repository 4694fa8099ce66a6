"""Where instances may stand, and what is kept for them: placement groups, capacity reservations,
Capacity Blocks.

Nobody reserves or buys through the program: POST /_world/faults of kind `reserve` plants it. A
launch that targets a reservation uses it up, no other touches it, and it begins and ends by the
real clock, which Karpenter goes by too.
https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/capacity-blocks-launch.html (2026-11-21)
"""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import import_module
from typing import Any

from rehearsal.aws import backends
from rehearsal.aws.operations import Call, Fields, NotBuilt, Refused, answers, refuse, refuses

RECLAIMED = 30 * 60
"""Seconds before the end of a Capacity Block at which EC2 begins to terminate its instances (user guide)."""
_Tagged: Any = import_module("moto.ec2.models.core").TaggedEC2Resource
"""moto's base of things with tags, which filters and shows them by their attributes."""
_moto: Any = import_module("moto.ec2.utils")
_moto.EC2_RESOURCE_TO_PREFIX.update({"placement-group": "pg", "capacity-reservation": "cr"})


@dataclass(kw_only=True, eq=False)
class Group(_Tagged):
    """A cluster placement group."""

    ec2_backend: Any
    id: str
    name: str
    strategy: str = "cluster"
    state: str = "available"

    @property
    def arn(self) -> str:
        return f"arn:aws:ec2:{self.ec2_backend.region_name}:{backends.ACCOUNT}:placement-group/{self.name}"

    def in_use(self) -> bool:
        return any(
            one.placement.group_name == self.name and one.state != "terminated"
            for one in self.ec2_backend.all_instances()
        )


@dataclass(kw_only=True, eq=False)
class CapacityReservation(_Tagged):
    """A targeted On-Demand Capacity Reservation, or a Capacity Block; fields as EC2 names them."""

    ec2_backend: Any
    id: str
    instance_type: str
    availability_zone: str
    availability_zone_id: str
    total_instance_count: int
    start_date: datetime
    end_date: datetime | None
    reservation_type: str
    placement_group_arn: str | None
    """Placement group the reservation was created in."""
    owner_id: str = backends.ACCOUNT
    instance_platform: str = "Linux/UNIX"
    instance_match_criteria: str = "targeted"

    @property
    def state(self) -> str:
        now = datetime.now(UTC)
        ended = self.end_date and now >= self.end_date
        return "scheduled" if now < self.start_date else "expired" if ended else "active"

    @property
    def is_block(self) -> bool:
        return self.reservation_type == "capacity-block"

    @property
    def gives_until(self) -> float:
        """Unix seconds at which the reservation has no instances any more: they are terminated or,
        without a block, not reserved."""
        return (
            self.end_date.timestamp() - (RECLAIMED if self.is_block else 0)
            if self.end_date
            else float("inf")
        )

    @property
    def available_instance_count(self) -> int:
        gives = self.state == "active" and time.time() < self.gives_until
        return self.total_instance_count - len(self.users()) if gives else 0

    def users(self) -> list[Any]:
        """Its instances: they hold their place until they are terminated, shutting down is not enough."""
        return [
            one
            for one in self.ec2_backend.all_instances()
            if getattr(one, "capacity_reservation_id", None) == self.id
            and one.state != "terminated"
        ]


def groups(ec2: Any) -> dict[str, Group]:
    """Placement groups by name, kept with moto's own things."""
    return vars(ec2).setdefault("placement_groups", {})


def _reservations(ec2: Any) -> dict[str, CapacityReservation]:
    return vars(ec2).setdefault("capacity_reservations", {})


def create_reservation(
    *,
    id: str,
    instance_type: str,
    zone: str,
    instances: int,
    block: bool = False,
    starts: str = "",
    ends: str = "",
    placement_group: str = "",
    tags: Fields | None = None,
) -> CapacityReservation:
    """Somebody reserves or buys this. Times are ISO 8601 with a time zone; without a start it is active now."""
    ec2 = backends.ec2(zone[:-1])
    zone_id = _zone_id(ec2, zone)
    start_date, end_date = _time(starts), _time(ends)
    if not zone_id or instance_type not in backends.instance_types() or (block and not end_date):
        raise ValueError("want a zone and an instance type that exist, and the end of a block")
    reservation = _reservations(ec2)[id] = CapacityReservation(
        ec2_backend=ec2,
        id=id,
        instance_type=instance_type,
        availability_zone=zone,
        availability_zone_id=zone_id,
        total_instance_count=instances,
        start_date=start_date or datetime.now(UTC),
        end_date=end_date,
        reservation_type="capacity-block" if block else "default",
        placement_group_arn=(
            Group(ec2_backend=ec2, id="", name=placement_group).arn if placement_group else None
        ),
    )
    reservation.add_tags(tags or {})
    return reservation


def _zone_id(ec2: Any, zone: str) -> str:
    """The id of a zone of the region; empty where there is no such zone."""
    zones = ec2.describe_availability_zones()
    return next((one.zone_id for one in zones if one.name == zone), "")


def _time(text: str) -> datetime | None:
    """A time of ISO 8601; None where the text is empty."""
    if not text:
        return None
    time_of_day = datetime.fromisoformat(text)
    if time_of_day.tzinfo is None:
        raise ValueError("want times with a time zone: 2026-12-01T11:30:00Z")
    return time_of_day


def _asked(call: Call, things: list[Any], *names: str) -> list[Any]:
    """Things that have one of the ids or names, if the call gives any, and pass the filters."""
    wanted = {name for field in names for name in call[field] or ()}
    filters = {one["Name"]: one["Values"] for one in call["Filters"] or ()}
    named = [one for one in things if not wanted or wanted & {one.id, getattr(one, "name", one.id)}]
    return _moto.generic_filter(filters, named)


refuses(
    "ec2",
    "CreatePlacementGroup",
    "InvalidPlacementGroup.Duplicate",
    "The Placement Group '{GroupName}' already exists.",
    lambda call: call["GroupName"] in groups(call.ec2),
)
refuses(
    "ec2",
    "DescribePlacementGroups DeletePlacementGroup",
    "InvalidPlacementGroup.Unknown",
    "The Placement Group '{hit}' is unknown.",
    lambda call: ", ".join(
        {*(call["GroupNames"] or ()), *(call["GroupIds"] or ()), call["GroupName"] or ""}
        - {"", *groups(call.ec2), *(one.id for one in groups(call.ec2).values())}
    ),
)
refuses(
    "ec2",
    "DeletePlacementGroup",
    "InvalidPlacementGroup.InUse",
    "The placement group '{GroupName}' is in use and may not be deleted.",
    lambda call: groups(call.ec2)[call["GroupName"]].in_use(),
)
refuses(
    "ec2",
    "DescribeCapacityReservations",
    "InvalidCapacityReservationId.NotFound",
    "The capacity reservation '{hit}' does not exist",
    lambda call: ", ".join({*(call["CapacityReservationIds"] or ())} - {*_reservations(call.ec2)}),
)


@answers("ec2", "CreatePlacementGroup")
def _create_group(call: Call) -> Fields:
    if call["Strategy"] != "cluster":
        raise NotBuilt(f"placement groups of the strategy {call['Strategy']}")
    made = Group(ec2_backend=call.ec2, id=f"pg-0{secrets.token_hex(8)}", name=call["GroupName"])
    made.add_tags(
        {tag["Key"]: tag["Value"] for one in call["TagSpecifications"] or () for tag in one["Tags"]}
    )
    groups(call.ec2)[made.name] = made
    return {"PlacementGroup": made}


@answers("ec2", "DeletePlacementGroup")
def _delete_group(call: Call) -> Fields:
    del groups(call.ec2)[call["GroupName"]]
    return {}


answers("ec2", "DescribePlacementGroups")(
    lambda call: {
        "PlacementGroups": _asked(call, list(groups(call.ec2).values()), "GroupNames", "GroupIds")
    }
)
answers("ec2", "DescribeCapacityReservations")(
    lambda call: {
        "CapacityReservations": _asked(
            call, list(_reservations(call.ec2).values()), "CapacityReservationIds"
        )
    }
)


def group_of(ec2: Any, data: Fields) -> Group | None:
    """The placement group that launch template data names; Refused where it is unknown."""
    placement = data.get("Placement") or {}
    wanted = placement.get("GroupName") or placement.get("GroupId")
    found = next((one for one in groups(ec2).values() if wanted in (one.name, one.id)), None)
    refuse(
        wanted and not found,
        "InvalidPlacementGroup.Unknown",
        f"The Placement Group '{wanted}' is unknown.",
    )
    return found


def reserved(ec2: Any, data: Fields, zone: str) -> CapacityReservation | None:
    """The reservation that launch template data targets, if any; Refused where it cannot give an instance."""
    wanted, group = data.get("CapacityReservationSpecification") or {}, group_of(ec2, data)
    id_ = (wanted.get("CapacityReservationTarget") or {}).get("CapacityReservationId")
    if not id_:
        refuse(
            wanted.get("CapacityReservationPreference") == "capacity-reservations-only",
            "InsufficientInstanceCapacity",
            "There is no open capacity reservation that matches.",
        )
        return None
    found = _reservations(ec2).get(id_)
    if found is None:
        raise Refused(
            "InvalidCapacityReservationId.NotFound",
            f"The capacity reservation '{id_}' does not exist",
        )
    market = (data.get("InstanceMarketOptions") or {}).get("MarketType") == "capacity-block"
    fits = (found.instance_type, found.availability_zone, found.is_block) == (
        data["InstanceType"],
        zone,
        market,
    )
    refuse(
        not fits or found.available_instance_count < 1,
        "ReservationCapacityExceeded",
        "The requested reservation "
        "does not have sufficient compatible and available capacity for this request.",
    )
    refuse(
        found.placement_group_arn != (group.arn if group else None),
        "InsufficientInstanceCapacity",
        "The reservation was made in another placement group, or in none:"
        f" {found.placement_group_arn}.",
    )
    return found
