from __future__ import annotations

import pytest

from benchmarks.destroy import TAKES, of_graph, of_levels
from trainyard.catalog.aws.latencies import TYPICAL

SECONDS = {"cluster": 150.0, "nodes": 250.0, "files": 200.0}


def resource(kind: str, *needs: str, **more: str) -> dict[str, object]:
    return {
        "urn": f"urn::{kind}",
        "type": kind,
        "dependencies": [f"urn::{n}" for n in needs],
        **more,
    }


NETWORK = resource("network")
STATE = [NETWORK, resource("files", "network"), resource("cluster", "network")]


def test_nothing_takes_no_time() -> None:
    assert of_graph([], SECONDS) == of_levels([], SECONDS) == 0.0


def test_a_resource_goes_after_all_that_need_it_and_beside_the_others() -> None:
    state = [*STATE, resource("nodes", "cluster")]
    assert of_graph(state, SECONDS) == 400.0


def test_pulumi_waits_for_a_whole_level_before_the_next() -> None:
    """The files have the level of the cluster, and begin when the nodes are gone."""
    state = [*STATE, resource("nodes", "cluster")]
    assert of_levels(state, SECONDS) == 450.0


@pytest.mark.parametrize("edge", ["parent", "provider"])
def test_parents_and_providers_outlive_what_is_theirs(edge: str) -> None:
    whose = {edge: "urn::cluster" if edge == "parent" else "urn::cluster::id"}
    state = [*STATE, resource("nodes", **whose)]
    assert of_graph(state, SECONDS) == 400.0
    assert of_levels(state, SECONDS) == 450.0


def test_every_time_is_one_of_the_catalogue() -> None:
    assert {*TAKES.values()} <= {*TYPICAL}
