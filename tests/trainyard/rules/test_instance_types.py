"""Which instance types a pool can list."""

from __future__ import annotations

from tests.support.stackfile import at, planned
from trainyard.rules.instance_types import _unsold


def test_where_nothing_of_the_catalogue_is_sold_only_another_region_is_left() -> None:
    [error] = _unsold("environment.pools.g6e.instance_types", "g6e.48xlarge", "me-south-1", None)
    assert error.fix.startswith("take a region with it: ") and error.write is None
    [error] = _unsold("environment.pools.big.instance_types", "p5e.48xlarge", "eu-west-3", None)
    assert error.fix.startswith("write ") and error.write and error.write[0] in error.fix


def test_what_one_error_says_to_write_ends_the_errors_of_all_unknown_types() -> None:
    """One list for all of them: each with its own took 2.5 s for 5,000 types."""
    setting = "pools.g6e.instance_types"
    found = planned(at(setting, ["g6e.49xlarge", "g6e.24xlarge", "G6E.12xlarge"])).errors
    first, second = (error for error in found if "types" in error.must)
    assert (first.got, second.got) == ("g6e.49xlarge", "G6E.12xlarge")
    assert first.write is second.write
    left = planned(at(setting, first.write)).errors
    assert {first.must, second.must} & {error.must for error in left} == set()
