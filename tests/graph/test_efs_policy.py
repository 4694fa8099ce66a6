"""A file system that only this cluster mounts: its policy, the driver's role, and the options of mounts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.recording import Graph
from tests.support.stacks import recorded
from trainyard.objects.iam.policies import unlike

STACK = "a store of this cluster only"


@pytest.fixture(scope="module")
def graph() -> Graph:
    return recorded(STACK)


def volumes(graph: Graph, store: str) -> list[Any]:
    return [
        each
        for each in graph.of("PersistentVolume")
        if f"-{store}-" in each.inputs["metadata"]["name"]
    ]


def test_other_stacks_have_nothing_of_it() -> None:
    dev = recorded("dev")
    assert not dev.of("FileSystemPolicy")
    assert "efs-csi-node-sa" not in dev.golden() and '"iam"' not in dev.golden()


def test_the_policy_refuses_plain_text_and_stands_before_anybody_mounts(graph: Graph) -> None:
    policy = graph["FileSystemPolicy home"]
    [deny] = json.loads(policy.inputs["policy"])["Statement"]
    assert deny["Effect"] == "Deny" and deny["Principal"] == {"AWS": "*"}
    assert deny["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    found = volumes(graph, "home")
    assert len(found) == 2, "the environment's and the team's"
    for volume in found:
        assert graph.waits_for(volume, policy)
        assert volume.inputs["spec"]["mountOptions"] == ["iam"]


def test_the_drivers_pods_on_nodes_have_the_role_before_they_start(graph: Graph) -> None:
    association = graph["PodIdentityAssociation aws-efs-csi-driver"]
    assert association.inputs["serviceAccount"] == "efs-csi-node-sa"
    assert graph.waits_for(graph["Addon aws-efs-csi-driver"], association)
    document = json.loads(graph["RolePolicy aws-efs-csi-driver-stores"].inputs["policy"])
    [mount] = document["Statement"]
    assert mount["Resource"].endswith(":file-system/home")
    assert sorted(mount["Action"]) == [
        f"elasticfilesystem:Client{what}" for what in ("Mount", "RootAccess", "Write")
    ]


def test_a_policy_has_each_id_once(graph: Graph) -> None:
    """IAM refuses the role of the driver of two buckets otherwise."""
    document = json.loads(graph["RolePolicy aws-mountpoint-s3-csi-driver-stores"].inputs["policy"])
    ids = [each["Sid"] for each in document["Statement"]]
    assert ids == ["List", "Objects", "List1", "Objects1"]
    assert unlike([{"Sid": "A"}, {}, {}]) == [{"Sid": "A"}, {}, {}]
