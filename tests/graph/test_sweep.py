"""Runs of a sweep in the graph: who is made after whom, and the hooks that wait."""

from __future__ import annotations

from typing import Any

import pytest

from tests.graph.test_secrets import differ
from tests.support.graphs import environment
from tests.support.recording import Graph
from tests.trainyard.derive.test_sweep import tune

NAMES = ["tune-1", "tune-2", "tune-3", "tune-4"]


@pytest.fixture(scope="module")
def at_most_two() -> Graph:
    return environment(tune({"x": [1, 2, 3, 4]}, sweep={"at_most": 2}))


def hooks(graph: Graph, name: str) -> list[Any]:
    return [*graph[f"TrainJob {name}"].options.hooks.before_create]


def test_all_runs_are_made_at_once_where_nothing_else_is_said() -> None:
    graph = environment(tune({"x": [1, 2, 3, 4]}))
    made = [graph[f"TrainJob {name}"] for name in NAMES]
    assert not any(graph.waits_for(one, other) for one in made for other in made if one != other)
    assert hooks(graph, "tune-4") == hooks(graph, "t5-large")


def test_a_run_beyond_those_at_once_is_made_after_all_before_it(at_most_two: Graph) -> None:
    made = [at_most_two[f"TrainJob {name}"] for name in NAMES]
    first, second, third, fourth = made
    assert not at_most_two.waits_for(second, first)
    assert all(at_most_two.waits_for(third, each) for each in (first, second))
    assert all(at_most_two.waits_for(fourth, each) for each in (first, second, third))


def test_a_hook_waits_before_each_run_of_a_sweep_with_a_limit(at_most_two: Graph) -> None:
    """Before the first ones, too: others behind them may go on already."""
    assert [hooks(at_most_two, name)[0] for name in NAMES] == [f"{name}-turn" for name in NAMES]
    assert hooks(at_most_two, "tune-4")[1:] == hooks(at_most_two, "t5-large")
    unlimited = environment(tune({"x": [1, 2]}, sweep={"at_most": 2}))
    assert hooks(unlimited, "tune-1") == hooks(unlimited, "t5-large")


def test_the_output_of_a_run_repeats_the_entry_that_the_file_has(at_most_two: Graph) -> None:
    jobs = at_most_two.outputs["jobs"]
    assert jobs["tune-3"]["again"] == "trainyard again tune --stack dev, then pulumi up"
    assert jobs["t5-large"]["again"] == "trainyard again t5-large --stack dev, then pulumi up"


def test_a_sweep_changes_no_other_resource(at_most_two: Graph) -> None:
    new, changed = differ(environment(), at_most_two)
    assert {*NAMES} <= {each.split()[-1] for each in new} and changed == set()
