"""Pools that somebody adds, as `within-budget` counts them. Those of this program: test_policies.py."""

from __future__ import annotations

from typing import Any

import pytest

from policy_pack.budget import BudgetRule
from policy_pack.kinds import NODE_POOL
from policy_pack.resource import Resource


def pool(spec: dict[str, Any], **operators: str) -> Resource:
    """A pool of p5.48xlarge in one zone. `operators`: of its types, zones or capacity, where not In."""
    wanted = {
        "type": ("node.kubernetes.io/instance-type", "p5.48xlarge"),
        "zone": ("topology.kubernetes.io/zone", "us-east-1a"),
        "capacity": (
            "karpenter.sh/capacity-type",
            "reserved" if "capacity" in operators else "spot",
        ),
    }
    requirements = [
        {"key": key, "operator": operators.get(name, "In"), "values": [value]}
        for name, (key, value) in wanted.items()
    ]
    props = {"spec": {"template": {"spec": {"requirements": requirements}}, **spec}}
    return Resource(type=NODE_POOL, name="added", urn="added", props=props)


TEN = {"max_usd_per_hour": 10}
UNNAMED = "must name its nodes (limits.nodes), its types and its zones, so that its cost is known"


@pytest.mark.parametrize(
    ("spec", "operators"),
    [
        ({}, {}),
        ({"limits": {"cpu": "100000"}}, {}),
        ({"limits": {"nodes": "4"}}, {"type": "NotIn"}),
        ({"limits": {"nodes": "4"}}, {"zone": "NotIn"}),
    ],
    ids=["no limits", "limits of CPUs", "every type but one", "every zone but one"],
)
def test_a_pool_that_somebody_adds_says_what_its_cost_depends_on(
    spec: dict[str, Any], operators: dict[str, str]
) -> None:
    """A NodePool without limits is unlimited (karpenter 1.14.1, pkg/apis/v1/nodepool.go, ExceededBy)."""
    assert [*BudgetRule()(pool(spec, **operators), TEN)] == [UNNAMED]


def test_a_pool_that_somebody_adds_counts_all_its_nodes() -> None:
    four, static = {"limits": {"nodes": "4"}}, {"replicas": 4}
    for spec, operators in ((four, {}), (static, {}), (four, {"capacity": "NotIn"})):
        [said] = BudgetRule()(pool(spec, **operators), TEN)
        assert "got 220.16 when they are full" in said
    assert not [*BudgetRule()(pool({"replicas": 0}), TEN)]
