"""An environment in a VPC that exists before it: what is made, what is left alone, what is refused."""

from __future__ import annotations

import graphlib
from collections.abc import Callable
from typing import Any

import pulumi
import pytest

from tests.support.existing_vpc import ACCOUNT, EXISTING_VPC, NAT, SUBNETS, TABLE, VPC, ExistingVpc
from tests.support.recording import Graph, deploy
from tests.support.stackfile import ENVIRONMENT, Edit, at
from tests.support.stacks import recorded
from trainyard.catalog.aws_types.row import When
from trainyard.catalog.aws_types.table import AWS_TYPES

TRAINING = SUBNETS["ap-northeast-2a"]


@pytest.fixture(scope="module")
def graph() -> Graph:
    return recorded("existing VPC")


def graph_with(vpc: ExistingVpc, *edits: Edit, preview: bool = False) -> Graph:
    """The graph of the dev stack in that VPC."""

    def changes(values: dict[str, Any]) -> None:
        for edit in (EXISTING_VPC, *edits):
            edit(values[ENVIRONMENT])

    return deploy("dev", changes, vpc=vpc, preview=preview)


def test_the_graph_is_the_one_that_was_reviewed(
    graph: Graph, golden: Callable[[str, Graph], None]
) -> None:
    golden("existing-vpc", graph)


def test_nothing_of_a_vpc_is_made_but_what_the_stack_file_asks_for(graph: Graph) -> None:
    own = {When.OWN_NETWORK, When.WAY_OUT}
    of_a_network = {kind for kind, row in AWS_TYPES.items() if row.when in own}
    assert of_a_network and of_a_network & {node.kind for node in graph.nodes.values()} == set()
    [endpoint] = graph.of("VpcEndpoint")
    assert endpoint.inputs["routeTableIds"] == [TABLE]
    assert graph_with(ExistingVpc()).of("VpcEndpoint") == []


def test_pods_of_a_team_reach_no_range_of_the_vpc() -> None:
    ranges = ["10.20.0.0/16", "100.64.0.0/16"]
    blocks = [{"associationId": "", "cidrBlock": one, "state": "associated"} for one in ranges]
    role = f"arn:aws:iam::{ACCOUNT}:role/nlp-deployer"
    graph = graph_with(
        ExistingVpc(vpc={"cidrBlockAssociations": blocks}), at("teams", {"nlp": {"deployer": role}})
    )
    spec = graph["NetworkPolicy team-nlp-network"].inputs["spec"]
    [outside] = [
        to["ipBlock"]["except"]
        for rule in spec["egress"]
        for to in rule["to"]
        if to.get("ipBlock", {}).get("except")
    ]
    assert outside == [*ranges, "172.20.0.0/16"]


def test_the_graph_has_no_circle(graph: Graph) -> None:
    graphlib.TopologicalSorter({urn: node.needs for urn, node in graph.nodes.items()}).prepare()


def test_nodes_and_file_systems_are_in_the_training_zones_subnet(graph: Graph) -> None:
    found = {
        graph["LustreFileSystem scratch"].inputs["subnetIds"],
        graph["MountTarget home.a"].inputs["subnetId"],
        *(
            term["id"]
            for node_class in graph.of("EC2NodeClass")
            for term in node_class.inputs["spec"]["subnetSelectorTerms"]
        ),
    }
    assert found == {TRAINING}
    assert graph["NodeGroup system"].inputs["subnetIds"] == [*SUBNETS.values()]


def test_the_control_plane_has_private_subnets_only(graph: Graph) -> None:
    cluster = graph["eks:index:Cluster cluster"].inputs
    assert cluster["vpcId"] == VPC and cluster["privateSubnetIds"] == [*SUBNETS.values()]
    assert not cluster["publicSubnetIds"]


def test_every_rule_admits_less_than_the_internet(graph: Graph) -> None:
    rules = graph.of("SecurityGroupIngressRule")
    assert rules and not any("cidrIpv4" in r.inputs or "cidrIpv6" in r.inputs for r in rules)
    assert {group.inputs["vpcId"] for group in graph.of("SecurityGroup")} == {VPC}


