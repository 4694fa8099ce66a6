"""Own prices of a stack file: what is refused, and what lowers no price."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.stackfile import Edit, at, errors, planned

AT = "environment.prices"
COVERED = {"savings_plan_percent": {"p5": 44, "g6e": 30, "m7i": 27.5}}
"""Families of the pools and the system nodes of Pulumi.dev.yaml."""


def _warnings(*edits: Edit) -> list[str]:
    return [str(each) for each in planned(*edits).warnings if each.path.startswith(AT)]


def _said(prices: Any) -> list[str]:
    return _warnings(at("prices", prices))


@pytest.mark.parametrize(
    "prices",
    [
        {"discount_percent": 100},
        {"discount_percent": -1},
        {"discount_percent": float("nan")},
        {"discount_percent": float("inf")},
        {"discount_percent": "12 %"},
        {"support_percent": 100},
        {"support_percent": -0.5},
        {"savings_plan_percent": {"p5": 100}},
        {"savings_plan_percent": {"p5": -3}},
        {"savings_plan_percent": {"p5": float("nan")}},
        {"savings_plan_percent": 40},
        {"discount": 12},
        None,
    ],
    ids=str,
)
def test_no_price_is_nothing_negative_or_no_number(prices: Any) -> None:
    [error] = errors(at("prices", prices))
    assert error.startswith(AT) and "must" in error and "Fix: " in error


@pytest.mark.parametrize(
    "prices",
    [
        {"discount_percent": 99.9},
        {"discount_percent": 12, **COVERED, "support_percent": 10},
        {"support_percent": 3},
    ],
    ids=str,
)
def test_prices_that_lower_something_are_taken_without_a_word(prices: Any) -> None:
    assert errors(at("prices", prices)) == [] and _said(prices) == []


def test_a_savings_plan_of_one_instance_type_is_refused() -> None:
    [error] = errors(at("prices", {"savings_plan_percent": {"p5.48xlarge": 44}}))
    assert error == (
        f"{AT}.savings_plan_percent.p5.48xlarge: must be a family of instance types: each of its types"
        " has the same per cent; got p5.48xlarge. Fix: write p5 in its place"
    )


@pytest.mark.parametrize("prices", [{}, {"discount_percent": 0}, {"support_percent": 0}], ids=str)
def test_prices_without_a_per_cent_are_a_warning(prices: Any) -> None:
    assert _said(prices) == [f"{AT}: it has no per cent, so the prices stay those of AWS's list"]


def test_a_savings_plan_of_no_node_on_demand_is_a_warning() -> None:
    [said] = _said({"savings_plan_percent": {"p4d": 40, "p5": 44}})
    assert said == (
        f"{AT}.savings_plan_percent.p4d: it lowers no price: no pool on demand or with a reservation has a"
        " type of p4d, and the system nodes have none. Spot and Capacity Blocks are in no Savings Plan"
    )
    [said] = _said({"savings_plan_percent": {"p5": 0}})
    assert said == f"{AT}.savings_plan_percent.p5: it is 0, so the price stays the same"


def test_a_savings_plan_of_spot_alone_lowers_nothing() -> None:
    spot = (
        at("pools.h100", {"instance_types": ["p5.48xlarge"], "max_nodes": 2, "capacity": "spot"}),
        at("prices", {"savings_plan_percent": {"p5": 44}}),
    )
    found = _warnings(*spot)
    assert len(found) == 1 and "it lowers no price" in found[0]
