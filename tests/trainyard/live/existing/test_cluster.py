"""`trainyard check --live` of a stack with an existing cluster."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import pytest

from tests.support.existing_cluster import BUILDS, GROUP, IN_CLUSTER, NAME, ROLE
from tests.support.existing_vpc import EXISTING_VPC
from tests.support.stackfile import at, environment_plan
from tests.trainyard.existing.test_cluster_faults import SOUND
from tests.trainyard.existing.test_vpc_faults import SOUND as SOUND_VPC
from trainyard.catalog.chart_objects import ObjectName
from trainyard.existing.cluster_faults import AddOnFound, ClusterFound
from trainyard.live.existing.cluster import existing_cluster_checks
from trainyard.live.questions.account import Account
from trainyard.live.questions.caller import NotAnswered
from trainyard.live.questions.cluster_questions import DnsPodFound, OwnerFound, PluginFound
from trainyard.live.questions.network_questions import InterfaceFound
from trainyard.objects.iam.policies import ADMIN_POLICY
from trainyard.reports.costs.cost import estimate
from trainyard.reports.minutes.timeline import schedule

PRIVATE = (at("cluster.endpoint", "private"), at("cluster.inside_vpc", True))
NODE = {"karpenter.sh/nodepool": "theirs"}


def account(found: ClusterFound | None = SOUND, **answers: Any) -> Any:
    told = Mock(spec=Account)
    sound: dict[str, Any] = {
        "cluster": found,
        "access_policies": [ADMIN_POLICY],
        "access_groups": [],
        "add_on_builds": [*BUILDS.values()],
        "karpenter_nodes": [],
        "cluster_objects": {},
        "device_plugins": [],
        "dns_pods": [DnsPodFound(address="10.20.16.9", node="10.20.16.4")],
        "vpc": SOUND_VPC,
        "cluster_groups": (GROUP,),
        "interfaces_of": [],
        "group_rules": (),
        "cni_env": {},
        "eni_configs": ["default"],
        "own_address": "203.0.113.7",
    }
    for name, answer in (sound | answers).items():
        getattr(told, name).configure_mock(return_value=answer)
    return told


def said(told: Any, *edits: Any) -> list[str]:
    plan = environment_plan(*IN_CLUSTER, *edits)
    checks = existing_cluster_checks(told, plan, ROLE)
    return [str(finding) for check in checks.values() for finding in check()]


def test_a_sound_cluster_is_asked_about_and_nothing_is_said() -> None:
    told = account()
    assert said(told) == []
    told.access_policies.assert_called_once_with(NAME, ROLE)
    assert told.own_address.called
    assert existing_cluster_checks(told, environment_plan(EXISTING_VPC), ROLE) == {}


def test_the_cluster_is_judged_with_the_rules_of_the_preview() -> None:
    [fault] = said(account(None))
    assert fault.startswith("environment.cluster.name: must be an EKS cluster of this account")


def test_a_deployer_that_enters_but_is_no_admin_is_refused() -> None:
    [fault] = said(account(access_policies=["arn:aws:eks::aws:cluster-access-policy/View"]))
    assert "must be a cluster whose admin the deployer is" in fault
    assert len(said(account(replace(SOUND, caller_enters=False)))) == 1, "and said once"


def test_a_deployer_with_groups_of_kubernetes_can_be_an_admin() -> None:
    [warning] = said(account(access_policies=[], access_groups=["platform-admins"]))
    assert warning.startswith(
        f"environment.cluster.name: {NAME} admits {ROLE} by the groups platform-admins"
    )


def test_an_add_on_that_an_upgrade_left_behind_is_a_warning() -> None:
    old = {**SOUND.add_ons, "coredns": AddOnFound(version="v1.8.7", configuration="", tags={})}
    [warning] = said(account(replace(SOUND, add_ons=old)))
    assert "does not offer coredns v1.8.7" in warning


def test_another_karpenter_is_found_by_its_nodes() -> None:
    [fault] = said(account(karpenter_nodes=[NODE, NODE | {"trainyard:stack": "dev"}]))
    assert "must be a cluster without Karpenter" in fault and "with nodes of theirs" in fault
    assert said(account(karpenter_nodes=[NODE | {"trainyard:stack": "dev"}])) == []


def test_names_that_are_taken_in_it_are_found_before_anything_is_made() -> None:
    """Only where the caller enters it: the error about that says all."""
    crd = ObjectName("CustomResourceDefinition", "nodepools.karpenter.sh")
    taken = {crd: OwnerFound(release=("karpenter", "karpenter"), managers=("helm",))}
    [fault] = said(account(cluster_objects=taken))
    assert "of Helm release karpenter in karpenter" in fault
    told = account(replace(SOUND, caller_enters=False), cluster_objects=taken)
    assert len(said(told)) == 1 and not told.cluster_objects.called


def test_device_plugins_of_others_are_asked_for_where_the_caller_enters_the_cluster() -> None:
    other = PluginFound(
        name="gpus",
        namespace="platform",
        images=("nvcr.io/nvidia/k8s-device-plugin:v0.17.0",),
        tolerated=("nvidia.com/gpu",),
        owner=OwnerFound(release=None, managers=()),
    )
    [warning] = said(account(device_plugins=[other]))
    assert "DaemonSet gpus in platform" in warning
    told = account(replace(SOUND, caller_enters=False), device_plugins=[other])
    said(told)
    assert not told.device_plugins.called


def test_custom_networking_that_only_the_daemon_set_shows_is_found() -> None:
    env = {"AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG": "true"}
    [fault] = said(account(cni_env=env))
    assert fault.startswith("environment.pools.h100.instance_types: must be types with a free")
    of_add_on = AddOnFound(
        version=BUILDS["vpc-cni"], configuration=json.dumps({"env": env}), tags={}
    )
    both = replace(SOUND, add_ons={**SOUND.add_ons, "vpc-cni": of_add_on})
    assert said(account(both, cni_env=env)) == [fault], "said once"


def test_custom_networking_without_an_eni_config_for_the_zones_is_found() -> None:
    env = {"AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG": "true"}
    zoned = env | {"ENI_CONFIG_LABEL_DEF": "topology.kubernetes.io/zone"}
    g6e = at("pools", {"g6e": {"instance_types": ["g6e.48xlarge"], "max_nodes": 1}})
    with_pool = (g6e, at("jobs", {}))
    [error] = said(account(cni_env=zoned, eni_configs=["ap-northeast-2a"]), *with_pool)
    assert "none is called ap-northeast-2c: nodes never become Ready" in error
    both = ["ap-northeast-2a", "ap-northeast-2c"]
    assert said(account(cni_env=zoned, eni_configs=both), *with_pool) == []
    told = account(cni_env=env)
    told.eni_configs.side_effect = NotAnswered("https://x: HTTP status 404")
    assert said(told, *with_pool) == []


def test_the_strict_mode_of_the_vpc_cni_is_said_once() -> None:
    """Each pod needs a policy there, and the stack makes none for its controllers: `up` waited for them."""
    env = {"NETWORK_POLICY_ENFORCING_MODE": "strict"}

    def configured(**values: Any) -> ClusterFound:
        text = json.dumps(values)
        add_on = AddOnFound(version=BUILDS["vpc-cni"], configuration=text, tags={})
        return replace(SOUND, add_ons={**SOUND.add_ons, "vpc-cni": add_on})

    enforces = configured(enableNetworkPolicy="true")
    [warning] = said(account(configured(enableNetworkPolicy="true", env=env), cni_env=env))
    assert warning.startswith("environment.cluster.name: the VPC CNI of research is in strict mode")
    assert said(account(enforces, cni_env=env)) == [warning], "only the DaemonSet shows it"
    standard = {"NETWORK_POLICY_ENFORCING_MODE": "standard"}
    assert said(account(enforces, cni_env=standard)) == []
    assert said(account(configured(env=env), cni_env=env)) == [], "it enforces no policies"


def test_dns_is_asked_about_where_the_caller_enters_the_cluster() -> None:
    shut = InterfaceFound(address="10.20.16.9", groups=("sg-node",), rules=())
    fault, warning = said(account(interfaces_of=[shut]))
    assert "CoreDNS of research at 10.20.16.9" in fault and "have no taint" in warning
    told = account(replace(SOUND, caller_enters=False), interfaces_of=[shut])
    said(told)
    assert not told.dns_pods.called


@pytest.mark.parametrize("ranges", [(), ("198.51.100.0/24",)])
def test_a_public_endpoint_that_does_not_answer_here_is_refused(ranges: tuple[str, ...]) -> None:
    closed = replace(SOUND, public_ranges=ranges)
    [fault] = said(account(closed))
    assert "this machine has 203.0.113.7" in fault and "203.0.113.7/32" in fault
    assert said(account(closed), *PRIVATE) == [], "a private one is reached from inside"


def test_the_control_plane_is_in_no_sum_and_takes_no_time() -> None:
    plan = environment_plan(*IN_CLUSTER)
    money, time = estimate(plan), schedule(plan)
    assert not [line for line in money.fixed if "control plane" in line.what]
    [line] = [line for line in money.usage if "control plane" in line.what]
    assert line.what == f"control plane of {NAME}"
    assert line.assumption == "existing: not in this sum"
    names = {stage.name for stage in time.stages}
    assert not names & {"cluster", "coredns", "first add-ons", "VPC"}
    before = schedule(environment_plan(EXISTING_VPC)).seconds
    assert time.seconds < before - 240
