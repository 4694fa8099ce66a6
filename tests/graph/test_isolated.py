"""An environment without a way to the internet: nothing leads out, AWS is reached by endpoints, and every
image is one of the account."""

from __future__ import annotations

import graphlib
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support.existing_vpc import EXISTING_VPC, SUBNETS, ExistingVpc
from tests.support.recording import Graph, deploy
from tests.support.stackfile import ENVIRONMENT, Edit, at
from tests.support.stacks import MIRROR, planned, recorded
from trainyard.catalog.aws_types.row import When
from trainyard.catalog.aws_types.table import AWS_TYPES

STACK = "no way to the internet"


@pytest.fixture(scope="module")
def graph() -> Graph:
    return recorded(STACK)


def test_the_graph_is_the_one_that_was_reviewed(
    graph: Graph, golden: Callable[[str, Graph], None]
) -> None:
    golden("isolated", graph)


def test_nothing_leads_out(graph: Graph) -> None:
    leading_out = {kind for kind, row in AWS_TYPES.items() if row.when is When.WAY_OUT}
    assert leading_out and leading_out & {node.kind for node in graph.nodes.values()} == set()
    assert not [node for node in graph.of("Subnet") if "public" in node.name]
    assert graph["eks:index:Cluster cluster"].inputs.get("publicSubnetIds", []) == []


def test_each_private_subnet_has_every_endpoint_and_that_of_s3(graph: Graph) -> None:
    subnets = {node.id for node in graph.of("Subnet")}
    interface = [n for n in graph.of("VpcEndpoint") if n.inputs["vpcEndpointType"] == "Interface"]
    assert len(interface) == len(planned(STACK).network.endpoints.apis)  # pyright: ignore[reportOptionalMemberAccess]
    for node in interface:
        assert {*node.inputs["subnetIds"]} == subnets and node.inputs["privateDnsEnabled"]
    assert graph["VpcEndpoint network-s3"].inputs["routeTableIds"] == ["network-private-id"]
    followed = {n.inputs["subnetId"] for n in graph.of("RouteTableAssociation")}
    assert followed == subnets


def test_endpoints_let_https_in_from_the_vpc_and_nothing_else(graph: Graph) -> None:
    [rule] = [
        node
        for node in graph.of("SecurityGroupIngressRule")
        if node.inputs["securityGroupId"] == "endpoints-id"
    ]
    assert (rule.inputs["fromPort"], rule.inputs["toPort"]) == (443, 443)
    assert rule.inputs["cidrIpv4"] == "10.0.0.0/16"
    assert all(
        node.inputs["securityGroupIds"] == ["endpoints-id"]
        for node in graph.of("VpcEndpoint")
        if node.inputs["vpcEndpointType"] == "Interface"
    )


def test_nodes_come_after_the_endpoints_and_go_before_them(graph: Graph) -> None:
    before = graph.before(graph["NodeGroup system"])
    assert {str(node) for node in graph.of("VpcEndpoint")} <= before
    assert {str(node) for node in graph.of("RouteTableAssociation")} <= before


def test_karpenter_asks_no_api_without_an_endpoint(graph: Graph) -> None:
    assert graph["Release karpenter"].inputs["values"]["settings"]["isolatedVPC"] is True
    for node_class in graph.of("EC2NodeClass"):
        assert (
            "instanceProfile" in node_class.inputs["spec"]
            and "role" not in node_class.inputs["spec"]
        )


def _texts(value: Any, at: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _texts(each, key)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each, at)
    elif isinstance(value, str):
        yield at, value


REGISTRIES = (
    "docker.io",
    "ghcr.io",
    "nvcr.io",
    "public.ecr.aws",
    "quay.io",
    "registry.k8s.io",
    ".dkr.ecr.",
)


def _foreign(graph: Graph) -> list[str]:
    """Texts of objects and of values of charts that are images from outside: by their key, or by the
    registry that they begin with."""
    found = []
    for node in graph.starting("kubernetes:"):
        said = {k: v for k, v in node.inputs.items() if k not in ("chart", "repositoryOpts")}
        for key, text in _texts(said):
            named = key in ("image", "initImage", "registry") or any(r in text for r in REGISTRIES)
            ours = text.startswith((MIRROR.partition("/")[0], "mirror/"))
            if named and key != "trainyard.io/image-prefixes" and not ours:
                found.append(f"{node}: {key}: {text[:80]}")
    return found


def test_no_image_is_from_outside(graph: Graph) -> None:
    assert _foreign(graph) == []
    assert len(_foreign(recorded("dev"))) > 10, "without the setting they are seen"


def test_every_copy_that_the_graph_pulls_is_one_that_the_mirror_makes(graph: Graph) -> None:
    made = {copy.copy for copy in planned(STACK).copies}
    assert len(made) > 15
    pulled = {
        text
        for node in graph.starting("kubernetes:")
        for key, text in _texts(node.inputs)
        if key == "image" and text.startswith(MIRROR) and ":" in text.rpartition("/")[2]
    }
    assert pulled and pulled <= made


def test_a_team_admits_the_copies_of_the_images_that_it_admits(graph: Graph) -> None:
    said = graph["Namespace team-vision"].inputs["metadata"]["annotations"]
    assert said["trainyard.io/image-prefixes"] == (
        f"registry.example.com/vision/,{MIRROR}/registry.example.com/vision/"
    )


def test_the_graph_has_no_circle(graph: Graph) -> None:
    graphlib.TopologicalSorter({urn: node.needs for urn, node in graph.nodes.items()}).prepare()


def test_jobs_and_runs_stay_the_same_where_only_their_image_has_a_copy(dev: Graph) -> None:
    copied = deploy("dev", _changes(at("artifacts.images", MIRROR)))
    runs = [graph["TrainJob t5-large"].inputs["metadata"]["annotations"] for graph in (dev, copied)]
    assert json.dumps(runs[0]) == json.dumps(runs[1])


def _changes(*edits: Edit) -> Callable[[dict[str, Any]], None]:
    def changes(values: dict[str, Any]) -> None:
        for edit in edits:
            edit(values[ENVIRONMENT])

    return changes


def test_an_existing_vpc_without_a_way_out_is_accepted_and_given_endpoints() -> None:
    edits = (
        EXISTING_VPC,
        at("network.internet", "none"),
        at("network.endpoints", "private"),
        at("network.s3_endpoint", True),
        at("artifacts.images", MIRROR),
    )
    graph = deploy("dev", _changes(*edits), vpc=ExistingVpc(route={}))
    interface = [n for n in graph.of("VpcEndpoint") if n.inputs["vpcEndpointType"] == "Interface"]
    assert len(interface) == 8
    for node in interface:
        assert {*node.inputs["subnetIds"]} == {*SUBNETS.values()}
    assert graph.waits_for(graph["NodeGroup system"], interface[0])
