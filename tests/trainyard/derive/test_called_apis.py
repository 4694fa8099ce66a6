"""Exactly the endpoints that a stack needs."""

from __future__ import annotations

import pytest

from tests.support.existing_vpc import EXISTING_VPC
from tests.support.stackfile import Edit, at, environment_plan, own_network
from trainyard.catalog.aws.endpoints import ALWAYS, NONE

PRIVATE = at("network.endpoints", "private")
NO_STORES = (at("storage", {}), at("jobs", {}))
SECRET = {"HF_TOKEN": {"secrets_manager": "vision/hf-token", "key": "token"}}
MORE: dict[str, tuple[tuple[Edit, ...], set[str]]] = {
    "nothing more": (NO_STORES, set()),
    "Lustre": (
        (
            at("jobs", {}),
            at(
                "storage",
                {"fast": {"lustre": {"capacity_gib": 1200, "throughput_mbps_per_tib": 125}}},
            ),
        ),
        set(),
    ),
    "S3": ((*NO_STORES, at("storage.sets", {"s3": {}})), set()),
    "EFS": ((*NO_STORES, at("storage.home", {"efs": {}})), {"elasticfilesystem"}),
    "secrets of a job": (
        (at("jobs.t5-large.secrets", SECRET),),
        {"elasticfilesystem", "secretsmanager"},
    ),
    "alerts": (
        (*NO_STORES, at("metrics", {"alerts": {"emails": ["a@example.com"]}})),
        {"sns"},
    ),
    "managed Prometheus": (
        (*NO_STORES, at("metrics", {"managed_prometheus": {}})),
        {"aps-workspaces"},
    ),
    "metrics without alerts": ((*NO_STORES, at("metrics", {})), set()),
    "a tunnel": ((*NO_STORES, at("cluster.tunnel_port", 8443)), {"ssmmessages"}),
}


@pytest.mark.parametrize("case", MORE)
def test_a_stack_has_an_endpoint_for_each_api_that_it_calls_and_no_other(case: str) -> None:
    edits, more = MORE[case]
    endpoints = own_network(environment_plan(PRIVATE, *edits)).endpoints
    assert endpoints and endpoints.apis == tuple(sorted({*ALWAYS, *more}))


def test_without_the_setting_there_is_none() -> None:
    assert own_network(environment_plan()).endpoints is None


def test_an_existing_vpc_gets_endpoints_only_where_the_stack_file_says_so() -> None:
    assert environment_plan(EXISTING_VPC).network.endpoints is None
    made = environment_plan(EXISTING_VPC, PRIVATE).network.endpoints
    assert made and set(made.apis) == {*ALWAYS, "elasticfilesystem"}


def test_no_endpoint_is_named_that_most_regions_lack() -> None:
    assert not NONE.keys() & ALWAYS.keys()
