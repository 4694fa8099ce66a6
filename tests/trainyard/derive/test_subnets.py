"""How many addresses an environment takes of the subnet of each zone."""

from __future__ import annotations

from tests.support.existing_cluster import IN_CLUSTER
from tests.support.existing_stores import EFS, LUSTRE
from tests.support.existing_vpc import EXISTING_VPC
from tests.support.stackfile import Edit, at, environment_plan
from trainyard.catalog.aws.endpoints import ALWAYS
from trainyard.plans.networks import SubnetUse

A, B, C = (f"ap-northeast-2{letter}" for letter in "abc")
NODE = 21
"""Addresses of a node: its own, and 20 that the VPC CNI holds."""


def _uses(*edits: Edit) -> dict[str, SubnetUse]:
    return dict(environment_plan(*edits).network.addresses)


def test_each_zone_has_what_can_be_there() -> None:
    assert _uses() == {
        A: SubnetUse(
            pools={"g6e": 4 * NODE, "h100": 2 * NODE},
            system_nodes=NODE,
            others={"store scratch": 3, "store home": 1, "EKS": 6},
        ),
        **dict.fromkeys((B, C), SubnetUse(pools={}, system_nodes=NODE, others={"EKS": 6})),
    }
    assert _uses()[A].total == 6 * NODE + NODE + 10


def test_a_pool_can_be_whole_in_a_fallback_zone_and_efs_goes_with_it() -> None:
    away = _uses(at("pools.h100.fallback_zones", [B]))
    assert away[B] == SubnetUse(
        pools={"h100": 2 * NODE}, system_nodes=NODE, others={"store home": 1, "EKS": 6}
    )
    assert away[A] == _uses()[A] and away[C] == _uses()[C]


def test_system_nodes_are_spread_evenly() -> None:
    def nodes(number: int) -> set[int]:
        uses = _uses(at("system_nodes.nodes", number)).values()
        return {use.system_nodes // NODE for use in uses}

    assert nodes(3) == {1} and nodes(4) == {2} and nodes(10) == {4}


def test_interface_endpoints_have_an_address_in_every_zone() -> None:
    for use in _uses(at("network.endpoints", "private")).values():
        assert use.others["interface endpoints"] == len({*ALWAYS, "elasticfilesystem"})


def test_what_exists_has_its_addresses_already() -> None:
    stores = (
        at("storage.scratch", {"lustre": {"file_system_id": LUSTRE}}),
        at("storage.home", {"efs": {"file_system_id": EFS}}),
    )
    assert _uses(EXISTING_VPC, *stores)[A].others == {"EKS": 6}
    assert "EKS" not in _uses(*IN_CLUSTER)[A].others


def test_who_takes_how_many_is_told() -> None:
    assert _uses()[A].told == (
        "84 for pool g6e, 42 for pool h100, 21 for system nodes, 3 for store scratch, 1 for store"
        " home, 6 for EKS"
    )


def test_a_node_of_an_existing_cluster_counts_as_one_address() -> None:
    """Its owner's VPC CNI decides how many more it takes, and from which subnet."""
    use = _uses(*IN_CLUSTER)[A]
    assert (dict(use.pools), use.system_nodes) == ({"g6e": 4, "h100": 2}, 1)
