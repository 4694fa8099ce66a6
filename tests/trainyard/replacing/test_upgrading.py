"""A preview says that an update moves Kubernetes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.deployed import deployed
from tests.support.existing_vpc import NETWORK, SUBNETS
from tests.support.graphs import environment
from tests.support.stackfile import Edit, at, environment_plan
from trainyard.replacing.deployed import PROVIDER, Deployed
from trainyard.replacing.replacing import CLUSTER, NODES
from trainyard.replacing.upgrading import (
    held_warnings,
    node_warnings,
    stalling_warnings,
    upgrade_warnings,
    version_errors,
)

OLD, NEW = at("cluster.version", "1.34"), at("cluster.version", "1.35")


def _said(before: Deployed, *edits: Edit) -> list[str]:
    return [str(each) for each in upgrade_warnings(environment_plan(*edits), before)]


def test_another_version_than_the_deployed_one_is_said_with_what_happens_to_gangs() -> None:
    before = deployed(environment(OLD))
    [said] = _said(before, NEW)
    assert said.startswith(
        "environment.cluster.version: this update moves Kubernetes from 1.34 to 1.35, and this program cannot"
        " take it back"
    )
    assert "the 2 system nodes are replaced one by one" in said and "Gangs go on" in said


def test_a_control_plane_that_is_newer_than_the_stack_file_is_not_taken_back() -> None:
    """As after an upgrade in the console and `pulumi refresh`: the nodes have the version of before."""
    errors = [*version_errors(environment_plan(OLD), deployed(environment(NEW)))]
    assert [str(each) for each in errors] == [
        'environment.cluster.version: must not be lower than the cluster\'s, "1.35"; got "1.34". Fix: write "1.35";'
        " docs/upgrades.md says how to go back"
    ]
    assert [*version_errors(environment_plan(NEW), deployed(environment(OLD)))] == []
    [far] = version_errors(
        environment_plan(at("cluster.version", "1.36")), deployed(environment(OLD))
    )
    assert "at most one minor version above" in str(far)


def test_another_driver_of_efs_is_said_with_what_becomes_of_its_mounts() -> None:
    def said(*edits: Edit) -> list[str]:
        before = deployed(environment(OLD))
        return [each.text for each in stalling_warnings(environment_plan(*edits), before)]

    [text] = said(NEW)
    assert "the driver of EFS from v3.4.0-eksbuild.1 to v3.4.1-eksbuild.1" in text
    assert said(OLD) == []
    assert [*stalling_warnings(environment_plan(NEW), Deployed())] == []


def budget(name: str, allowed: int, pods: int = 1) -> dict[str, Any]:
    status = {"disruptionsAllowed": allowed, "expectedPods": pods}
    return {"metadata": {"namespace": "kube-system", "name": name}, "status": status}


def test_budgets_that_hold_a_system_node_are_named_before_the_control_plane_moves() -> None:
    there = [budget("metrics-server", 0), budget("coredns", 1), budget("of-nothing", 0, pods=0)]
    provider = {"kubeconfig": "{}", "clusterIdentifier": "c"}
    before = Deployed(resources={CLUSTER: {"version": "1.34"}, (PROVIDER, "cluster"): provider})
    [said] = held_warnings(environment_plan(NEW), before, lambda *_: there)
    assert "PodDisruptionBudget kube-system/metrics-server allows no pod to leave" in said.text
    assert [*held_warnings(environment_plan(NEW), before, lambda *_: there[1:])] == []
    assert [*held_warnings(environment_plan(OLD), before, lambda *_: there)] == []


def test_the_same_version_and_a_first_update_say_nothing() -> None:
    assert _said(deployed(environment(OLD)), OLD) == []
    assert _said(Deployed(), NEW) == []


LARGER = at("system_nodes", {"instance_type": "m7i.2xlarge"})
THERE = at("network", NETWORK)
MOVED = at(
    "network",
    {**NETWORK, "private_subnets": {**SUBNETS, "ap-northeast-2b": "subnet-0fedcba9876543210"}},
)


def _nodes(instance_type: str = "m7i.xlarge", subnets: tuple[str, ...] = ()) -> Deployed:
    found = {"instanceTypes": [instance_type], "subnetIds": [*subnets]}
    return Deployed(resources={NODES: found})


@pytest.mark.parametrize(
    ("before", "edit", "path"),
    [
        (_nodes(), LARGER, "environment.system_nodes.instance_type"),
        (_nodes("m7i.2xlarge"), THERE, "environment.system_nodes.instance_type"),
        (_nodes(subnets=(*SUBNETS.values(),)), MOVED, "environment.network.private_subnets"),
    ],
    ids=["type", "type in a VPC", "subnet"],
)
def test_system_nodes_that_go_before_others_come_are_said_with_what_is_away(
    before: Deployed, edit: Edit, path: str
) -> None:
    [said] = node_warnings(environment_plan(edit), before)
    assert said.path == path
    assert "deletes all 2 system nodes before it creates others" in said.text
    assert "for 6 to 11 minutes there is no CoreDNS, Karpenter" in said.text


def test_the_type_of_system_nodes_is_that_of_the_node_group() -> None:
    [said] = node_warnings(environment_plan(LARGER), deployed(environment(OLD)))
    assert "moves the system nodes to m7i.2xlarge" in said.text


def test_system_nodes_that_stay_or_are_new_say_nothing() -> None:
    same = _nodes(subnets=(*reversed(SUBNETS.values()),))
    assert [*node_warnings(environment_plan(THERE), same)] == []
    assert [*node_warnings(environment_plan(NEW), deployed(environment(OLD)))] == []
    assert [*node_warnings(environment_plan(LARGER), Deployed())] == []
