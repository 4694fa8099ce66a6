"""Interface endpoints are asked for before they are made: whether the region has them, and in which
zones."""

from __future__ import annotations

from unittest.mock import Mock

import pytest

from tests.support.existing_vpc import EXISTING_VPC, SUBNETS
from tests.support.stackfile import Edit, at, environment_plan
from tests.support.sweep import lines_not_reached
from trainyard.live import endpoint_zones
from trainyard.live.endpoint_zones import endpoint_errors, endpoint_zone_checks
from trainyard.live.questions.account import Account
from trainyard.plans.networks import AnyNetworkPlan

REGION = "ap-northeast-2"
A, B, C, D = (f"{REGION}{letter}" for letter in "abcd")
PRIVATE = at("network.endpoints", "private")
IMAGES = at("artifacts.images", f"111122223333.dkr.ecr.{REGION}.amazonaws.com/mirror")
ISOLATED = at("network", {"internet": "none", "endpoints": "private"}), IMAGES
EXISTING_ISOLATED = EXISTING_VPC, PRIVATE, at("network.internet", "none"), IMAGES


def _network(*edits: Edit) -> AnyNetworkPlan:
    return environment_plan(*edits).network


def _said(network: AnyNetworkPlan, **differs: tuple[str, ...] | None) -> list[str]:
    """What is said where these APIs are in these zones only, or nowhere, and the others in all."""
    assert network.endpoints
    offers = {api: differs.get(api, (A, B, C, D)) for api in network.endpoints.apis}
    there = {api: zones for api, zones in offers.items() if zones is not None}
    return [str(one) for one in endpoint_errors(network, there)]


def test_a_stack_that_makes_no_interface_endpoints_asks_nothing() -> None:
    account = Mock(spec=Account)
    for network in (_network(), _network(EXISTING_VPC)):
        assert endpoint_zone_checks(account, network) == {}
    [ask] = endpoint_zone_checks(account, network := _network(PRIVATE)).values()
    account.endpoint_offers.return_value = {}
    assert [*ask()] and network.endpoints
    account.endpoint_offers.assert_called_once_with(network.endpoints.apis)


@pytest.mark.parametrize(
    "edits", [(PRIVATE,), ISOLATED, (EXISTING_VPC, PRIVATE), EXISTING_ISOLATED]
)
def test_endpoints_that_every_zone_has_are_no_fault(edits: tuple[Edit, ...]) -> None:
    assert _said(_network(*edits)) == []
    assert _said(_network(EXISTING_VPC, PRIVATE), ec2=(A, C)) == [], "no subnet is elsewhere"


def test_an_endpoint_that_the_region_lacks_is_named_once() -> None:
    [said] = _said(_network(PRIVATE), ec2=None, sqs=None)
    assert said == (
        f"environment.network.endpoints: must be endpoints that PrivateLink offers in {REGION};"
        f" got private, and {REGION} has none for ec2, sqs. Fix: take another region, or delete"
        " endpoints: private"
    )


def test_a_zone_without_an_endpoint_is_named_where_the_stack_file_has_it() -> None:
    must = "must be in a zone in which PrivateLink offers every endpoint of the stack"
    [own] = _said(_network(PRIVATE), ec2=(A, C, D), sqs=(A, C, D))
    assert own == (
        f"environment.network.zones: {must}; got {B}, which has none for ec2, sqs. Fix: write the"
        f" name of one of {A}, {C}, {D}, or delete endpoints: private"
    )
    [training] = _said(_network(PRIVATE), ec2=(B, C, D))
    assert training.startswith(f"environment.zone: {must}; got {A}, which has none for ec2. Fix:")
    [existing] = _said(_network(EXISTING_VPC, PRIVATE), ec2=(A, B))
    assert existing.startswith(
        f"environment.network.private_subnets.{C}: {must}; got {C}, which has"
    )
    assert f"Fix: write a subnet of one of {A}, {B}, or delete endpoints: private" in existing
    assert {*SUBNETS} == {A, C}


def test_endpoints_cannot_be_left_out_where_nothing_else_leads_to_aws() -> None:
    [own] = _said(_network(*ISOLATED), ec2=(A, C))
    assert own.endswith(f"Fix: write the name of one of {A}, {C}")
    [existing] = _said(_network(*EXISTING_ISOLATED), ec2=(A, B))
    assert existing.endswith("or delete endpoints: private"), "the VPC may have some of its own"


def test_a_region_with_one_zone_that_has_them_is_no_way_out() -> None:
    said = _said(_network(*ISOLATED), ec2=(A,))
    assert len(said) == 2 and all("Fix: take another region: EKS needs two" in one for one in said)


def test_every_error_about_endpoints_is_caused_by_a_test_above() -> None:
    def run() -> None:
        _said(_network(PRIVATE), ec2=None, sqs=(A,))

    assert lines_not_reached([endpoint_zones], run) == []
