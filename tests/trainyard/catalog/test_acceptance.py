"""Floors of an acceptance: below what was published, and none where nothing was."""

from __future__ import annotations

import pytest

from trainyard.catalog.acceptance import GIB, MIB, PUBLISHED, all_reduce_floor
from trainyard.catalog.aws.instances import GPU_TYPES
from trainyard.catalog.fabric import P5_GB_PER_SECOND


@pytest.mark.parametrize(
    ("instance_type", "nodes", "size", "floor"),
    [
        ("p5.48xlarge", 2, 128 * MIB, 245),
        ("p5.48xlarge", 2, 2 * GIB, 375),
        ("p5.48xlarge", 4, 16 * GIB, 410),
        ("p4d.24xlarge", 2, 2 * GIB, 66),
        ("p6-b200.48xlarge", 2, GIB, 310),
        ("p5en.48xlarge", 16, 16 * GIB, 310),
        ("g6e.48xlarge", 2, 2 * GIB, 2.5),
    ],
)
def test_a_floor_is_a_share_of_what_was_published(
    instance_type: str, nodes: int, size: int, floor: float
) -> None:
    """0.85 of PUBLISHED, rounded. Its sources: trainyard/catalog/fabric.py."""
    found = all_reduce_floor(instance_type, nodes, size)
    assert found == pytest.approx(floor, rel=0.04)
    assert found and found < PUBLISHED[instance_type].gb_per_second[size]


def test_each_doubling_above_four_nodes_leaves_less() -> None:
    floors = [all_reduce_floor("p5.48xlarge", nodes, 2 * GIB) or 0 for nodes in (2, 4, 8, 16)]
    assert floors[0] > 0
    assert floors[0] == floors[1]
    assert floors[2] == pytest.approx(0.95 * floors[1])
    assert floors[3] == pytest.approx(0.95 * floors[2])


@pytest.mark.parametrize(
    ("instance_type", "nodes", "size"),
    [
        ("p5e.48xlarge", 2, 2 * GIB),
        ("p5.48xlarge", 2, GIB),
        ("p5en.48xlarge", 2, 16 * GIB),
    ],
    ids=["another type", "another size", "a smaller gang than the published"],
)
def test_what_was_not_published_has_no_floor(instance_type: str, nodes: int, size: int) -> None:
    assert all_reduce_floor(instance_type, nodes, size) is None


def test_published_are_types_of_the_catalogue_and_agree_with_its_warning() -> None:
    assert PUBLISHED.keys() <= GPU_TYPES.keys()
    assert PUBLISHED["p5.48xlarge"].gb_per_second[16 * GIB] == P5_GB_PER_SECOND
