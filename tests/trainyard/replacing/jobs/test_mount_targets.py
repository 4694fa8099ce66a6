"""Mount targets of EFS stay while jobs of others mount their store in their zone."""

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
    planned,
    reading,
    without,
)
from tests.support.teams import listed
from trainyard.catalog.job_kinds import resource_of
from trainyard.replacing.compared import compared
from trainyard.replacing.deployed import PROVIDER, Deployed, Show
from trainyard.replacing.jobs.mount_targets import MOUNT_TARGET, name_errors, target_errors
from trainyard.replacing.replacing import RUNTIME

ZONE = "topology.kubernetes.io/zone"
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


def _claim() -> str:
    [claim] = [
        each.name
        for each in environment_plan(*ALONE).teams["vision"].workspace.claims
        if each.store == "home"
    ]
    return claim


def _job(name: str, *, zone: str = "", claim: str = "", done: bool = False) -> Any:
    volume = {"name": "home", "persistentVolumeClaim": {"claimName": claim or _claim()}}
    pod = {"volumes": [volume], "nodeSelector": {ZONE: f"ap-northeast-2{zone}"} if zone else {}}
    return {
        "metadata": {"name": name, "namespace": "team-vision"},
        "spec": {
            "runtimeRef": {"name": "torch-distributed"},
            "podTemplateOverrides": [{"spec": pod}],
        },
        "status": {"conditions": [{"type": "Complete", "status": "True"}] if done else []},
    }


def _shows(*jobs: Any) -> Show:
    return lambda _, kind, space: [*jobs] if kind == resource_of("TrainJob") else []


def _said(found: Deployed, *edits: Edit, jobs: list[Any]) -> list[str]:
    plan = environment_plan(*ALONE, *edits)
    return [str(each) for each in target_errors(plan, found, _shows(*jobs))]


def test_a_zone_that_leaves_stays_while_jobs_there_mount_the_store(two_zones: Deployed) -> None:
    jobs = [
        _job("anywhere"),
        _job("there", zone="c"),
        _job("here", zone="a"),
        _job("done", done=True),
    ]
    jobs += [_job("other", claim="scratch-1")]
    assert _said(two_zones, jobs=jobs) == [
        "environment.storage.home: must keep its mount target in ap-northeast-2c while jobs that have not ended mount"
        " it there: its deletion breaks their mounts, and what they have not written is lost; got another one or none,"
        " beside TrainJob team-vision/anywhere, TrainJob team-vision/there. Fix: keep ap-northeast-2c as"
        " environment.zone or in fallback_zones of a pool, with its subnet, until they have ended; kubectl --namespace"
        " <its namespace> delete <kind> <name> ends one"
    ]
    assert _said(two_zones, jobs=jobs[2:]) == _said(two_zones, AWAY, jobs=jobs) == []
    assert _said(of_an_older_release(two_zones), jobs=jobs) == _said(two_zones, jobs=jobs)


def test_a_training_zone_that_leaves_is_the_same_and_one_that_falls_back_is_not(
    two_zones: Deployed,
) -> None:
    [error] = _said(two_zones, IN_C, jobs=[_job("long", zone="a")])
    assert "its mount target in ap-northeast-2a" in error
    back = at("pools.h100.fallback_zones", ["ap-northeast-2a"])
    assert _said(two_zones, IN_C, back, jobs=[_job("long", zone="a")]) == []


def test_a_runtime_that_mounts_the_store_and_selects_the_zone_counts(two_zones: Deployed) -> None:
    spec = _job("", zone="c")["spec"]
    made = Deployed(resources={**two_zones.resources, (RUNTIME, "tuned"): {"spec": spec}})
    job = _job("long", claim="none")
    job["spec"]["runtimeRef"]["name"] = "tuned"
    assert len(_said(made, jobs=[job])) == 1 and _said(two_zones, jobs=[job]) == []


def test_another_subnet_of_a_zone_makes_another_mount_target() -> None:
    found = before(EXISTING_VPC)
    [error] = _said(found, OTHER, jobs=[_job("long")])
    assert "keep its mount target in ap-northeast-2a" in error
    [error] = _said(of_an_older_release(found), OTHER, jobs=[_job("long", zone="a")])
    assert f"keep its mount target in {SUBNETS['ap-northeast-2a']}" in error
    assert _said(found, EXISTING_VPC, jobs=[_job("long")]) == []


def test_nobody_is_asked_where_mount_targets_stay(two_zones: Deployed) -> None:
    def show(*_: Any) -> list[Any]:
        raise AssertionError

    assert not [*target_errors(environment_plan(*ALONE, AWAY), two_zones, show)]
    assert not [*target_errors(environment_plan(*ALONE), Deployed(), show)]


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
    [subnet] = said(there, OTHER)
    was = SUBNETS["ap-northeast-2a"]
    assert subnet.startswith(f"environment.network.private_subnets: must have {was} in this update")
    assert f"Fix: write {was} again for its zone, with environment.zone as it was" in subnet


def test_a_preview_refuses_to_take_a_mount_target_from_under_a_job(two_zones: Deployed) -> None:
    shows = _shows(_job("long"))
    found = compared(planned(*ALONE), reading(*ALONE).lines, lambda *_: two_zones, shows)
    assert "environment.storage.home" in [each.path for each in found.errors]
