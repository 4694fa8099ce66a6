"""Which instance types a pool can list."""

from __future__ import annotations

from trainyard.rules.instance_types import _unsold


def test_where_nothing_of_the_catalogue_is_sold_only_another_region_is_left() -> None:
    [error] = _unsold("environment.pools.g6e.instance_types", "g6e.48xlarge", "me-south-1", None)
    assert error.fix.startswith("take a region with it: ") and error.write is None
    [error] = _unsold("environment.pools.big.instance_types", "p5e.48xlarge", "eu-west-3", None)
    assert error.fix.startswith("write ") and error.write and error.write[0] in error.fix
