"""Prices: exact where one is known, and never a neighbour's."""

from catalog.prices import lustre_per_month


def test_a_file_system_in_a_region_with_a_price_costs_its_capacity_times_it():
    assert lustre_per_month("us-east-1", "PERSISTENT_2", 500, 4800) == 0.340 * 4800


def test_a_region_without_a_price_borrows_none():
    assert lustre_per_month("ap-northeast-2", "PERSISTENT_2", 500, 4800) is None


def test_scratch_has_no_tier():
    assert lustre_per_month("us-east-1", "SCRATCH_2", None, 1200) == 0.140 * 1200
