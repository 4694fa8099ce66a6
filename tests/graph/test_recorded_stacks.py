"""Recorded stacks, as a reviewer reads them, and rules over the graph of every stack there is.

dev, existing-vpc and isolated are recorded whole (test_environment.py, test_existing_network.py,
test_isolated.py). Of the others a golden says what is different from one of these.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any

import pytest

from policy_pack.policies import OWN_KEYS, RULES
from tests.policy_pack.test_policies import resources, violations
from tests.support.everything import everything
from tests.support.existing_vpc import SUBNETS
from tests.support.graph_rules import OF_EVERY_GRAPH, Rule, in_the_zone
from tests.support.recording import Changes, Graph, Node, deploy
from tests.support.stackfile import ENVIRONMENT, Edit, at, environment_plan, without
from tests.support.stacks import BLOCK, H100, STACKS, planned, recorded
from trainyard.plan import EnvironmentPlan

Golden = Callable[..., None]
MORE: dict[str, tuple[Edit, ...]] = {
    "two-pools": (
        at("pools.h100", H100 | {"capacity": "block", "reservation": BLOCK}),
        at("pools.g6e.replicas", 2),
        at("pools.g6e.warm_spares", 1),
    ),
    "private": (
        at("cluster.endpoint", "private"),
        without("cluster.public_access_cidrs"),
        at("cluster.tunnel_port", 8443),
        at("cluster.service_cidr", "192.168.128.0/18"),
    ),
    "efs-only": (
        without("storage.scratch"),
        at("jobs.t5-large.checkpoints.store", "home"),
    ),
}
"""What is recorded beside STACKS → how it differs from Pulumi.dev.yaml's."""
EVERYTHING = "everything"
ALL = (*STACKS, *MORE, EVERYTHING)


def changes_of(stack: str) -> Changes:
    """The changes that make a stack of ALL from Pulumi.dev.yaml."""

    def changes(values: dict[str, Any]) -> None:
        if stack == EVERYTHING:
            values.clear()
            values.update(copy.deepcopy(everything()))
            for job in values[ENVIRONMENT]["jobs"].values():
                job.pop("wait", None)  # nobody runs it here
        for edit in (STACKS | MORE).get(stack, ()):
            edit(values[ENVIRONMENT])

    return changes


@functools.cache
def graph_of(stack: str) -> Graph:
    return recorded(stack) if stack in STACKS else deploy("dev", changes_of(stack))


@functools.cache
def plan_of(stack: str) -> EnvironmentPlan:
    if stack in STACKS:
        return planned(stack)
    if stack in MORE:
        return environment_plan(*MORE[stack])

    def whole(settings: dict[str, Any]) -> None:
        settings.clear()
        settings.update(copy.deepcopy(everything()[ENVIRONMENT]))

    return environment_plan(whole)


@pytest.mark.parametrize("stack", MORE)
def test_the_graph_is_the_one_that_was_reviewed(
    stack: str, dev: Graph, golden_beside: Golden
) -> None:
    golden_beside(stack, graph_of(stack), dev)


def test_a_stack_with_everything_has_the_resources_that_were_reviewed(
    dev: Graph, golden_beside: Golden
) -> None:
    """By name: what each of them is would be 9,000 lines, which nobody reads."""
    golden_beside(EVERYTHING, graph_of(EVERYTHING), dev, names_only=True)


def test_an_existing_cluster_is_the_one_that_was_reviewed(golden_beside: Golden) -> None:
    golden_beside("existing-cluster", recorded("existing cluster"), recorded("existing VPC"))


@pytest.mark.parametrize("stack", ALL)
@pytest.mark.parametrize("rule", OF_EVERY_GRAPH, ids=lambda rule: rule.__name__)
def test_every_stack_keeps_the_rule(stack: str, rule: Rule) -> None:
    assert [*rule(graph_of(stack))] == []


def _zones(stack: str) -> tuple[str, str, tuple[str, ...]]:
    """The zone, its subnet, and the subnets of fallback zones of its pools."""
    plan = plan_of(stack)
    ids = (
        SUBNETS
        if not plan.own_network
        else {zone.name: f"network-private-{zone.name[-1]}-id" for zone in plan.network.zones}
    )
    more = {zone for pool in plan.pools.values() for zone in pool.zones}
    return plan.zone, ids[plan.zone], tuple(ids[zone] for zone in sorted(more - {plan.zone}))


@pytest.mark.parametrize("stack", ALL)
def test_nodes_stores_and_jobs_are_in_the_zone(stack: str) -> None:
    assert [*in_the_zone(graph_of(stack), *_zones(stack))] == []


VIOLATES = {EVERYTHING: {"audited", "within-budget"}}
"""Recorded stack → policies that it violates by its own settings: `cluster.logs` lists `audit` alone, and its
full pools cost more than the policy allows by default."""


@pytest.mark.parametrize("stack", ALL)
def test_no_recorded_stack_violates_a_policy(stack: str) -> None:
    found = resources(graph_of(stack))
    names = [rule.name for rule in RULES if not rule.advisory and rule.config is not OWN_KEYS]
    said = {name: [*violations(name, found)] for name in names}
    assert {name for name, musts in said.items() if musts} == VIOLATES.get(stack, set()), said


