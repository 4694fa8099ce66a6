"""Zones of a network that the stack makes, in a region that has one without control planes of EKS."""

from __future__ import annotations

from tests.support.existing_vpc import EXISTING_VPC
from tests.support.stackfile import Edit, at, environment
from trainyard.rules.network import network_warnings

ZONE = at("zone", "us-east-1b")


def said(region: str, *edits: Edit) -> list[str]:
    """Warnings about the network of an environment in a region."""
    return [str(one) for one in network_warnings(region, environment(*edits))]


def test_zones_by_default_may_be_one_in_which_eks_has_no_control_plane() -> None:
    assert said("us-east-1", ZONE, at("zone_id", "use1-az1")) == [
        "environment.network.zones: one of us-east-1a, us-east-1c may be use1-az3 in your account, where EKS"
        " places no control plane, and the first `pulumi up` would fail: `trainyard check --live` says whether,"
        " and which zones to write"
    ]


def test_a_training_zone_without_its_id_may_be_that_zone_too() -> None:
    [warning] = said("us-east-1", ZONE)
    assert "one of us-east-1a, us-east-1b, us-east-1c may be use1-az3" in warning


def test_zones_that_are_written_and_regions_without_such_a_zone_have_nothing_to_be_told() -> None:
    assert said("us-east-1", ZONE, at("network.zones", ["us-east-1b", "us-east-1c"])) == []
    assert said("ap-northeast-2") == said("moon-1") == []
    assert said("us-east-1", EXISTING_VPC) == []
