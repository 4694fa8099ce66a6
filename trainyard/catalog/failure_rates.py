"""Failure rates of fleets of GPU nodes, from which the time between failures of a job follows.

Gathered on 2026-11-20 from what the fleets published; each row names its source.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Fleet:
    """Failures of one fleet."""

    name: str
    per_1000_node_days: float | None
    """Failures that ended a job, nodes of 8 GPUs; None where they were not counted so."""
    note: str
    source: str


FLEETS: tuple[Fleet, ...] = (
    Fleet(
        name="Meta RSC",
        per_1000_node_days=6.5,
        source="arXiv 2410.21680",
        note=(
            "jobs of 1024 GPUs failed every 7.9 h, 3.7 times as often as this rate says: it is no"
            " upper bound"
        ),
    ),
    Fleet(
        name="Llama 3 405B",
        per_1000_node_days=3.8,
        source="arXiv 2407.21783, table 5",
        note="419 unexpected interruptions in 54 days on 16,384 H100: one in 3.1 h",
    ),
    Fleet(
        name="OPT-175B",
        per_1000_node_days=None,
        source="its logbook, at second hand",
        note="about 90 restarts in 33 days on 1024 A100; some two machines lost a day",
    ),
    Fleet(
        name="BLOOM-176B",
        per_1000_node_days=None,
        source="at second hand: no first-party figure was read",
        note="one or two GPU failures a week on 384 A100; single incidents cost 7 to 18 h",
    ),
)

FAILURES_PER_1000_NODE_DAYS = max(
    fleet.per_1000_node_days for fleet in FLEETS if fleet.per_1000_node_days
)
"""The failure rate that a plan uses: the worse of the two fleets that were counted by node."""

SPOT_INTERRUPTIONS_PER_NODE_MONTH = 0.20
"""Share of spot nodes of p5 and g6e that AWS takes back within a month: 15 to 20 % (hearsay of
2026-11, no figure of AWS's own); the worse end."""
SPOT_INTERRUPTIONS_PER_1000_NODE_DAYS = SPOT_INTERRUPTIONS_PER_NODE_MONTH / (730 / 24) * 1000
"""Comes on top of failures."""


OTHER_STOPS_A_DAY = 1.0
"""Stops of one job in a day that no hardware causes: bugs, hangs, drains, updates, people. A choice of ours
from what teams say; no fleet that was read counts them. It does not grow with the nodes: a job of one node
stops for its script as often as a large one."""


def failure_rate(*, spot: bool, nodes: int = 1, other_stops_a_day: float = 0) -> float:
    """Stops per 1000 node-days that a plan counts with; AWS taking back a spot node ends a job as a failure
    does. `other_stops_a_day`: those of the whole job that no hardware causes."""
    hardware = FAILURES_PER_1000_NODE_DAYS + (SPOT_INTERRUPTIONS_PER_1000_NODE_DAYS if spot else 0)
    return hardware + other_stops_a_day * 1000 / nodes