def _first(graph: Graph, kind: str) -> Node:
    return graph.of(kind)[0]


def _set(kind: str, **inputs: Any) -> Callable[[Graph], object]:
    return lambda graph: _first(graph, kind).inputs.update(inputs)


def _circle(graph: Graph) -> None:
    pool, release = _first(graph, "NodePool"), graph["Release karpenter"]
    release.needs.add(pool.urn)


def _loose(kind: str) -> Callable[[Graph], object]:
    """Nothing that the first of its type needs is known any more."""
    return lambda graph: _first(graph, kind).needs.clear()


def _in_public(graph: Graph) -> None:
    spec = _first(graph, "EC2NodeClass").inputs["spec"]
    spec["subnetSelectorTerms"] = [{"id": "network-public-a-id"}]


def _without_block(graph: Graph) -> None:
    for node in graph.of("BucketPublicAccessBlock"):
        del graph.nodes[node.urn]


def _narrow_tls(graph: Graph) -> None:
    one = _first(graph, "BucketPolicy")
    one.inputs["policy"] = one.inputs["policy"].replace('"s3:*"', '"s3:GetBucketLocation"')


_WILD = '{"Statement": [{"Effect": "Allow", "Action": "ec2:*", "Resource": "*"}]}'
BROKEN: dict[str, tuple[str, Callable[[Graph], object], str]] = {
    "a circle": ("no_circle", _circle, "a circle"),
    "a pool without its nodes": ("destroy_order", _loose("NodePool"), "may outlive"),
    "a volume without its file server": (
        "data_outlives_its_users",
        _loose("PersistentVolume"),
        "may outlive aws:",
    ),
    "a job without its claims": ("data_outlives_its_users", _loose("TrainJob"), "VolumeClaim"),
    "a job without its pool": ("destroy_order", _loose("TrainJob"), "TrainJob"),
    "nodes in a public subnet": ("nodes_are_private", _in_public, "which is public"),
    "a subnet that gives addresses": (
        "nodes_are_private",
        _set("Subnet", mapPublicIpOnLaunch=True),
        "gives public addresses",
    ),
    "an open EFS": ("stores_are_closed", _set("FileSystem", encrypted=False), "is not encrypted"),
    "a public mount target": (
        "stores_are_closed",
        _set("MountTarget", subnetId="network-public-a-id"),
        "is in a public subnet",
    ),
    "a bucket without its block": ("stores_are_closed", _without_block, "has no Bucket"),
    "a bucket whose objects need no TLS": (
        "buckets_refuse_plain_http",
        _narrow_tls,
        "answers without TLS",
    ),
    "logs for ever": ("logs_end", _set("LogGroup", retentionInDays=None), "has no retention"),
    "one role with a boundary": (
        "roles_share_a_boundary",
        _set("aws:iam/role:Role", permissionsBoundary="arn:aws:iam::123456789012:policy/boundary"),
        "has the boundary None",
    ),
    "a wildcard": (
        "no_wildcard_without_a_reason",
        _set("RolePolicy", policy=_WILD),
        "allows ec2:* on *",
    ),
    "a rule for everybody": (
        "rules_are_narrow",
        _set("SecurityGroupIngressRule", cidrIpv4="0.0.0.0/0"),
        "lets 0.0.0.0/0 in",
    ),
    "an endpoint for half of the internet": (
        "rules_are_narrow",
        _set("eks:index:Cluster", publicAccessCidrs=["128.0.0.0/1"]),
        "answers everybody",
    ),
}
"""A graph that breaks a rule → rule, what is done to the graph, what is said."""


def _copy(graph: Graph) -> Graph:
    """Another graph, whose inputs and edges can change."""
    nodes = {
        urn: Node(n.kind, n.name, n.urn, copy.deepcopy(n.inputs), n.options, set(n.needs))
        for urn, n in graph.nodes.items()
    }
    return Graph(nodes=nodes)


@pytest.mark.parametrize("case", BROKEN)
def test_a_rule_finds_what_breaks_it(case: str, most: Graph) -> None:
    name, damage, said = BROKEN[case]
    [rule] = [each for each in OF_EVERY_GRAPH if each.__name__ == name]
    broken = _copy(most if "bucket" in case else graph_of("dev"))
    damage(broken)
    assert any(said in line for line in rule(broken)), [*rule(broken)]


def test_what_is_in_another_zone_is_found() -> None:
    damaged = {
        "EC2NodeClass": {"spec": {"subnetSelectorTerms": [{"id": "network-private-c-id"}]}},
        "LustreFileSystem": {"subnetIds": "network-private-c-id"},
        "MountTarget": {"subnetId": "network-private-c-id"},
    }
    for kind, inputs in damaged.items():
        broken = _copy(graph_of("dev"))
        _first(broken, kind).inputs.update(inputs)
        assert len([*in_the_zone(broken, *_zones("dev"))]) == 1, kind
