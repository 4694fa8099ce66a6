"""What in the rehearsal uses each AWS resource of the recorded graph, and what happens without it.

A type without a row fails. A single resource that nothing uses is in NOBODY, with the reason: it
could be wrong, and `make up` would still end well. Each of the others is taken out in
test_leave_outs.py.
"""

from __future__ import annotations

import importlib
import json
import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.leave_outs import REDUNDANT

TESTS = Path(__file__).parents[1]
GRAPH = json.loads((TESTS / "golden/dev.graph.json").read_text())
RESOURCES = {
    (one["type"], one["name"]) for one in GRAPH if one["type"].startswith(("aws:", "eks:"))
}


@dataclass(frozen=True)
class Row:
    """One resource type."""

    consumer: str
    """The function that asks for it."""
    symptom: str
    """What is seen where it is missing or wrong."""
    test: str = ""
    """File and name of a test that takes it out."""


REACH, EKS = "rehearsal/aws/test_reach.py", "rehearsal/aws/test_eks.py"
PERMISSIONS = "rehearsal/aws/test_permissions.py"
WAY_OUT = f"{REACH} test_a_node_without_a_way_out_does_not_boot"
NO_WAY_OUT = "nodes do not boot: dial internet: i/o timeout, and why"
RULE = f"{REACH} test_a_store_whose_rule_is_missing_is_not_mounted"
UNMOUNTED = "pods wait: mount: Connection timed out, and which rule is missing"
EVENTS = (
    "rehearsal/aws/test_instances.py test_a_vanished_instance_is_an_event_in_the_queue_of_the_rule"
)
ROWS = {
    "aws:cloudwatch/logGroup:LogGroup": Row(
        "", "none: the control plane of the rehearsal writes no logs"
    ),
    "aws:cloudwatch/eventRule:EventRule": Row(
        "rehearsal.aws.services:emit", "Karpenter hears of no instance that ends", EVENTS
    ),
    "aws:cloudwatch/eventTarget:EventTarget": Row(
        "rehearsal.aws.services:emit", "Karpenter hears of no instance that ends", EVENTS
    ),
    "aws:ec2/eip:Eip": Row(
        "rehearsal.aws.network:_delete_nat",
        "none at creation: a NAT gateway without an address is made",
    ),
    "aws:ec2/internetGateway:InternetGateway": Row(
        "rehearsal.aws.network:_gateway",
        "the NAT gateway fails: Gateway.NotAttached",
        "rehearsal/aws/test_network.py test_a_nat_gateway_without_internet_gateway_fails",
    ),
    "aws:ec2/launchTemplate:LaunchTemplate": Row(
        "rehearsal.aws.nodegroups:_templated",
        "system nodes have other disks, metadata options and tags",
        f"{EKS} test_instances_of_a_node_group_are_as_its_launch_template_says",
    ),
    "aws:ec2/natGateway:NatGateway": Row("rehearsal.aws.reach:_through_nat", NO_WAY_OUT, WAY_OUT),
    "aws:ec2/route:Route": Row("rehearsal.aws.reach:_default_route", NO_WAY_OUT, WAY_OUT),
    "aws:ec2/routeTable:RouteTable": Row("rehearsal.aws.reach:_default_route", NO_WAY_OUT, WAY_OUT),
    "aws:ec2/routeTableAssociation:RouteTableAssociation": Row(
        "rehearsal.aws.reach:_default_route", NO_WAY_OUT, WAY_OUT
    ),
    "aws:ec2/securityGroup:SecurityGroup": Row("rehearsal.aws.reach:blocked", UNMOUNTED, RULE),
    "aws:ec2/subnet:Subnet": Row(
        "rehearsal.aws.eks:_placed",
        "the cluster is refused: two zones are needed",
        f"{EKS} test_a_cluster_needs_two_zones_and_the_right_trust",
    ),
    "aws:ec2/vpc:Vpc": Row(
        "rehearsal.aws.network:placed",
        "subnets, groups and gateways are refused",
        "rehearsal/aws/test_network.py test_routes_lead_to_gateways_of_the_same_vpc",
    ),
    "aws:ec2/vpcEndpoint:VpcEndpoint": Row(
        "rehearsal.aws.reach:no_api",
        "without a NAT gateway nodes neither boot nor pull, and Karpenter does not start",
        f"{REACH} test_each_endpoint_that_is_left_out_is_missed_by_name",
    ),
    "aws:efs/fileSystem:FileSystem": Row("rehearsal.kubelet.drivers:efs", UNMOUNTED),
    "aws:efs/mountTarget:MountTarget": Row(
        "rehearsal.kubelet.drivers:efs",
        "pods wait: check that the file system has a mount target in the zone",
        "rehearsal/kubelet/test_drivers.py"
        " test_efs_is_mounted_only_where_its_zone_has_a_mount_target",
    ),
    "aws:eks/accessEntry:AccessEntry": Row(
        "rehearsal.aws.access:kubernetes_user",
        "GPU nodes do not join: 401",
        "rehearsal/aws/test_server.py test_a_node_is_let_in_only_by_an_access_entry_of_its_role",
    ),
    "aws:eks/addon:Addon": Row(
        "rehearsal.kubelet.kubelet:Kubelet.has_daemon",
        "pods wait for the network, their volumes or their role",
        f"{EKS} test_pod_identity_gives_a_pods_role_while_agent_association_and_trust_are_there",
    ),
    "aws:eks/nodeGroup:NodeGroup": Row(
        "rehearsal.aws.nodegroups:reconcile",
        "controllers stay Pending: there is no node",
        f"{EKS} test_a_node_group_is_active_when_its_nodes_are_ready",
    ),
    "aws:eks/podIdentityAssociation:PodIdentityAssociation": Row(
        "rehearsal.aws.access:pod_role",
        "Karpenter has no credentials",
        f"{EKS} test_pod_identity_gives_a_pods_role_while_agent_association_and_trust_are_there",
    ),
    "aws:fsx/lustreFileSystem:LustreFileSystem": Row("rehearsal.kubelet.drivers:lustre", UNMOUNTED),
    "aws:iam/instanceProfile:InstanceProfile": Row(
        "rehearsal.aws.control_api:_instance_credentials",
        "nodes have no credentials to join with",
        "rehearsal/aws/test_server.py test_an_instance_without_a_profile_has_no_credentials",
    ),
    "aws:iam/role:Role": Row(
        "rehearsal.aws.principals:trusts",
        "neither nodes nor pods get its keys",
        f"{EKS} test_pod_identity_gives_a_pods_role_while_agent_association_and_trust_are_there",
    ),
    "aws:iam/rolePolicy:RolePolicy": Row(
        "rehearsal.aws.principals:authorize",
        "the calls that it allows are refused",
        f"{PERMISSIONS} test_a_statement_that_karpenter_lacks_is_missed",
    ),
    "aws:iam/rolePolicyAttachment:RolePolicyAttachment": Row(
        "rehearsal.aws.principals:authorize",
        "nodes do not boot, and images of the account's registry are not pulled",
        "rehearsal/aws/test_server.py"
        " test_nodeadm_and_image_pulls_ask_with_the_role_of_the_instance",
    ),
    "aws:sqs/queue:Queue": Row("rehearsal.aws.services:emit", "Karpenter does not start", EVENTS),
    "aws:sqs/queuePolicy:QueuePolicy": Row(
        "rehearsal.aws.services:_accepts", "Karpenter hears of no instance that ends", EVENTS
    ),
    "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule": Row(
        "rehearsal.aws.reach:_lets", UNMOUNTED, RULE
    ),
    "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule": Row(
        "rehearsal.aws.reach:_lets", UNMOUNTED, RULE
    ),
    "eks:index:Cluster": Row("rehearsal.kubelet.node:node_config", "there is no Kubernetes"),
}

