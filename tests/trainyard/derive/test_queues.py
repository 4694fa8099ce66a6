"""What teams get of pools."""

from __future__ import annotations

from pathlib import Path

from tests.support.stackfile import at
from tests.support.teams import both, checkout, environment_of, with_queues


def test_a_team_gets_all_nodes_but_those_that_others_keep(tmp_path: Path) -> None:
    """Of 4 nodes vision keeps 1 and nlp keeps 1; audio lends its guaranteed one."""
    teams = {
        "vision": {"guaranteed_nodes": {"g6e": 1}, "lends_nodes": False},
        "nlp": {"guaranteed_nodes": {"g6e": 1}, "lends_nodes": False},
        "audio": {"guaranteed_nodes": {"g6e": 1}},
    }
    role = "arn:aws:iam::111122223333:role"
    entries = {name: {"deployer": f"{role}/{name}", **entry} for name, entry in teams.items()}
    folder = checkout(tmp_path, both(with_queues, at("teams", entries)), lambda team: None)
    possible = {
        name: {share.pool: share.possible for share in plan.queue.shares}
        for name, plan in environment_of(folder).teams.items()
        if plan.queue
    }
    assert possible == {
        "vision": {"g6e": 3, "h100": 2},
        "nlp": {"g6e": 3, "h100": 2},
        "audio": {"g6e": 2, "h100": 2},
    }
