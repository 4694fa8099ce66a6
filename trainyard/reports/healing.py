"""What `trainyard plan` says of nodes that break: how fast they are replaced, and how many of each pool."""

from __future__ import annotations

import math

from trainyard import command_line
from trainyard.catalog.repair import FOUND_SECONDS, PATIENCE_SECONDS, SHARE
from trainyard.plan import EnvironmentPlan, TeamPlan


def healing(plan: EnvironmentPlan | TeamPlan) -> list[str]:
    """What an environment with `repair` says of broken nodes. It is in the price of the nodes."""
    if isinstance(plan, TeamPlan) or plan.repair is None:
        return []
    limit, hung = plan.repair.nodes_an_hour, plan.repair.hung_minutes
    rows = [("repair", "nodes", "replaced in an hour")]
    rows += [
        (name, str(use.max_nodes), f"at most {limit or max(1, math.ceil(SHARE * use.max_nodes))}")
        for name, use in plan.capacity.items()
    ]
    note = (
        f"a broken node leaves after {FOUND_SECONDS} s, a silent one when EC2 calls its instance dead, or"
        f" after {PATIENCE_SECONDS // 60} minutes; its gangs start anew on a warm spare or wait for a new"
        " node; a run that "
        + (
            f"logs nothing for {hung} minutes starts anew"
            if hung
            else "hangs is told, and goes on: repair.hung_minutes starts it anew"
        )
    )
    return [*command_line.table(rows), *command_line.wrapped(note)]
