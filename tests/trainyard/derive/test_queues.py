"""What teams get of pools."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.stackfile import at
from tests.support.teams import both, by_name, checkout, environment_of, team_of, with_queues


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


@pytest.mark.parametrize(("most", "at_once"), [({}, 4), ({"g6e": 3}, 3)])
def test_a_team_runs_no_more_jobs_at_once_than_its_queue_gives_it_nodes(
    tmp_path: Path, most: dict[str, int], at_once: int
) -> None:
    """The pool holds four jobs of one node."""

    def limited(settings: dict[str, Any]) -> None:
        with_queues(settings)
        settings["teams"]["vision"]["max_nodes"] = most

    team = team_of(checkout(tmp_path, limited, both(by_name, at("jobs.vit-base.nodes", 1))))
    assert team.at_once == {"vit-base": at_once}
