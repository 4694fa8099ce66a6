"""What is said of a private endpoint before the first `pulumi up`."""

from __future__ import annotations

import pytest

from tests.support.existing_vpc import EXISTING_VPC
from tests.support.stackfile import Edit, at, planned, without

PRIVATE = at("cluster.endpoint", "private"), without("cluster.public_access_cidrs")
WAYS: dict[str, Edit] = {
    "inside_vpc": at("cluster.inside_vpc", True),
    "proxy_url": at("cluster.proxy_url", "http://proxy.example.com:3128"),
    "tunnel_port": at("cluster.tunnel_port", 8443),
}


def _said(*edits: Edit) -> list[str]:
    return [str(one) for one in planned(*PRIVATE, *edits).warnings if "cannot reach" in str(one)]


@pytest.mark.parametrize("way", ["inside_vpc", "proxy_url"])
def test_a_way_into_an_existing_vpc_is_there_before_the_first_update(way: str) -> None:
    """Otherwise people open the endpoint to the internet for nothing."""
    assert _said(EXISTING_VPC, WAYS[way]) == []


def test_a_tunnel_into_an_existing_vpc_needs_a_node_that_the_first_update_makes() -> None:
    [said] = _said(EXISTING_VPC, WAYS["tunnel_port"])
    assert "because it creates the node that the tunnel goes through; for that one" in said


@pytest.mark.parametrize("way", WAYS)
def test_no_way_leads_into_a_vpc_that_the_first_update_makes(way: str) -> None:
    [said] = _said(WAYS[way])
    assert "because it creates the VPC itself; for that one write" in said
