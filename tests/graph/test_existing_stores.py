"""An environment on file systems that exist before it: nothing of them is made, what is wrong with them
is refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pulumi
import pytest

from tests.support.existing_cluster import GROUP as CLUSTER_GROUP
from tests.support.existing_cluster import IN_CLUSTER, ExistingCluster
from tests.support.existing_stores import EFS, EXISTING_STORES, GROUP, LUSTRE, ExistingStores, rule
from tests.support.existing_vpc import EXISTING_VPC
from tests.support.recording import Graph, deploy
from tests.support.stackfile import ENVIRONMENT, Edit, at

ROLE = "arn:aws:iam::111122223333:role/nlp-deployer"


def graph_with(aws: ExistingStores, *edits: Edit, preview: bool = False) -> Graph:
    """The graph of the dev stack on both file systems."""

    def changes(values: dict[str, Any]) -> None:
        for edit in (EXISTING_VPC, EXISTING_STORES, *edits):
            edit(values[ENVIRONMENT])

    return deploy("dev", changes, vpc=aws, preview=preview)


def test_nothing_of_the_file_systems_is_made() -> None:
    graph = graph_with(ExistingStores())
    made = {node.kind.rpartition(":")[2] for node in graph.nodes.values()}
    assert made & {"LustreFileSystem", "FileSystem", "MountTarget", "AccessPoint"} == set()


def test_volumes_are_those_of_the_file_systems() -> None:
    graph = graph_with(ExistingStores())
    found = {
        volume.inputs["spec"]["csi"]["volumeHandle"]: volume.inputs["spec"]["csi"]
        for volume in graph.of("PersistentVolume")
    }
    assert found.keys() == {LUSTRE, EFS}
    assert found[LUSTRE]["volumeAttributes"] == {
        "dnsname": f"{LUSTRE}.fsx",
        "mountname": "existing1",
    }


def test_the_only_rules_are_of_the_nodes_own_group() -> None:
    graph = graph_with(ExistingStores())
    rules = {
        (node.inputs["securityGroupId"], node.inputs["fromPort"], node.inputs["cidrIpv4"])
        for node in graph.of("SecurityGroupIngressRule")
        if node.name.startswith("scratch")
    }
    assert rules == {("nodes-id", 988, "10.20.0.0/20"), ("nodes-id", 1018, "10.20.0.0/20")}
    assert not any(GROUP in str(node.inputs) for node in graph.nodes.values())


@pytest.mark.parametrize("preview", [True, False])
def test_faults_of_a_lustre_end_the_program(preview: bool) -> None:
    aws = ExistingStores(interfaces={"eni-scratch": {"availabilityZone": "ap-northeast-2c"}})
    with pytest.raises(pulumi.RunError, match=f"in ap-northeast-2a, .*got {LUSTRE} in ap-north"):
        graph_with(aws, preview=preview)


@pytest.mark.parametrize("preview", [True, False])
def test_faults_of_an_efs_end_the_program(preview: bool) -> None:
    with pytest.raises(pulumi.RunError, match=f"file_system_id: must be an EFS .* got {EFS}"):
        graph_with(ExistingStores(targets=()), preview=preview)


def test_a_closed_group_is_refused_with_the_command_that_opens_it() -> None:
    aws = ExistingStores()
    del aws.rules["sgr-3"]
    with pytest.raises(pulumi.RunError) as refused:
        graph_with(aws, preview=True)
    assert (
        f"run `aws ec2 authorize-security-group-ingress --group-id {GROUP} --ip-permissions"
        " IpProtocol=tcp,FromPort=2049,ToPort=2049,IpRanges=[{CidrIp=10.20.0.0/20}]`"
    ) in str(refused.value)


def test_a_rule_for_the_nodes_group_opens_a_store_once_the_group_exists() -> None:
    of_nodes: dict[str, Any] = {
        "cidrIpv4": "",
        "referencedSecurityGroupId": "111122223333/sg-nodes",
    }
    rules = {
        "in": rule((0, 65535), **of_nodes),
        "out": rule((0, 65535), egress=True, **of_nodes),
    }
    with pytest.raises(pulumi.RunError, match="in from 10.20.0.0/20"):
        graph_with(ExistingStores(rules=rules))
    assert graph_with(ExistingStores(rules=rules, nodes=("sg-nodes",))).nodes


def test_a_rule_for_the_group_of_an_existing_cluster_opens_a_store_at_once() -> None:
    """Every node of the stack carries that group."""
    of_cluster: dict[str, Any] = {"cidrIpv4": "", "referencedSecurityGroupId": CLUSTER_GROUP}
    rules = {
        "in": rule((0, 65535), **of_cluster),
        "out": rule((0, 65535), egress=True, **of_cluster),
    }

    @dataclass
    class Both(ExistingStores, ExistingCluster):
        """The file systems and the cluster."""

    assert graph_with(Both(rules=rules), *IN_CLUSTER, preview=True).nodes
    with pytest.raises(pulumi.RunError, match="in from 10.20.0.0/20"):
        graph_with(ExistingStores(rules=rules), preview=True)


def test_teams_apart_have_access_points_and_directories_on_them() -> None:
    graph = graph_with(
        ExistingStores(),
        at("teams", {"nlp": {"deployer": ROLE}}),
        at("storage.scratch.teams", "apart"),
        at("storage.home.teams", "apart"),
    )
    [point] = graph.of("AccessPoint")
    assert point.inputs["fileSystemId"] == EFS
    handles = {
        volume.inputs["spec"]["csi"]["volumeHandle"] for volume in graph.of("PersistentVolume")
    }
    assert {LUSTRE, f"{LUSTRE}-nlp", f"{EFS}::{point.name}-id"} <= handles
    system = {
        node.inputs["securityGroupId"]
        for node in graph.of("SecurityGroupIngressRule")
        if node.name.startswith("scratch-system")
    }
    assert system == {"sg-cluster"}


def test_system_nodes_of_other_zones_must_reach_a_lustre_of_teams() -> None:
    narrow = {
        "in": rule((0, 65535), cidrIpv4="10.20.0.0/20"),
        "out": rule((0, 65535), egress=True),
    }
    assert graph_with(ExistingStores(rules=narrow)).nodes
    with pytest.raises(pulumi.RunError, match="in from 10.20.32.0/20, the nodes' subnet in"):
        graph_with(
            ExistingStores(rules=narrow),
            at("teams", {"nlp": {"deployer": ROLE}}),
            at("storage.scratch.teams", "apart"),
        )


def test_a_preview_lists_what_an_update_makes() -> None:
    graph = graph_with(ExistingStores(), preview=True)
    assert graph.nodes.keys() == graph_with(ExistingStores()).nodes.keys()
