"""Where a broken node is replaced too late."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.stackfile import Edit, at, errors, planned

ODCR: dict[str, Any] = {
    "instance_types": ["p5.48xlarge"],
    "max_nodes": 4,
    "capacity": "reservation",
    "reservation": {"id": "cr-0123456789abcdef0", "instances": 4},
    "replicas": 4,
}
SPARE = ODCR | {"replicas": 3, "warm_spares": 1}


def warned(*edits: Edit) -> list[str]:
    return [each.path for each in planned(*edits).warnings if "warm spare" in each.text]


def test_a_full_reservation_without_a_spare_is_warned_of() -> None:
    assert warned(at("repair", {}), at("pools.h100", ODCR)) == [
        "environment.pools.h100.warm_spares"
    ]


def test_its_namespace_is_not_for_jobs() -> None:
    [error] = errors(at("namespace", "trainyard-repair"))
    assert "environment.namespace" in error


@pytest.mark.parametrize(
    "edits",
    [
        (at("pools.h100", ODCR),),
        (at("repair", {}), at("pools.h100", SPARE)),
        (at("repair", {}),),
    ],
    ids=["without repair", "with a spare", "on demand"],
)
def test_other_pools_are_not(edits: tuple[Edit, ...]) -> None:
    assert warned(*edits) == []
