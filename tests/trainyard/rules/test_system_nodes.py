"""System nodes have CPU for the pods of all controllers, and a type that the region sells."""

from __future__ import annotations

import re

import pytest

from tests.support.existing_cluster import IN_CLUSTER
from tests.support.stackfile import Edit, at, environment, planned
from trainyard.catalog.aws.instances import GENERAL_SIZES
from trainyard.derive.system_pods import system_pods
from trainyard.rules.system_nodes import system_node_warnings

LARGE = at("system_nodes.instance_type", "m7i.large")
THREE = at("system_nodes.nodes", 3)
QUEUES = at("queues", {})
TEAM = at("teams", {"vision": {"deployer": "arn:aws:iam::123456789012:role/deployer"}})
PATH = "environment.system_nodes.instance_type"


def refused(*edits: Edit) -> list[str]:
    """Errors about the type of system nodes."""
    return [str(each) for each in planned(*edits).errors if each.path == PATH]


def test_two_small_nodes_have_no_room_for_kueue_beside_karpenter_and_jobset() -> None:
    assert refused(LARGE, QUEUES, TEAM) == [
        f"{PATH}: must have room for the pods of controllers: Kueue requests 0.5 vCPUs and stays Pending; got"
        " 2 nodes of m7i.large, which have 0.78 vCPUs each beside Karpenter and DaemonSets. Fix: write"
        " m7i.xlarge, or set nodes to 3"
    ]
    assert refused(LARGE, QUEUES, TEAM, THREE) == []


def test_a_prometheus_of_a_vcpu_needs_a_node_without_karpenter_or_a_larger_one() -> None:
    many = (LARGE, at("metrics", {"retention_days": 5}), at("pools.h100.max_nodes", 96))
    [refusal] = refused(*many)
    assert "Prometheus requests 1 vCPUs" in refusal
    assert refusal.endswith("Fix: write m7i.xlarge, or set nodes to 3")
    assert refused(*many, THREE) == []


def test_small_nodes_hold_an_environment_without_queues() -> None:
    assert refused(LARGE) == refused(LARGE, at("metrics", {"grafana": True, "alerts": {}})) == []


@pytest.mark.parametrize("kind", ["p5.48xlarge", "m7g.xlarge", "trn1.32xlarge", "c7i"])
def test_a_type_that_is_refused_is_not_doubted_too(kind: str) -> None:
    """The first three are sold by EC2; the last one is no type, and the error says so."""
    edit = at("system_nodes.instance_type", kind)
    assert len(refused(edit)) == 1
    said = [str(one) for one in planned(edit).warnings if one.path == PATH]
    assert not any("not among the instance types" in one for one in said)


FULL = [
    at("metrics", {"retention_days": 1, "grafana": True, "alerts": {}, "push_gateway": True}),
    at("training_operator", {"version": "1.8.1"}),
    *(at(name, {}) for name in ("repair", "history", "told")),
    QUEUES,
    TEAM,
]
"""Everything that has pods on system nodes."""


@pytest.mark.parametrize("most", [1, 256])
def test_the_default_type_holds_everything_that_an_environment_can_have(most: int) -> None:
    assert refused(*FULL, at("pools.h100.max_nodes", most)) == []


@pytest.mark.parametrize("family", GENERAL_SIZES)
def test_the_next_size_and_one_node_more_end_the_refusal(family: str) -> None:
    kind = f"{family}.{GENERAL_SIZES[family][0]}"
    for fix in (word for each in refused(*FULL, on(kind)) for word in fixes(each)):
        assert refused(*FULL, on(kind), fix) == [], kind


def on(instance_type: str) -> Edit:
    return at("system_nodes.instance_type", instance_type)


def fixes(refusal: str) -> list[Edit]:
    """What its fix says, one edit for each way."""
    found = re.search(r"Fix: write (\S+?)(?:, or set nodes to (\d+))?$", refusal)
    assert found
    more = [at("system_nodes.nodes", int(found[2]))] if found[2] else []
    return [on(found[1]), *more]


def test_in_an_existing_cluster_only_coredns_may_be_on_other_nodes() -> None:
    [refusal] = refused(*IN_CLUSTER, LARGE, QUEUES, TEAM)
    assert "Kueue requests 0.5 vCPUs" in refusal
    assert refused(*IN_CLUSTER, LARGE, QUEUES, TEAM, THREE) == []
    names = [pod.name for pod in system_pods(environment(*IN_CLUSTER))]
    assert names == ["JobSet"]


def warned(region: str, *edits: Edit) -> list[str]:
    """Warnings about the type of system nodes in a region."""
    return [one.text for one in system_node_warnings(region, environment(*edits))]


def test_a_family_that_the_region_lacks_is_a_warning_with_one_that_it_has() -> None:
    [warning] = warned("ca-west-1")
    assert (
        warning.startswith("ca-west-1 had no m7i in ")
        and ": write m8i.xlarge, or make sure" in warning
    )
    assert "Values=m7i.xlarge` lists each zone" in warning
    assert warned("ca-west-1", on("m8i.xlarge")) == []
    [none_known] = warned("me-south-1")
    assert ": take another type, or make sure that `aws ec2" in none_known


@pytest.mark.parametrize("kind", ["p5.48xlarge", "m7g.xlarge", "trn2.48xlarge", "mac2.metal"])
def test_a_type_that_ec2_has_and_that_is_refused_is_not_called_unknown_beside_it(kind: str) -> None:
    assert len(refused(on(kind))) == 1 and warned("us-east-1", on(kind)) == []
    [warning] = warned("us-east-1", on("m9z.xlarge"))
    assert warning.startswith("m9z.xlarge is not among the instance types that EC2 had in")


def test_families_of_which_nothing_is_known_are_not_judged_by_region() -> None:
    assert warned("me-south-1", on("m6i.xlarge")) == warned("us-east-1") == warned("moon-1") == []
