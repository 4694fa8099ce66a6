"""Errors about an existing cluster that cannot be used."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.support.existing_cluster import BUILDS, IN_CLUSTER, NAME, ROLE
from tests.support.existing_vpc import VPC
from tests.support.stackfile import Edit, at, environment_plan, without
from trainyard.existing.cluster_faults import AddOnFound, ClusterFound, faults
from trainyard.plans.clusters import ExistingClusterPlan

TEAMS = at("teams", {"nlp": {"deployer": "arn:aws:iam::111122223333:role/nlp"}})
POLICIES = '{"env": {}, "enableNetworkPolicy": "true"}'


def _add_on(version: str, configuration: str = "", **tags: str) -> AddOnFound:
    return AddOnFound(version=version, configuration=configuration, tags=tags)


SOUND = ClusterFound(
    status="ACTIVE",
    version="1.35",
    authentication_mode="API",
    vpc_id=VPC,
    public=True,
    private=True,
    public_ranges=("203.0.113.7/32",),
    ip_family="ipv4",
    auto_mode=False,
    add_ons={name: _add_on(version) for name, version in BUILDS.items()},
    caller=ROLE,
    caller_enters=True,
)


def _plan(*edits: Edit) -> ExistingClusterPlan:
    cluster = environment_plan(*IN_CLUSTER, *edits).cluster
    assert isinstance(cluster, ExistingClusterPlan)
    return cluster


def _with(name: str, add_on: AddOnFound) -> ClusterFound:
    return replace(SOUND, add_ons={**SOUND.add_ons, name: add_on})


@pytest.mark.parametrize("mode", ["API", "API_AND_CONFIG_MAP"])
def test_a_sound_cluster_has_no_fault(mode: str) -> None:
    assert [*faults(_plan(), replace(SOUND, authentication_mode=mode))] == []
    assert [*faults(_plan(), replace(SOUND, status="UPDATING"))] == []


FAULTY: dict[str, tuple[ClusterFound | None, str, str, str]] = {
    "no such cluster": (None, "cluster.name", f"got {NAME}.", "`aws eks list-clusters`"),
    "a cluster that goes": (
        replace(SOUND, status="DELETING"),
        "cluster.name",
        "which is DELETING",
        "list-clusters",
    ),
    "a cluster of IPv6": (
        replace(SOUND, ip_family="ipv6"),
        "cluster.name",
        f"got {NAME}, whose ipFamily is ipv6",
        "let the stack make one: delete name and existing_add_ons; EKS cannot change the family",
    ),
    "a cluster with Auto Mode": (
        replace(SOUND, auto_mode=True),
        "cluster.name",
        f"got {NAME}, whose computeConfig is enabled",
        "its owner can also turn Auto Mode off",
    ),
    "another known version": (
        replace(SOUND, version="1.34"),
        "cluster.version",
        'got "1.35", and the cluster has "1.34"',
        'write "1.34"',
    ),
    "a version without a row": (
        replace(SOUND, version="1.31"),
        "cluster.version",
        'the cluster has "1.31"',
        "have it upgraded to one of 1.34, 1.35, 1.36",
    ),
    "another VPC": (
        replace(SOUND, vpc_id="vpc-1"),
        "network.vpc_id",
        f"got {VPC}, and the cluster is in vpc-1",
        "write vpc-1",
    ),
    "an endpoint that nodes do not reach": (
        replace(SOUND, private=False),
        "cluster.name",
        "whose endpointPrivateAccess is false",
        f"aws eks update-cluster-config --name {NAME}",
    ),
    "an endpoint that is private": (
        replace(SOUND, public=False),
        "cluster.endpoint",
        "must be private",
        "write endpoint: private with proxy_url or inside_vpc",
    ),
    "authentication by ConfigMap": (
        replace(SOUND, authentication_mode="CONFIG_MAP", caller_enters=False),
        "cluster.name",
        "whose mode is CONFIG_MAP",
        "authenticationMode=API_AND_CONFIG_MAP",
    ),
    "a deployer that is not admitted": (
        replace(SOUND, caller_enters=False),
        "cluster.name",
        f"which does not admit {ROLE} as an admin",
        "aws eks associate-access-policy",
    ),
    "an add-on that is missing": (
        replace(SOUND, add_ons={k: v for k, v in SOUND.add_ons.items() if k != "coredns"}),
        "cluster.existing_add_ons",
        "got no add-on coredns",
        f"aws eks create-addon --cluster-name {NAME}",
    ),
    "a kube-proxy that is too old": (
        _with("kube-proxy", _add_on("v1.31.10-eksbuild.2")),
        "cluster.name",
        "is at most 3 minor releases behind Kubernetes 1.35; got kube-proxy v1.31.10",
        f"aws eks update-addon --cluster-name {NAME}",
    ),
    "an add-on of the owner that the stack would make": (
        _with("aws-efs-csi-driver", _add_on("v3.0.0-eksbuild.1")),
        "cluster.existing_add_ons",
        "got eks-pod-identity-agent.",
        "write [eks-pod-identity-agent, aws-efs-csi-driver]",
    ),
}


@pytest.mark.parametrize("case", FAULTY)
def test_what_cannot_work_is_said_with_its_setting_and_a_way_out(case: str) -> None:
    found, path, says, fix = FAULTY[case]
    [fault] = [*faults(_plan(), found)]
    assert fault.path == f"environment.{path}"
    assert says in str(fault), fault
    assert fix in fault.fix, fault


def test_no_command_resets_what_an_owner_has_set() -> None:
    without_any = replace(SOUND, add_ons={})
    texts = [str(fault) for fault in faults(_plan(TEAMS), without_any)]
    assert len(texts) == 4 and not [text for text in texts if "OVERWRITE" in text]
    assert all("--resolve-conflicts NONE`, with --configuration-values" in text for text in texts)


def test_a_kube_proxy_of_the_skew_that_kubernetes_allows_will_do() -> None:
    assert [*faults(_plan(), _with("kube-proxy", _add_on("v1.32.0-eksbuild.1")))] == []


@pytest.mark.parametrize(
    ("cni", "says"),
    [
        (_add_on("v1.13.4-eksbuild.1", POLICIES), "is 1.14 or newer"),
        (_add_on("v1.20.1-eksbuild.1"), "got a configuration without enableNetworkPolicy"),
        (_add_on("v1.20.1-eksbuild.1", '{"enableNetworkPolicy": "false"}'), "without enableN"),
    ],
)
def test_teams_need_a_vpc_cni_that_enforces_policies(cni: AddOnFound, says: str) -> None:
    found = _with("vpc-cni", cni)
    [fault] = [*faults(_plan(TEAMS), found)]
    assert says in str(fault) and "aws eks update-addon" in fault.fix
    without = replace(_plan(), efa=False)
    assert [*faults(without, found)] == [], "without teams nothing needs policies"


@pytest.mark.parametrize("build", ["v1.18.3-eksbuild.3", "v1.18.4-eksbuild.1", "v1.9.9-eksbuild.1"])
def test_nodes_with_efa_need_a_vpc_cni_that_takes_efa_only_interfaces(build: str) -> None:
    plan = _plan()
    [fault] = [*faults(plan, _with("vpc-cni", _add_on(build)))]
    assert "is 1.18.5 or newer, which takes the EFA interfaces of its pools" in str(fault)
    assert f"got vpc-cni {build}" in str(fault) and "aws eks update-addon" in fault.fix
    new = _with("vpc-cni", _add_on("v1.18.5-eksbuild.1"))
    assert plan.efa and [*faults(plan, new)] == []
    assert [*faults(replace(plan, efa=False), _with("vpc-cni", _add_on(build)))] == []


@pytest.mark.parametrize(
    "values", [POLICIES, "enableNetworkPolicy: 'true'", '{"enableNetworkPolicy":true}']
)
def test_a_configuration_can_be_json_or_yaml(values: str) -> None:
    found = _with("vpc-cni", _add_on("v1.20.1-eksbuild.1", values))
    assert [*faults(_plan(TEAMS), found)] == []


def test_custom_networking_of_the_add_on_is_refused_with_nodes_that_have_no_room_for_it() -> None:
    custom = _add_on(
        "v1.20.1-eksbuild.1", '{"env": {"AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG": "true"}}'
    )
    [fault] = [*faults(_plan(), _with("vpc-cni", custom))]
    assert fault.path == "environment.pools.h100.instance_types"
    assert [*faults(_plan(without("pools.h100")), _with("vpc-cni", custom))] == []


def test_what_the_stack_has_made_itself_is_not_its_owners() -> None:
    mine: dict[str, Any] = {"trainyard:project": "trainyard", "trainyard:stack": "dev"}
    add_on = AddOnFound(version="v3.4.1-eksbuild.1", configuration="", tags=mine)
    assert [*faults(_plan(), _with("aws-efs-csi-driver", add_on))] == []
