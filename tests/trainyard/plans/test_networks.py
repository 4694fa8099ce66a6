"""Address ranges of a VPC, and how many addresses of a subnet AWS leaves."""

from __future__ import annotations

from trainyard.plans import networks


def test_a_subnet_has_five_addresses_less_than_its_range() -> None:
    """AWS's own example: a /28 has 11 (VPC user guide, subnet-sizing)."""
    assert networks.room("10.0.0.0/28") == 11
