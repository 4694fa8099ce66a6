"""Durations and refusals, from events of the engine and objects of a cluster as they look."""

from __future__ import annotations

import json
from typing import Any

import pytest

from trainyard.catalog.aws.latencies import LATENCIES
from trainyard.operations.prove.record import iso
from trainyard.operations.prove.seen import (
    added,
    after_first_node,
    boots,
    events_of,
    node_of,
    operations,
    pulls,
    refusals,
    row_of,
)

Object = dict[str, Any]
CLUSTER = "aws:eks/cluster:Cluster"
T0 = 1_795_000_000


def _event(kind: str, at: float, type_: str, op: str = "create", **inputs: Any) -> Object:
    state = {"type": type_, "custom": True, "inputs": inputs}
    which = "old" if op == "delete" else "new"
    step = {
        "op": op,
        "urn": f"urn:pulumi:prove::trainyard::{type_}::x",
        "type": type_,
        which: state,
    }
    return {"timestamp": T0 + at, kind: {"metadata": step}}


def _lasts(
    seconds: float, type_: str, op: str = "create", begin: float = 0, **inputs: Any
) -> list[Object]:
    return [
        _event("resourcePreEvent", begin, type_, op, **inputs),
        _event("resOutputsEvent", begin + seconds, type_, op, **inputs),
    ]


ROWS = [
    (CLUSTER, {}, "eks.cluster"),
    ("aws:eks/nodeGroup:NodeGroup", {}, "eks.nodegroup"),
    ("aws:eks/addon:Addon", {"addonName": "coredns"}, "eks.addon.coredns"),
    ("aws:eks/addon:Addon", {"addonName": "kube-proxy"}, "eks.addon"),
    ("aws:ec2/vpcEndpoint:VpcEndpoint", {"vpcEndpointType": "Interface"}, "ec2.interface-endpoint"),
    ("aws:ec2/vpcEndpoint:VpcEndpoint", {}, "ec2.vpc-endpoint"),
    ("aws:fsx/lustreFileSystem:LustreFileSystem", {"storageCapacity": 1200}, "fsx.lustre"),
    ("aws:fsx/lustreFileSystem:LustreFileSystem", {"storageCapacity": 48000}, "fsx.lustre.large"),
    ("kubernetes:helm.sh/v3:Release", {"name": "karpenter"}, "helm.karpenter"),
    ("kubernetes:helm.sh/v3:Release", {"name": "karpenter-crd"}, ""),
    ("kubernetes:helm.sh/v3:Release", {"name": "kubeflow-trainer"}, "helm.controller"),
    ("aws:iam/role:Role", {}, ""),
]


@pytest.mark.parametrize(("type_", "inputs", "row"), ROWS)
def test_a_resource_has_the_row_of_its_type(type_: str, inputs: Object, row: str) -> None:
    found = [*operations(_lasts(100, type_, **inputs), "small")]
    assert [(one.row, one.seconds, one.start) for one in found] == (
        [(row, 100, iso(T0))] if row else []
    )
    assert not row or row in LATENCIES


def test_a_deletion_has_a_row_of_its_own() -> None:
    [found] = operations(_lasts(140, CLUSTER, "delete"), "destroy")
    assert (found.row, found.step) == ("eks.cluster.delete", "destroy")
    assert row_of({"op": "delete", "old": {"type": "aws:ec2/vpc:Vpc"}}) == ""


@pytest.mark.parametrize("op", ["same", "update", "refresh", "replace"])
def test_what_neither_creates_nor_deletes_is_no_duration(op: str) -> None:
    assert [*operations(_lasts(100, CLUSTER, op), "small")] == []


def test_a_creation_that_failed_or_was_killed_is_no_duration() -> None:
    begun, _ = _lasts(100, CLUSTER)
    failed = _event("resOpFailedEvent", 50, CLUSTER)
    assert [*operations([begun], "small")] == [*operations([begun, failed], "small")] == []


def test_a_line_that_a_killed_engine_has_not_ended_is_left_out() -> None:
    whole = json.dumps(_lasts(1, CLUSTER)[0])
    assert events_of(f"{whole}\n{whole[:40]}") == [json.loads(whole)]


