"""Mount targets of EFS are named by their zones."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.deployed import deployed
from tests.support.existing_vpc import EXISTING_VPC, NETWORK, SUBNETS, ExistingVpc
from tests.support.recording import deploy
from tests.support.stackfile import (
    ENVIRONMENT,
    Edit,
    at,
    environment_plan,
    without,
)
from tests.support.teams import listed
from trainyard.replacing.deployed import PROVIDER, Deployed
from trainyard.replacing.jobs.mount_targets import MOUNT_TARGET, name_errors

AWAY = at("pools.h100.fallback_zones", ["ap-northeast-2c"])
ALONE = (
    at("jobs", {}),
    listed,
    without("teams.vision.max_gpus"),
    at("teams.vision.stores", ["scratch", "home"]),
)
OTHER = at(
    "network",
    {**NETWORK, "private_subnets": SUBNETS | {"ap-northeast-2a": "subnet-0123456789abcdef0"}},
)
IN_C = at("zone", "ap-northeast-2c")


def before(*edits: Edit) -> Deployed:
    def changed(values: dict[str, Any]) -> None:
        for edit in (*ALONE, *edits):
            edit(values[ENVIRONMENT])

    made = deployed(deploy("dev", changed, vpc=ExistingVpc() if EXISTING_VPC in edits else None))
    provider = {(PROVIDER, "cluster"): {"kubeconfig": "ours", "clusterIdentifier": "arn"}}
    return Deployed(resources={**made.resources, **provider})


def of_an_older_release(found: Deployed) -> Deployed:
    """The names of mount targets that it gave: the store's own in the training zone."""
    names = {"home.a": "home", "home.c": "home-c"}
    return Deployed(
        resources={
            (kind, names.get(name, name) if kind == MOUNT_TARGET else name): outputs
            for (kind, name), outputs in found.resources.items()
        }
    )


@pytest.fixture(scope="module")
def two_zones() -> Deployed:
    return before(AWAY)


def test_the_update_that_names_mount_targets_by_zone_moves_none(two_zones: Deployed) -> None:
    old = of_an_older_release(two_zones)

    def said(found: Deployed, *edits: Edit) -> list[str]:
        return [str(each) for each in name_errors(environment_plan(*ALONE, *edits), found)]

    assert said(old, IN_C) == [
        "environment.zone: must stay ap-northeast-2a in this update, which gives mount targets the names of their"
        " zones: EFS would refuse a second one of store home in a zone; got ap-northeast-2c. Fix: write"
        " ap-northeast-2a again, run `pulumi up`, and change it in the next update"
    ]
    assert said(old) == said(old, AWAY) == said(two_zones, IN_C) == said(Deployed(), IN_C) == []
    there = of_an_older_release(before(EXISTING_VPC))
    assert said(there, EXISTING_VPC) == []
    assert f"must stay the zone of {SUBNETS['ap-northeast-2a']}" in said(there, OTHER)[0]