RULE_OF = "aws:vpc/securityGroup{0}Rule:SecurityGroup{0}Rule"
NOBODY = {
    ("aws:cloudwatch/logGroup:LogGroup", "cluster-logs"): (
        "the control plane of the rehearsal writes no logs"
    ),
    ("aws:ec2/eip:Eip", "network-nat-a"): "only the end of a NAT gateway asks for its address",
    ("aws:ec2/vpcEndpoint:VpcEndpoint", "network-s3"): "stores on S3 are folders; NAT leads there",
    (RULE_OF.format("Egress"), "nodes-out"): REDUNDANT["nodes-out"],
    (RULE_OF.format("Ingress"), "nodes-self-in"): REDUNDANT["nodes-self-in"],
    **{
        ("aws:ec2/routeTableAssociation:RouteTableAssociation", f"network-public-{zone}"): (
            "nothing but the NAT gateway is in a public subnet"
        )
        for zone in "bc"
    },
}
"""Type and name of a resource that nothing uses → why."""


def test_every_type_of_the_graph_has_a_row() -> None:
    assert ROWS.keys() == {kind for kind, _ in RESOURCES}


def test_what_nothing_uses_is_in_the_graph_still() -> None:
    assert NOBODY.keys() <= RESOURCES
    unused = {kind for kind, row in ROWS.items() if not row.consumer}
    assert {one for one in RESOURCES if one[0] in unused} <= NOBODY.keys()


def test_the_number_of_resources_that_nothing_uses_does_not_grow() -> None:
    """In the audit of 2026-11-22 it was 39 of 72."""
    assert (len(NOBODY), len(RESOURCES)) == (7, 77)


@pytest.mark.parametrize("kind", ROWS)
def test_a_row_names_a_function_and_a_test_that_exist(kind: str) -> None:
    row = ROWS[kind]
    if row.consumer:
        module, _, path = row.consumer.partition(":")
        found = importlib.import_module(module)
        for name in path.split("."):
            found = getattr(found, name)
        assert callable(found)
    if row.test:
        file, name = row.test.split(" ")
        assert re.search(rf"^def {name}\(", (TESTS / file).read_text(), re.MULTILINE)
