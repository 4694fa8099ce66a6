"""Errors about an existing VPC that cannot be used."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.support.existing_cluster import IN_CLUSTER
from tests.support.existing_vpc import EXISTING_VPC, NAT, SUBNETS, VPC
from tests.support.stackfile import at, environment_plan
from trainyard.existing.vpc_faults import SubnetFound, VpcFound, faults
from trainyard.plans.networks import ExistingNetworkPlan, service_cidr

A, C = SUBNETS


def _subnet(zone: str, number: int) -> SubnetFound:
    return SubnetFound(
        vpc_id=VPC,
        zone=zone,
        zone_id=f"apne2-az{number}",
        cidr=f"10.20.{16 * number}.0/20",
        public_addresses=False,
        way_out=NAT,
    )


FOUND = {SUBNETS[A]: _subnet(A, 1), SUBNETS[C]: _subnet(C, 3)}
SOUND = VpcFound(
    shared_by="", cidrs=("10.20.0.0/16",), dns_support=True, dns_hostnames=True, subnets=FOUND
)
OWNER = "444455556666"
SHARED = replace(SOUND, shared_by=OWNER)
"""The same VPC, where the network account of a company owns it."""


def _plan() -> ExistingNetworkPlan:
    network = environment_plan(EXISTING_VPC, at("zone_id", "apne2-az1")).network
    assert isinstance(network, ExistingNetworkPlan)
    return network


def _with(at_zone: str, /, **changes: Any) -> VpcFound:
    """The sound VPC with one subnet changed."""
    return replace(
        SOUND, subnets=FOUND | {SUBNETS[at_zone]: replace(FOUND[SUBNETS[at_zone]], **changes)}
    )


def test_a_sound_vpc_has_no_fault() -> None:
    assert [*faults(_plan(), SOUND)] == []


FAULTY: dict[str, tuple[VpcFound | None, str, str]] = {
    "no such VPC": (
        None,
        "vpc_id",
        "be a VPC of this account, or shared with it, in ap-northeast-2",
    ),
    "no names": (replace(SOUND, dns_support=False), "vpc_id", "be a VPC with enableDnsSupport"),
    "no host names": (
        replace(SOUND, dns_hostnames=False),
        "vpc_id",
        "be a VPC with enableDnsHostnames",
    ),
    "no range for services": (
        replace(SOUND, cidrs=("10.0.0.0/8", "172.20.1.0/24")),
        "vpc_id",
        "leave one of 172.20.0.0/16 and 10.100.0.0/16 to Kubernetes services",
    ),
    "no such subnet": (
        replace(SOUND, subnets={SUBNETS[A]: FOUND[SUBNETS[A]]}),
        f"private_subnets.{C}",
        f"be a subnet of {VPC}; got {SUBNETS[C]}, which does not exist",
    ),
    "subnet of another VPC": (
        _with(C, vpc_id="vpc-1", way_out=""),
        f"private_subnets.{C}",
        f"be a subnet of {VPC}; got {SUBNETS[C]} of vpc-1",
    ),
    "subnet of another zone": (
        _with(C, zone="ap-northeast-2b"),
        f"private_subnets.{C}",
        f"be a subnet in {C}; got {SUBNETS[C]}, which is in ap-northeast-2b",
    ),
    "zone without control planes": (
        _with(C, zone_id="use1-az3"),
        f"private_subnets.{C}",
        "be in a zone in which EKS places control planes",
    ),
    "public subnet": (_with(A, way_out="igw-1"), f"private_subnets.{A}", "be private"),
    "public addresses": (
        _with(A, public_addresses=True),
        f"private_subnets.{A}",
        "give no public addresses",
    ),
    "no way out": (_with(A, way_out=""), f"private_subnets.{A}", "have a route to 0.0.0.0/0"),
    "too small": (
        _with(A, cidr="10.20.0.0/26"),
        f"private_subnets.{A}",
        f"have 157 addresses in {A}: 84 for pool g6e, 42 for pool h100, 21 for system nodes, 3 for"
        f" store scratch, 1 for store home, 6 for EKS; got {SUBNETS[A]} with 10.20.0.0/26, which has"
        f" 59. Fix: write a larger subnet of {A}, or lower max_nodes of g6e, h100",
    ),
    "too small for controllers": (
        _with(C, cidr="10.20.0.0/28"),
        f"private_subnets.{C}",
        f"have 27 addresses in {C}: 21 for system nodes, 6 for EKS; got {SUBNETS[C]} with"
        f" 10.20.0.0/28, which has 11. Fix: write a larger subnet of {C}",
    ),
}


@pytest.mark.parametrize("case", FAULTY)
def test_a_fault_names_the_setting_what_is_there_and_a_way_out(case: str) -> None:
    found, setting, must = FAULTY[case]
    [said] = map(str, faults(_plan(), found))
    assert said.startswith(f"environment.network.{setting}: must {must}")
    assert "; got " in said and ". Fix: " in said


def test_another_zone_id_than_the_subnets_is_a_fault_of_the_zone_id() -> None:
    [said] = map(str, faults(_plan(), _with(A, zone_id="apne2-az2")))
    assert said.startswith("environment.zone_id: must be the id of the zone of ")
    assert said.endswith("Fix: write apne2-az2, or the subnet of apne2-az1")


def test_all_faults_are_told_at_once() -> None:
    found = replace(_with(A, public_addresses=True), dns_support=False, dns_hostnames=False)
    assert len([*faults(_plan(), found)]) == 3


def test_a_fallback_zone_must_hold_the_pool_as_well() -> None:
    """All nodes of the pool can be there."""
    network = environment_plan(EXISTING_VPC, at("pools.h100.fallback_zones", [C])).network
    assert isinstance(network, ExistingNetworkPlan)
    assert [*faults(network, SOUND)] == []
    [said] = map(str, faults(network, _with(C, cidr="10.20.0.0/26")))
    assert f"must have 70 addresses in {C}: 42 for pool h100, 21 for system nodes, 1 for" in said
    assert said.endswith(
        f"write a larger subnet of {C}, or lower max_nodes of h100, or take {C} out of its"
        " fallback_zones"
    )


def test_a_subnet_that_has_exactly_what_is_taken_is_large_enough() -> None:
    assert [*faults(_plan(), _with(C, cidr="10.20.0.0/27"))] == []


def test_an_existing_cluster_has_a_range_of_services_of_its_own() -> None:
    both = replace(SOUND, cidrs=("10.0.0.0/8", "172.20.1.0/24"))
    assert [*faults(replace(_plan(), makes_cluster=False), both)] == []
    network = environment_plan(*IN_CLUSTER).network
    assert isinstance(network, ExistingNetworkPlan) and not network.makes_cluster


def test_a_range_of_services_that_the_stack_file_wants_is_judged_instead_of_the_usual_two() -> None:
    both = replace(SOUND, cidrs=("10.0.0.0/8", "172.16.0.0/12"))
    free = replace(_plan(), service_cidr="192.168.0.0/20")
    assert [*faults(free, both)] == []
    [fault] = faults(free, replace(both, cidrs=("10.0.0.0/8", "192.168.8.0/24")))
    assert str(fault).startswith(
        f"environment.cluster.service_cidr: must overlap with no range of {VPC}, which has 10.0.0.0/8,"
        " 192.168.8.0/24; got 192.168.0.0/20. Fix: write"
    )


def test_services_keep_away_from_every_range_of_the_vpc() -> None:
    assert service_cidr(["10.0.0.0/16"]) == "172.20.0.0/16"
    assert service_cidr(["10.0.0.0/16", "172.16.0.0/12"]) == "10.100.0.0/16"
    assert service_cidr(["10.0.0.0/8", "172.16.0.0/12"]) is None


def test_a_vpc_without_the_internet_needs_no_way_out_and_must_still_be_private() -> None:
    plan = replace(_plan(), isolated=True)
    assert [*faults(plan, _with(A, way_out=""))] == []
    [fault] = faults(plan, _with(A, way_out="igw-1"))
    assert fault.must == "be private"


def test_a_shared_vpc_is_sound_where_the_stack_makes_no_endpoints() -> None:
    assert [*faults(_plan(), SHARED)] == []


SHARED_FAULTS: dict[str, tuple[str, str, str]] = {
    "s3_endpoint": (
        "true",
        "not be true: only the account that owns a VPC makes endpoints in it",
        f"delete it, and let account {OWNER} make a gateway endpoint for S3",
    ),
    "endpoints": (
        "private",
        "not be private: only the account that owns a VPC makes endpoints in it",
        f"delete it, and let account {OWNER} make an endpoint with private DNS for each AWS API",
    ),
}


@pytest.mark.parametrize("setting", SHARED_FAULTS)
def test_only_the_owner_of_a_vpc_makes_endpoints_in_it(setting: str) -> None:
    value, must, fix = SHARED_FAULTS[setting]
    written = at(f"network.{setting}", True if value == "true" else value)
    network = environment_plan(EXISTING_VPC, written).network
    assert isinstance(network, ExistingNetworkPlan)
    assert [*faults(network, SOUND)] == []
    [fault] = faults(network, SHARED)
    assert (fault.path, fault.must, fault.fix) == (f"environment.network.{setting}", must, fix)
    assert fault.got == f"{value}, and {VPC} belongs to account {OWNER}"


def test_what_only_the_owner_of_a_vpc_can_change_the_fix_leaves_to_it() -> None:
    bad = replace(_with(A, public_addresses=True, way_out=""), dns_support=False, shared_by=OWNER)
    fixes = [fault.fix for fault in faults(_plan(), bad)]
    assert len(fixes) == 3 and all(fix.startswith(f"let account {OWNER} ") for fix in fixes)


def test_a_subnet_may_be_there_and_not_be_shared() -> None:
    [fault] = faults(_plan(), replace(SHARED, subnets={SUBNETS[A]: FOUND[SUBNETS[A]]}))
    assert fault.got == f"{SUBNETS[C]}, which does not exist or is not shared with this account"
    assert fault.fix.endswith(f" prints, or let account {OWNER} share it")
