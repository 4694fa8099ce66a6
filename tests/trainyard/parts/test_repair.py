"""What `trainyard plan` says of nodes that break."""

from __future__ import annotations

from tests.support.stackfile import at, environment_plan, team_plan
from trainyard.reports import plan


def test_a_stack_without_repair_says_nothing_of_it() -> None:
    assert all("broken node" not in plan.text(each) for each in (environment_plan(), team_plan()))


def test_every_pool_says_how_many_nodes_are_replaced_in_an_hour() -> None:
    said = plan.text(environment_plan(at("repair", {}), at("pools.g6e.max_nodes", 16)))
    assert "  g6e     16     at most 4" in said and "  h100    2      at most 1" in said
    words = " ".join(said.split())
    assert "a broken node leaves after 15 s, a silent one when EC2 calls its instance dead" in words
    assert "or after 5 minutes" in words and "repair.hung_minutes starts it anew" in words


def test_a_limit_and_runs_that_stand_still_are_those_of_the_stack_file() -> None:
    said = plan.text(environment_plan(at("repair", {"nodes_an_hour": 3, "hung_minutes": 20})))
    assert "  g6e     4      at most 3" in said
    assert "logs nothing for 20 minutes starts anew" in " ".join(said.split())
