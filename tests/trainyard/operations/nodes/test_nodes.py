"""`trainyard nodes`: what each node is, who holds it, what it costs and when an empty one ends."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from tests.support.tool import run_word
from tests.trainyard.operations.busy import busy
from tests.trainyard.operations.finished import at, node, node_pool, pod
from trainyard.catalog.aws.prices import price
from trainyard.operations.nodes import nodes
from trainyard.operations.nodes.nodes import EMPTY, SYSTEM, Node, nodes_of, text
from trainyard.operations.reach.snapshot import Snapshot
from trainyard.operations.reach.target import TargetError

Object = dict[str, Any]
OF_POOL = {"trainyard.io/nodes": "training", "trainyard.io/pool": "g6e"}


def _cluster(minutes: float, *nodes: Object, **others: list[Object]) -> Snapshot:
    """A cluster with these nodes, so many minutes after the pods of its last job ended."""
    claims = [
        {
            "metadata": {"name": f"claim-of-{each['metadata']['name']}", "labels": OF_POOL},
            "status": {"nodeName": each["metadata"]["name"], "lastPodEventTime": at(10)},
        }
        for each in nodes
    ]
    objects = {"nodes": [*nodes], "nodeclaims": claims, "nodepools": [node_pool()], "pods": []}
    taken_at = busy().taken_at.fromisoformat(at(10 + minutes))
    return Snapshot(objects=objects | others, taken_at=taken_at)


def _node(number: int, **labels: str) -> Object:
    made = node(number, **{"kubernetes.io/arch": "amd64"}, **labels)
    made["metadata"]["creationTimestamp"] = at(0)
    made["status"] = {
        "nodeInfo": {"osImage": "Amazon Linux 2023.9"},
        "allocatable": {"nvidia.com/gpu": "8", "vpc.amazonaws.com/efa": "4"},
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    return made


def _pod(of: Object | None = None, **about: Any) -> Object:
    made = of or pod(0, node="node-0")
    made["metadata"] |= about
    made["status"] = {"phase": "Running"}
    return made


def test_a_row_says_what_a_node_is_and_what_it_costs() -> None:
    [found] = nodes_of(_cluster(0, _node(0, **OF_POOL)))
    paid = price("ec2", "g6e.48xlarge", "us-east-1")
    assert found == Node(
        name="node-0",
        pool="g6e",
        instance_type="g6e.48xlarge",
        architecture="amd64",
        system="Amazon Linux 2023.9",
        gpus=8,
        efa=4,
        zone="us-east-1a",
        usd_per_hour=paid.usd if paid else None,
        state="ready",
        held_by=(),
        ends_in_seconds=15 * 60,
    )
    row = text([found])[1]
    for word in ("g6e.48xlarge", "amd64", "Amazon Linux 2023.9", "us-east-1a", "ends in 15 min"):
        assert word in row


@pytest.mark.parametrize(("minutes", "left"), ((4, 11 * 60), (20, 0)))
def test_karpenter_ends_an_empty_node_a_quarter_of_an_hour_after_its_last_pod(
    minutes: float, left: int
) -> None:
    [found] = nodes_of(_cluster(minutes, _node(0, **OF_POOL)))
    assert found.ends_in_seconds == left


@pytest.mark.parametrize(
    ("pods", "held_by"),
    (
        ([_pod()], ("training/t5",)),
        ([_pod(), _pod(pod(1, node="node-0"))], ("training/t5",)),
        ([_pod(labels={}, name="spare-0", namespace="kube-system")], ("kube-system/spare-0",)),
        ([_pod(ownerReferences=[{"kind": "DaemonSet", "name": "dcgm"}])], ()),
        ([pod(0, node="node-0")], ()),
    ),
    ids=("a job", "two ranks", "a pod of no job", "a DaemonSet", "an ended pod"),
)
def test_a_node_is_held_by_pods_that_go_on_and_by_no_daemon_set(
    pods: list[Object], held_by: tuple[str, ...]
) -> None:
    [found] = nodes_of(_cluster(1, _node(0, **OF_POOL), pods=pods))
    assert found.held_by == held_by and (found.ends_in_seconds is None) == bool(held_by)


def test_a_node_of_a_node_group_has_the_price_of_its_kind_of_capacity() -> None:
    made = _node(1, **{"eks.amazonaws.com/capacityType": "ON_DEMAND"})
    del made["metadata"]["labels"]["karpenter.sh/capacity-type"]
    [found] = nodes_of(_cluster(1, made))
    paid = price("ec2", "g6e.48xlarge", "us-east-1")
    assert paid and (found.pool, found.usd_per_hour) == (SYSTEM, paid.usd)


def test_nothing_ends_a_node_of_a_fixed_pool_or_of_the_system() -> None:
    fixed = node_pool()
    fixed["spec"]["replicas"] = 2
    own = _node(0, **OF_POOL, **{"karpenter.sh/nodepool": "g6e"})
    system, kept = nodes_of(_cluster(60, own, _node(1), nodepools=[fixed]))
    assert (system.name, system.pool, kept.name) == ("node-1", SYSTEM, "node-0")
    assert system.ends_in_seconds is kept.ends_in_seconds is None
    assert text([system, kept])[2].endswith(f" {EMPTY}")


def test_a_node_that_is_launched_and_not_there_yet_has_a_row() -> None:
    found = {each.name: each for each in nodes_of(busy())}
    assert found["h100-x"].state == "launching" and found["node-2"].state == "sick"
    assert found["node-0"].held_by == ("training/t5-large",)
    assert text([*found.values()])[-1].startswith("5 nodes, at least ")


def test_the_dollars_of_empty_nodes_are_said() -> None:
    every = [*nodes_of(_cluster(1, _node(0, **OF_POOL), _node(1, **OF_POOL), pods=[_pod()]))]
    paid = price("ec2", "g6e.48xlarge", "us-east-1")
    assert paid
    said = text(every)[-1]
    assert said == (
        f"2 nodes, {2 * paid.usd:,.2f} USD an hour without tax; 1 of them empty, {paid.usd:,.2f} USD an hour"
    )
    assert text([]) == ["the cluster has no nodes"]


def test_the_word_prints_a_table_and_json(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(nodes, "_snapshot", lambda stack: busy())
    assert run_word("nodes", ["dev"]) == 0
    assert "node-4" in capsys.readouterr().out
    assert run_word("nodes", ["dev", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["nodes"]
    assert [each["pool"] for each in found] == ["g6e"] * 3 + ["h100"] * 2


def test_a_team_that_cannot_read_nodes_is_told_what_it_can_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    unseen = replace(busy(), unseen=frozenset({"nodes"}))
    monkeypatch.setattr(nodes, "_snapshot", lambda stack: unseen)
    assert run_word("nodes", ["team-vision"]) == 1
    assert "trainyard watch team-vision" in capsys.readouterr().err


def test_a_cluster_that_does_not_answer_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(stack: str) -> Snapshot:
        raise TargetError(f"stack {stack} has no cluster")

    monkeypatch.setattr(nodes, "_snapshot", fails)
    assert run_word("nodes", ["dev"]) == 1
    assert "has no cluster" in capsys.readouterr().err
