"""Reservations of capacity that the pools of a stack file name: no destroy ends them, and each costs money until
somebody cancels it. A Capacity Block is paid already, and ends by itself: another stack can use the rest of it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

from trainyard.derive.pools import PoolUse
from trainyard.operations.reach.stack import plan_of
from trainyard.plan import EnvironmentPlan
from trainyard.reports.costs.lines import HOURS


def reservations(stack: str, folder: Path = Path()) -> list[str]:
    """A line for each reservation; none where the folder has no stack file without errors, or where it is one of a
    team: a team has no reservations."""
    plan = plan_of(stack, folder)
    return [*_lines(plan)] if isinstance(plan, EnvironmentPlan) else []


def _lines(plan: EnvironmentPlan) -> Iterator[str]:
    region = plan.identity.region
    for name, pool in plan.pools.items():
        use = plan.capacity[name]
        if use.capacity == "block" and pool.reservation_id:
            yield (
                f"Capacity Block {pool.reservation_id} of pool {name} is paid{_until(use)}, and no destroy gives money"
                " back: another stack of its zone can name it"
            )
        if use.capacity != "reservation" or pool.reservation_id is None:
            continue
        kind = use.instance_types[0]
        found = plan.prices.price("ec2", kind, region)
        cost = "money"
        if found:
            cost = f"about ${found.usd * HOURS * use.reserved_nodes:,.0f}/month"
        yield (
            f"no destroy ends reservation {pool.reservation_id} of pool {name}: {use.reserved_nodes} x {kind} cost"
            f" {cost}, used or not. To end it: aws ec2 cancel-capacity-reservation --capacity-reservation-id"
            f" {pool.reservation_id} --region {region}"
        )


def _until(use: PoolUse) -> str:
    """The end of a Capacity Block, for the middle of a sentence; empty where its start or its hours are open."""
    if use.starts is None or use.reserved_hours is None:
        return ""
    return f" until {use.starts + timedelta(hours=use.reserved_hours):%Y-%m-%d %H:%M} UTC"
