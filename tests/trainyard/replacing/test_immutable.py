"""What no update can change in objects that are deployed."""

from __future__ import annotations

import pytest

from tests.support.deployed import deployed
from tests.support.graphs import environment
from tests.support.stackfile import Edit, at, environment_plan
from tests.support.teams import with_queues
from trainyard.replacing.immutable import FLAVOR, NODE_POOL, immutable_errors

STATIC = at("pools.h100", {"instance_types": ["p5.48xlarge"], "max_nodes": 3, "replicas": 2})
DYNAMIC = at("pools.h100", {"instance_types": ["p5.48xlarge"], "max_nodes": 3})
KEPT = (at("pools.h100.replicas", 2), at("pools.g6e.replicas", 4))
NEAR = (with_queues, at("queues.topology", "preferred"), *KEPT)


def _said(before: tuple[Edit, ...], after: tuple[Edit, ...]) -> list[str]:
    return [*map(str, immutable_errors(environment_plan(*after), deployed(environment(*before))))]


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        (
            DYNAMIC,
            STATIC,
            "environment.pools.h100.replicas: must not be set later: Karpenter refuses it; got 2."
            " Fix: delete it",
        ),
        (
            STATIC,
            DYNAMIC,
            "environment.pools.h100.replicas: must stay set: Karpenter refuses a pool that had"
            " replicas and has none; got nothing. Fix: write 2 again",
        ),
    ],
)
def test_a_pool_has_replicas_from_its_first_day_or_never(
    before: Edit, after: Edit, says: str
) -> None:
    [error] = _said((before,), (after,))
    assert error.startswith(says)
    assert error.endswith(
        "; otherwise add a pool of another name, and delete h100 in a later update"
    )


def test_queues_keep_their_topology() -> None:
    far = (with_queues, *KEPT)
    [error] = _said(NEAR, far)
    assert error.startswith("environment.queues.topology: must stay preferred")
    assert not _said(far, NEAR), "Kueue takes one that comes later"


def test_nothing_is_said_of_what_stays_is_new_or_goes() -> None:
    grown = at("pools.h100", {"instance_types": ["p5.48xlarge"], "max_nodes": 4, "replicas": 3})
    assert not _said((STATIC,), (grown,))
    new = at("pools.more", {"instance_types": ["p5.48xlarge"], "max_nodes": 1, "replicas": 1})
    assert not _said((STATIC,), (STATIC, new))
    assert not _said(NEAR, KEPT), "with the queues the flavors go"


def test_the_graph_has_what_the_rules_look_at() -> None:
    graph = environment(*NEAR)
    assert graph[f"{NODE_POOL} h100-pool"].inputs["spec"]["replicas"] == 2
    assert graph[f"{FLAVOR} flavor-h100"].inputs["spec"]["topologyName"]