def test_a_bucket_is_called_by_the_account_of_the_stack_not_by_that_of_the_vpc() -> None:
    """A VPC may be shared by another account."""
    graph = graph_with(ExistingVpc(vpc={"ownerId": "444455556666"}), at("storage.sets", {"s3": {}}))
    assert graph["Bucket sets"].inputs["bucket"].endswith(ACCOUNT)


def test_endpoints_in_a_vpc_of_another_account_are_refused_before_anything_is_made() -> None:
    shared = ExistingVpc(vpc={"ownerId": "444455556666"})
    assert graph_with(shared).nodes.keys() == graph_with(ExistingVpc()).nodes.keys()
    with pytest.raises(pulumi.RunError) as refused:
        graph_with(shared, at("network.s3_endpoint", True), at("network.endpoints", "private"))
    settings = [line.partition(": must ")[0] for line in str(refused.value).splitlines()[1:]]
    assert settings == ["environment.network.s3_endpoint", "environment.network.endpoints"]


def test_services_have_a_range_beside_those_of_the_vpc() -> None:
    ranges = [
        {"associationId": "", "cidrBlock": cidr, "state": "associated"}
        for cidr in ("10.20.0.0/16", "172.16.0.0/12")
    ]
    graph = graph_with(ExistingVpc(vpc={"cidrBlockAssociations": ranges}))
    cluster = graph["eks:index:Cluster cluster"].inputs
    assert cluster["kubernetesServiceIpAddressRange"] == "10.100.0.0/16"


def test_services_have_the_range_that_the_stack_file_wants() -> None:
    graph = graph_with(ExistingVpc(), at("cluster.service_cidr", "192.168.0.0/20"))
    cluster = graph["eks:index:Cluster cluster"].inputs
    assert cluster["kubernetesServiceIpAddressRange"] == "192.168.0.0/20"


def test_a_subnet_without_a_route_table_of_its_own_follows_the_main_one() -> None:
    assert graph_with(ExistingVpc(by_name=False))["NodeGroup system"]
    with pytest.raises(pulumi.RunError, match="must have a route to"):
        graph_with(ExistingVpc(by_name=False, route={}))


@pytest.mark.parametrize("target", ["transitGatewayId", "networkInterfaceId", "vpcEndpointId"])
def test_any_way_out_will_do_but_an_internet_gateway(target: str) -> None:
    assert graph_with(ExistingVpc(route={"gatewayId": "", target: NAT})).nodes
    with pytest.raises(pulumi.RunError, match="must be private; got .* leads to igw-1"):
        graph_with(ExistingVpc(route={"gatewayId": "igw-1"}))


def test_a_preview_refuses_a_vpc_with_all_its_faults_and_registers_nothing_in_it() -> None:
    vpc = ExistingVpc(
        vpc={"enableDnsHostnames": False},
        subnets={TRAINING: {"mapPublicIpOnLaunch": True}},
        missing=(SUBNETS["ap-northeast-2c"],),
    )
    with pytest.raises(pulumi.RunError) as refused:
        graph_with(vpc, preview=True)
    head, *lines = str(refused.value).splitlines()
    assert head == "the VPC cannot be used"
    assert [line.partition(": must ")[0] for line in lines] == [
        "environment.network.vpc_id",
        "environment.network.private_subnets.ap-northeast-2a",
        "environment.network.private_subnets.ap-northeast-2c",
    ]


def test_a_vpc_that_does_not_exist_is_asked_nothing_more() -> None:
    vpc = ExistingVpc(exists=False)
    with pytest.raises(pulumi.RunError, match="must be a VPC of this account"):
        graph_with(vpc)
    assert "getVpc" not in vpc.asked and "getSubnet" not in vpc.asked


def test_a_preview_lists_what_an_update_makes(graph: Graph) -> None:
    assert (
        graph_with(ExistingVpc(), preview=True).nodes.keys()
        == graph_with(ExistingVpc()).nodes.keys()
    )