def test_errors_of_the_engine_are_kept_word_for_word_and_once() -> None:
    said = "creating EKS Cluster: operation error EKS: UnsupportedAvailabilityZoneException\n"
    events = [
        {"diagnosticEvent": {"severity": "error", "message": f"<{{%reset%}}>{said}<{{%reset%}}>"}},
        {"diagnosticEvent": {"severity": "error", "message": said}},
        {"diagnosticEvent": {"severity": "warning", "message": "old"}},
        {"summaryEvent": {}},
    ]
    assert refusals(events) == [said.strip()]


def _node(ready_after: float, **labels: str) -> Object:
    conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": iso(T0 + ready_after)}]
    return {"metadata": {"labels": labels}, "status": {"conditions": conditions}}


def test_releases_count_from_the_first_ready_node_for_which_they_wait() -> None:
    chart = {"name": "karpenter"}
    seen = [
        *operations(_lasts(120, "aws:eks/nodeGroup:NodeGroup", begin=10), "small"),
        *operations(_lasts(160, "kubernetes:helm.sh/v3:Release", begin=5, **chart), "small"),
    ]
    nodes = [_node(103), _node(100), _node(20, **{"karpenter.sh/nodepool": "cpu"})]
    found = {one.row: one.seconds for one in after_first_node(seen, nodes)}
    assert found == {"eks.nodegroup": 120, "helm.karpenter": 65, "eks.nodegroup.ready": 90}


def test_without_a_node_no_release_is_counted() -> None:
    seen = [*operations(_lasts(160, "kubernetes:helm.sh/v3:Release", name="karpenter"), "small")]
    assert seen and after_first_node(seen, []) == []


def test_a_node_starts_when_its_claim_is_made_until_pods_can_start() -> None:
    claim = {
        "metadata": {
            "creationTimestamp": iso(T0),
            "labels": {"node.kubernetes.io/instance-type": "g6.8xlarge"},
        },
        "status": {
            "conditions": [
                {"type": "Registered", "status": "True", "lastTransitionTime": iso(T0 + 60)},
                {"type": "Initialized", "status": "True", "lastTransitionTime": iso(T0 + 131)},
            ]
        },
    }
    [found] = boots([claim, {"metadata": {"creationTimestamp": iso(T0)}}], "gpu")
    assert (found.row, found.seconds, found.instance_type) == (
        "ec2.instance-boot",
        131,
        "g6.8xlarge",
    )


@pytest.mark.parametrize(
    ("took", "seconds"), [("50.123s", 50.1), ("1m5.2s", 65.2), ("912ms", 0.9), ("1h0m1s", 3601)]
)
def test_a_pull_of_the_image_takes_as_long_as_its_event_says(took: str, seconds: float) -> None:
    said = (
        'Successfully pulled image "{}" in {} ({} including waiting). Image size: 9350000000 bytes.'
    )
    events = [
        {"message": said.format(image, took, took), "firstTimestamp": iso(T0)}
        for image in ("mine:1", "other:1")
    ]
    found = [*pulls([*events, {"message": None}], "mine:1", "gpu")]
    assert [(one.row, one.seconds) for one in found] == [("job.image-pull", seconds)]


def test_a_node_is_known_without_its_name() -> None:
    info = {"osImage": "Amazon Linux 2023", "kernelVersion": "6.12.46", "kubeletVersion": "v1.35.8"}
    amounts = {"nvidia.com/gpu": "1", "vpc.amazonaws.com/efa": "1"}
    labels = {"node.kubernetes.io/instance-type": "g6.8xlarge"}
    found = node_of(
        {
            "metadata": {"name": "ip-10-0-0-1", "creationTimestamp": iso(T0), "labels": labels},
            "status": {"nodeInfo": info, "allocatable": amounts},
        }
    )
    assert (found.gpus, found.efa, found.kernel) == (1, 1, "6.12.46")
    assert "ip-10" not in str(found)


def test_what_was_seen_before_is_not_added_again() -> None:
    seen = [*operations(_lasts(100, CLUSTER), "small")]
    assert added(seen, seen) == seen
    assert len(added(seen, operations(_lasts(90, CLUSTER), "small"))) == 2
