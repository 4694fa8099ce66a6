"""Free addresses of subnets, by the VPC CNI of an existing cluster."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest.mock import Mock

from tests.support.existing_cluster import IN_CLUSTER
from tests.support.existing_vpc import SUBNETS
from tests.support.stackfile import at, environment_plan, without
from tests.trainyard.existing.test_vpc_faults import SOUND as SOUND_VPC
from trainyard.existing.vpc_faults import faults
from trainyard.live.existing.free_addresses import address_checks
from trainyard.live.questions.account import Account
from trainyard.live.questions.caller import NotAnswered
from trainyard.live.questions.network_questions import SubnetRoom
from trainyard.plans.networks import ExistingNetworkPlan

ZONE = "ap-northeast-2a"
EIGHT = (*IN_CLUSTER, without("pools.h100"), at("pools.g6e.max_nodes", 8))
"""A stack with eight g6e.48xlarge in an existing cluster."""
CUSTOM = {"AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG": "true"}
TARGETS = {"MINIMUM_IP_TARGET": "16", "WARM_IP_TARGET": "4"}


def said(free: int, env: Any, *, nodes: int = 0, pod_subnets: Any = ()) -> list[str]:
    """Findings about a subnet with so many free addresses, and a CNI with these variables."""
    told = Mock(spec=Account)
    told.addresses.return_value = {ZONE: SubnetRoom(free=free, pool_nodes=nodes, system_nodes=1)}
    failed = isinstance(env, Exception)
    told.cni_env.configure_mock(**{"side_effect" if failed else "return_value": env})
    told.pod_subnet_zones.return_value = set(pod_subnets)
    [check] = address_checks(told, environment_plan(*EIGHT)).values()
    return [str(finding) for finding in check()]


def test_the_default_cni_holds_two_interfaces_of_fifty_addresses() -> None:
    default = {"WARM_ENI_TARGET": "1"}
    [fault] = said(251, default)
    assert "need at most the 251 free addresses" in fault and "800 for pool g6e" in fault
    assert said(851, default) == []
    assert said(51, default, nodes=8) == [], "what runs has its addresses"
    assert said(451, default, pod_subnets=[ZONE]) == []


def test_targets_of_addresses_are_counted_as_in_a_cluster_of_the_stack() -> None:
    assert said(251, TARGETS) == []
    [fault] = said(150, TARGETS)
    assert "168 for pool g6e, 21 for system nodes" in fault
    few = {"WARM_IP_TARGET": "2", "MINIMUM_IP_TARGET": "4"}
    [fault] = said(50, few)
    assert "56 for pool g6e, 7 for system nodes" in fault


def test_custom_networking_takes_one_address_of_the_nodes_subnet() -> None:
    assert said(59, CUSTOM) == []
    [fault] = said(5, CUSTOM)
    assert "8 for pool g6e" in fault


def test_a_cluster_that_does_not_answer_is_given_the_least() -> None:
    assert said(59, NotAnswered("https://x: ConnectTimeoutError")) == []


def test_a_preview_refuses_no_small_subnet_that_custom_networking_leaves_to_nodes() -> None:
    small = {
        id_: replace(SOUND_VPC.subnets[id_], cidr=f"10.20.{number}.0/26")
        for number, id_ in enumerate(SUBNETS.values())
    }
    network = environment_plan(*EIGHT).network
    assert isinstance(network, ExistingNetworkPlan)
    assert [*faults(network, replace(SOUND_VPC, subnets=small))] == []
