"""The whole dev environment through the real __main__.py: what exists, what waits for what, who
reaches whom.

tests/golden/ holds the two graphs as reviewed. After a change that is meant: `.venv/bin/pytest
--golden`, which writes them anew; the diff goes into the commit.
"""

from __future__ import annotations

import functools
import graphlib
import ipaddress
import json
import random
import re
from collections.abc import Callable
from typing import Any

import pulumi
import pulumi_aws
import pytest

from tests.support.graphs import environment
from tests.support.recording import UNKNOWN, Changes, Graph, Node, deploy
from tests.support.stackfile import ENVIRONMENT, SCRATCH, at, without
from tests.support.stacks import BOUNDARY, recorded
from trainyard.catalog.aws.latencies import TYPICAL
from trainyard.catalog.versions import DEFAULT_KUBERNETES, TRAINYARD
from trainyard.objects.jobs.rendezvous import VARIABLE, conf

JOB = "jobs.t5-large"
TRAIN_JOB = "kubernetes:trainer.kubeflow.org/v1alpha1:TrainJob t5-large"
RESILIENT = "ClusterTrainingRuntime torch-distributed-resilient"


def test_the_graph_is_the_one_that_was_reviewed(
    dev: Graph, golden: Callable[[str, Graph], None]
) -> None:
    golden("dev", dev)


def test_the_order_in_which_resources_appear_changes_nothing(dev: Graph) -> None:
    again = deploy("dev", jitter=random.Random(7))
    assert list(again.nodes) != list(dev.nodes), "the engine answered in another order"
    assert again.golden() == dev.golden()


def test_a_preview_of_a_fresh_stack_lists_every_resource(dev: Graph) -> None:
    assert deploy("dev", preview=True).nodes.keys() == dev.nodes.keys()


def test_nothing_is_left_unknown_or_secret_once_everything_exists(dev: Graph) -> None:
    everything = dev.golden() + json.dumps(dev.outputs)
    assert UNKNOWN not in everything and "$secret" not in everything


def test_every_resource_names_its_provider(dev: Graph) -> None:
    for node in [*dev.starting("aws:"), *dev.starting("kubernetes:")]:
        kind, _, name = (
            node.options.provider.rpartition("::")[0].partition("providers:")[2].partition("::")
        )
        assert (kind, name) == (
            ("aws", "aws") if node.kind.startswith("aws:") else ("kubernetes", "cluster")
        ), node
    assert list(dev["eks:index:Cluster cluster"].options.providers) == ["aws"]


# What waits for what: creation in this order, destruction in the other.


def test_the_graph_has_no_circle(dev: Graph) -> None:
    graphlib.TopologicalSorter({urn: node.needs for urn, node in dev.nodes.items()}).prepare()


def test_no_component_waits_as_a_whole(dev: Graph) -> None:
    assert [str(n) for n in dev.starting("trainyard:") if n.needs] == []


FIRST = [f"Addon {name}" for name in ("vpc-cni", "kube-proxy", "eks-pod-identity-agent")]

WAITS: dict[str, list[str]] = {
    # A node joins with its permissions, finds the internet, and its CNI may attach addresses.
    "NodeGroup system": [
        "PodIdentityAssociation cni",
        "RolePolicyAttachment cni-AmazonEKS_CNI_Policy",
        "RolePolicyAttachment system-AmazonEKSWorkerNodePolicy",
        "RolePolicyAttachment system-AmazonEC2ContainerRegistryPullOnly",
        "NatGateway network-nat-a",
        "Route network-private",
        "Route network-public",
        *(
            f"RouteTableAssociation network-{side}-{zone}"
            for side in ("private", "public")
            for zone in "abc"
        ),
    ],
    # A Deployment without nodes never becomes available.
    "Addon coredns": ["NodeGroup system", *FIRST],
    "Addon aws-fsx-csi-driver": ["NodeGroup system"],
    "Addon aws-efs-csi-driver": ["NodeGroup system"],
    # An older CRD drops fields of a newer controller's objects.
    "Release kubeflow-trainer": ["Release kubeflow-trainer-crds"],
    # Karpenter starts with its permissions and with the queue that warns it, and drains nodes while
    # it has both.
    "Release karpenter": [
        "RolePolicy karpenter-nodes",
        "RolePolicy karpenter-identity",
        "RolePolicy karpenter-discovery",
        "PodIdentityAssociation karpenter",
        "QueuePolicy karpenter",
        *(
            f"EventTarget karpenter-{event}"
            for event in ("health", "spot", "rebalance", "state", "reservation")
        ),
        "Release karpenter-crd",
    ],
    # Nodes of a class are let in, reach each other, and are ended by a Karpenter that still lives and
    # still has nodes with a network to run on.
    "EC2NodeClass g6e-class": [
        "NodeGroup system",
        *FIRST,
        "Release karpenter",
        "AccessEntry gpu-nodes",
        "InstanceProfile gpu-nodes",
        "RolePolicyAttachment gpu-nodes-AmazonEKSWorkerNodePolicy",
        "SecurityGroupIngressRule nodes-self-in",
        "SecurityGroupEgressRule nodes-self-out",
        "SecurityGroupEgressRule nodes-out",
    ],
    "NodePool g6e-pool": ["EC2NodeClass g6e-class"],
    "NodePool h100-pool": ["EC2NodeClass h100-class"],
    # The webhook that admits a runtime comes with the chart; its pods take off a runtime's finalizer.
    RESILIENT: ["Release kubeflow-trainer", "NodeGroup system", *FIRST],
    "ClusterTrainingRuntime torch-distributed": ["Release kubeflow-trainer", "NodeGroup system"],
    # A run ends before what it runs on, and its volumes are unmounted by a driver that still lives.
    TRAIN_JOB: [
        RESILIENT,
        "NodePool g6e-pool",
        "Addon coredns",
        "PersistentVolumeClaim training-scratch-claim",
        "Namespace workspace",
    ],
    "PersistentVolumeClaim training-scratch-claim": [
        "Addon aws-fsx-csi-driver",
        "PersistentVolume training-scratch-volume",
    ],
    "PersistentVolumeClaim training-home-claim": ["Addon aws-efs-csi-driver", "MountTarget home.a"],
    "PersistentVolume training-scratch-volume": ["LustreFileSystem scratch"],
    # FSx refuses a group that is still closed; clients reach a store until the last volume is gone.
    "LustreFileSystem scratch": [
        "SecurityGroupIngressRule scratch-self-in",
        "SecurityGroupEgressRule scratch-self-out",
        "SecurityGroupIngressRule scratch-988",
        "SecurityGroupIngressRule scratch-1018",
    ],
    "MountTarget home.a": ["SecurityGroupIngressRule home-nfs"],
    "NatGateway network-nat-a": ["InternetGateway network"],
    "pulumi:providers:kubernetes cluster": ["eks:index:Cluster cluster"],
}


@pytest.mark.parametrize(
    ("later", "earlier"), [(a, b) for a, those in WAITS.items() for b in those]
)
def test_what_needs_something_waits_for_it(dev: Graph, later: str, earlier: str) -> None:
    assert dev.waits_for(dev[later], dev[earlier])


DOES_NOT_WAIT: dict[str, list[str]] = {
    # Ten minutes each, side by side.
    "LustreFileSystem scratch": [
        "eks:index:Cluster cluster",
        "NatGateway network-nat-a",
        "NodeGroup system",
    ],
    "FileSystem home": ["eks:index:Cluster cluster", "Vpc network"],
    "MountTarget home.a": ["eks:index:Cluster cluster"],
    "eks:index:Cluster cluster": [
        "NatGateway network-nat-a",
        "LustreFileSystem scratch",
        "MountTarget home.a",
    ],
    # A node takes longer to boot than EKS to make the DaemonSets that turn it Ready.
    "NodeGroup system": [*FIRST, "LustreFileSystem scratch", "MountTarget home.a", "Addon coredns"],
    "Role system": ["eks:index:Cluster cluster"],
    "Role cni": ["eks:index:Cluster cluster"],
    "Role gpu-nodes": ["eks:index:Cluster cluster"],
    "Role karpenter": ["eks:index:Cluster cluster"],
    "Queue karpenter": ["eks:index:Cluster cluster"],
    "InstanceProfile gpu-nodes": ["eks:index:Cluster cluster"],
    "NodePool g6e-pool": [
        "Release kubeflow-trainer",
        "NodePool h100-pool",
        "LustreFileSystem scratch",
        "Release nvidia-device-plugin",
    ],
    "NodePool h100-pool": ["NodePool g6e-pool"],
    # Pods wait for nodes, and a release for its pods.
    "Release kubeflow-trainer": [
        "NodeGroup system",
        "Release karpenter",
        "Addon coredns",
        "LustreFileSystem scratch",
    ],
    "Release karpenter": [
        "NodeGroup system",
        "Addon vpc-cni",
        "Addon coredns",
        "Release kubeflow-trainer",
        "Addon aws-fsx-csi-driver",
        "LustreFileSystem scratch",
    ],
    RESILIENT: ["Release karpenter", "LustreFileSystem scratch"],
    "PersistentVolumeClaim training-scratch-claim": [
        "Release karpenter",
        "Release kubeflow-trainer",
    ],
    TRAIN_JOB: [
        "NodePool h100-pool",
        "MountTarget home.a",
        "ClusterTrainingRuntime torch-distributed",
    ],
}


@pytest.mark.parametrize(
    ("later", "earlier"), [(a, b) for a, those in DOES_NOT_WAIT.items() for b in those]
)
def test_no_false_edge_costs_minutes(dev: Graph, later: str, earlier: str) -> None:
    assert not dev.waits_for(dev[later], dev[earlier])


SECONDS = {
    "aws:ec2/vpc:Vpc": "ec2.vpc",
    "aws:ec2/natGateway:NatGateway": "ec2.nat-gateway",
    "aws:sqs/queue:Queue": "sqs.queue",
    "eks:index:Cluster": "eks.cluster",
    "aws:eks/addon:Addon": "eks.addon",
    "aws:eks/nodeGroup:NodeGroup": "eks.nodegroup",
    "aws:efs/fileSystem:FileSystem": "efs.file-system",
    "aws:efs/mountTarget:MountTarget": "efs.mount-target",
    "aws:fsx/lustreFileSystem:LustreFileSystem": "fsx.lustre",
}


def test_a_job_can_start_when_its_slowest_chain_is_ready_and_not_when_all_of_them_are(
    dev: Graph,
) -> None:
    """With AWS's typical times: network, cluster, nodes, the driver of its store; controllers and the
    file system beside them."""

    @functools.cache
    def ready(urn: str) -> float:
        node = dev.nodes[urn]
        own = TYPICAL.get(
            SECONDS.get(node.kind, ""), 60 if node.kind == "kubernetes:helm.sh/v3:Release" else 1
        )
        return own + max((ready(n) for n in node.needs if n in dev.nodes), default=0)

    chain = sum(TYPICAL[k] for k in ("ec2.vpc", "eks.cluster", "eks.nodegroup", "eks.addon"))
    assert ready(dev[TRAIN_JOB].urn) == pytest.approx(chain, abs=15)
    assert ready(dev["LustreFileSystem scratch"].urn) < ready(dev["Release karpenter"].urn)


# Whose things these are.


def test_everything_that_takes_tags_carries_project_stack_and_name(dev: Graph) -> None:
    tagged = [dev["eks:index:Cluster cluster"], *filter(_takes_tags, dev.starting("aws:"))]
    assert len(tagged) > 30
    for node in tagged:
        tags = node.inputs["tags"]
        assert (tags["trainyard:project"], tags["trainyard:stack"]) == ("trainyard", "dev"), node
        assert tags["Name"] == f"dev-{tags['trainyard:name']}", node


def _takes_tags(node: Node) -> bool:
    """By the SDK's class of a type such as aws:ec2/vpc:Vpc."""
    _, module, name = node.kind.split(":")
    return hasattr(getattr(getattr(pulumi_aws, module.partition("/")[0]), name), "tags")


def test_nodes_that_karpenter_launches_carry_the_same_tags(dev: Graph) -> None:
    tags = dev["EC2NodeClass g6e-class"].inputs["spec"]["tags"]
    assert tags == {
        "Name": "dev-g6e-node",
        "trainyard:project": "trainyard",
        "trainyard:stack": "dev",
        "trainyard:name": "g6e-node",
    }


def test_the_dev_stack_is_small_and_waits_for_data_more_than_by_hand(dev: Graph) -> None:
    """What a person reads in a preview, and what slows an update: each edge by hand is one that data does
    not show (docs/architecture.md)."""
    edges = [len(node.explicit) for node in dev.nodes.values()]
    assert len(edges) <= 160
    assert 0 < sum(edges) / len(edges) <= 3


def test_a_stacks_own_tags_reach_its_resources() -> None:
    graph = environment(at("tags", {"cost-center": "17"}))
    assert {
        graph[label].inputs["tags"]["cost-center"]
        for label in ("Vpc network", "LustreFileSystem scratch")
    } == {"17"}
    assert graph["EC2NodeClass g6e-class"].inputs["spec"]["tags"]["cost-center"] == "17"


def test_a_name_that_must_be_found_again_is_stack_logical_name_and_digest(dev: Graph) -> None:
    named = [
        n.inputs[field]
        for kind, field in (
            ("Role", "name"),
            ("InstanceProfile", "name"),
            ("Queue", "name"),
            ("EventRule", "name"),
            ("SecurityGroup", "name"),
            ("NodeGroup", "nodeGroupName"),
            ("eks:index:Cluster", "name"),
            ("FileSystem", "creationToken"),
        )
        for n in dev.of(kind)
    ]
    assert len(named) == len(set(named)) + 2, "role, profile and token of one noun may share a name"
    assert all(re.fullmatch(r"dev-[a-z-]+-[0-9a-f]{8}", name) for name in named), named


def test_a_change_that_replaces_the_cluster_gives_it_another_name(dev: Graph) -> None:
    def name(graph: Graph) -> str:
        return graph["eks:index:Cluster cluster"].inputs["name"]

    assert name(environment(at("network.cidr", "10.1.0.0/16"))) != name(dev)
    assert name(environment(at("storage.scratch.data", "keep"))) == name(dev)


# Who reaches whom.


def test_nothing_is_open_to_the_internet(dev: Graph) -> None:
    rules = dev.of("SecurityGroupIngressRule")
    assert rules and not any("cidrIpv4" in r.inputs or "cidrIpv6" in r.inputs for r in rules)
    groups, subnets = dev.of("SecurityGroup"), dev.of("Subnet")
    assert groups and not any("ingress" in g.inputs or "egress" in g.inputs for g in groups)
    assert subnets and not any(s.inputs.get("mapPublicIpOnLaunch") for s in subnets)
    assert not [
        n for n in dev.nodes.values() if "securityGroupRule" in n.kind or "networkAcl" in n.kind
    ]


def test_members_of_a_group_reach_each_other_and_file_systems_answer_gpu_nodes_only(
    dev: Graph,
) -> None:
    def let_in(rule: Node) -> tuple[str, str, str]:
        i = rule.inputs
        ports = f"{i['ipProtocol']} {i.get('fromPort', '')}-{i.get('toPort', '')}"
        return i["securityGroupId"], i["referencedSecurityGroupId"], ports

    assert {let_in(rule) for rule in dev.of("SecurityGroupIngressRule")} == {
        ("nodes-id", "nodes-id", "-1 -"),
        ("scratch-id", "scratch-id", "-1 -"),
        ("scratch-id", "nodes-id", "tcp 988-988"),
        ("scratch-id", "nodes-id", "tcp 1018-1023"),
        ("nodes-id", "scratch-id", "tcp 988-988"),
        ("nodes-id", "scratch-id", "tcp 1018-1023"),
        ("home-id", "nodes-id", "tcp 2049-2049"),
    }


def test_a_lustre_server_may_open_a_connection_to_a_client(dev: Graph) -> None:
    """From both sides, as AWS's page for the clients' group asks; nodes themselves may reach
    everything."""
    out = {
        (i["securityGroupId"], i["referencedSecurityGroupId"], i["fromPort"], i["toPort"])
        for i in (rule.inputs for rule in dev.of("SecurityGroupEgressRule"))
        if i["ipProtocol"] == "tcp"
    }
    assert out == {
        ("scratch-id", "nodes-id", 988, 988),
        ("scratch-id", "nodes-id", 1018, 1023),
    }
    nodes = dev["SecurityGroupEgressRule nodes-out"].inputs
    assert (nodes["securityGroupId"], nodes["ipProtocol"], nodes["cidrIpv4"]) == (
        "nodes-id",
        "-1",
        "0.0.0.0/0",
    )
    volume = dev["PersistentVolume training-scratch-volume"]
    for kind, name in (("Ingress", "servers-{}-in"), ("Egress", "clients-{}-out")):
        for port in (988, 1018):
            rule = dev[f"SecurityGroup{kind}Rule scratch-{name.format(port)}"]
            assert dev.waits_for(dev["LustreFileSystem scratch"], rule), "FSx looks at creation"
            assert dev.waits_for(volume, rule), "it stays until nobody mounts the file system"


def test_efa_may_leave_towards_its_own_group_by_id(dev: Graph) -> None:
    rule = dev["SecurityGroupEgressRule nodes-self-out"].inputs
    assert (rule["securityGroupId"], rule["referencedSecurityGroupId"], rule["ipProtocol"]) == (
        "nodes-id",
        "nodes-id",
        "-1",
    )


def test_gpu_nodes_are_members_of_the_clusters_group_and_of_their_own(dev: Graph) -> None:
    spec = dev["EC2NodeClass g6e-class"].inputs["spec"]
    assert spec["securityGroupSelectorTerms"] == [{"id": "sg-cluster"}, {"id": "nodes-id"}]


def test_nodes_have_private_addresses(dev: Graph) -> None:
    private = {s.id for s in dev.of("Subnet") if "internal-elb" in json.dumps(s.inputs["tags"])}
    assert set(dev["NodeGroup system"].inputs["subnetIds"]) == private
    chosen = [
        term["id"]
        for node_class in dev.of("EC2NodeClass")
        for term in node_class.inputs["spec"]["subnetSelectorTerms"]
    ]
    assert len(chosen) == 2 and set(chosen) <= private


def test_each_private_subnet_leaves_through_the_nat_gateway_and_reaches_s3_without_it(
    dev: Graph,
) -> None:
    assert dev["Route network-private"].inputs["natGatewayId"] == "network-nat-a-id"
    assert dev["Route network-public"].inputs["gatewayId"] == "network-id"
    endpoint = dev["VpcEndpoint network-s3"].inputs
    assert endpoint["routeTableIds"] == ["network-private-id"]
    assert endpoint["serviceName"] == "com.amazonaws.ap-northeast-2.s3"
    associated = {
        a.inputs["subnetId"]: a.inputs["routeTableId"] for a in dev.of("RouteTableAssociation")
    }
    assert associated == {
        f"network-{side}-{zone}-id": f"network-{side}-id"
        for side in ("public", "private")
        for zone in "abc"
    }


def test_with_a_nat_gateway_in_each_zone_no_zone_leaves_through_another() -> None:
    graph = recorded("NAT gateways in each zone")
    assert len(graph.of("Eip")) == 3
    tables = {
        association.name: association.inputs["routeTableId"]
        for association in graph.of("RouteTableAssociation")
    }
    for letter in "abc":
        side = f"network-private-{letter}"
        assert graph[f"NatGateway network-nat-{letter}"].inputs["subnetId"] == (
            f"network-public-{letter}-id"
        )
        assert graph[f"Route {side}"].inputs["natGatewayId"] == f"network-nat-{letter}-id"
        assert tables[side] == graph[f"Route {side}"].inputs["routeTableId"] == f"{side}-id"
        assert graph.waits_for(graph["NodeGroup system"], graph[f"Route {side}"])
    endpoint = graph["VpcEndpoint network-s3"].inputs["routeTableIds"]
    assert endpoint == [f"network-private-{letter}-id" for letter in "abc"]


def test_subnets_are_those_that_load_balancers_and_the_cluster_look_for(dev: Graph) -> None:
    cluster = dev["eks:index:Cluster cluster"].inputs
    assert len(cluster["privateSubnetIds"]) == len(cluster["publicSubnetIds"]) == 3
    for subnet in dev.of("Subnet"):
        assert subnet.inputs["tags"][f"kubernetes.io/cluster/{cluster['name']}"] == "shared"
        assert ipaddress.IPv4Network(subnet.inputs["cidrBlock"]).subnet_of(
            ipaddress.IPv4Network("10.0.0.0/16")
        )


def test_metadata_of_a_node_is_not_for_its_pods(dev: Graph) -> None:
    for node_class in dev.of("EC2NodeClass"):
        assert node_class.inputs["spec"]["metadataOptions"] == {
            "httpTokens": "required",
            "httpPutResponseHopLimit": 1,
        }


# One zone.


@pytest.mark.parametrize("zone", ["ap-northeast-2a", "ap-northeast-2c"])
def test_nodes_file_systems_and_jobs_share_the_training_zone(zone: str) -> None:
    graph = environment(at("zone", zone))
    subnet = {s.id: s.inputs["availabilityZone"] for s in graph.of("Subnet")}
    found = {
        subnet[graph["LustreFileSystem scratch"].inputs["subnetIds"]],
        subnet[graph[f"MountTarget home.{zone[-1]}"].inputs["subnetId"]],
        graph[TRAIN_JOB].inputs["spec"]["podTemplateOverrides"][0]["spec"]["nodeSelector"][
            "topology.kubernetes.io/zone"
        ],
    }
    for pool in graph.of("NodePool"):
        found |= {
            v
            for r in pool.inputs["spec"]["template"]["spec"]["requirements"]
            if r["key"] == "topology.kubernetes.io/zone"
            for v in r["values"]
        }
    for node_class in graph.of("EC2NodeClass"):
        found |= {subnet[term["id"]] for term in node_class.inputs["spec"]["subnetSelectorTerms"]}
    assert found == {zone}


# The cluster and who may enter it.


def test_the_cluster_admits_by_access_entries_and_brings_nothing_of_its_own(dev: Graph) -> None:
    cluster = dev["eks:index:Cluster cluster"].inputs
    assert cluster["authenticationMode"] == "API" and cluster["version"] == DEFAULT_KUBERNETES
    assert cluster["skipDefaultNodeGroup"] and cluster["skipDefaultSecurityGroups"]
    assert cluster["bootstrapSelfManagedAddons"] is False and cluster["useDefaultVpcCni"] is True
    assert (
        not cluster["corednsAddonOptions"]["enabled"]
        and not cluster["kubeProxyAddonOptions"]["enabled"]
    )
    assert (cluster["endpointPrivateAccess"], cluster["endpointPublicAccess"]) == (True, True)


def test_add_ons_overwrite_at_first_and_keep_what_people_changed_later(dev: Graph) -> None:
    assert len(dev.of("Addon")) == 6
    for add_on in dev.of("Addon"):
        assert (
            add_on.inputs["resolveConflictsOnCreate"],
            add_on.inputs["resolveConflictsOnUpdate"],
        ) == ("OVERWRITE", "PRESERVE")


def test_admins_and_the_deployer_are_roles_of_the_stack_file() -> None:
    admin, deployer = (
        "arn:aws:iam::111122223333:role/admin",
        "arn:aws:iam::111122223333:role/deployer",
    )
    graph = environment(
        at("cluster.admins", {"ops": {"role_arn": admin}}),
        at("cluster.deployer_role_arn", deployer),
    )
    assert graph["AccessEntry cluster-ops"].inputs["principalArn"] == admin
    assert (
        graph["AccessPolicyAssociation cluster-ops"]
        .inputs["policyArn"]
        .endswith("/AmazonEKSClusterAdminPolicy")
    )
    assert _credentials(graph)["args"][-2:] == ["--role-arn", deployer]
    assert graph.outputs["contract"]["cluster"]["deployer_role_arn"] == deployer


def test_a_viewer_enters_by_a_group_and_has_no_policy_of_aws() -> None:
    viewer = "arn:aws:iam::111122223333:role/night"
    graph = environment(at("cluster.viewers", {"night": {"role_arn": viewer}}))
    entry = graph["AccessEntry viewers-night"].inputs
    assert (entry["principalArn"], entry["kubernetesGroups"]) == (viewer, ["trainyard:viewers"])
    assert not [node for node in graph.starting("aws:eks/accessPolicy") if "viewers" in node.name]
    assert not [node for node in environment().nodes.values() if "viewers" in node.name]


def _credentials(graph: Graph) -> dict[str, Any]:
    config = json.loads(graph.outputs["kubeconfig"])
    [user] = config["users"]
    assert list(user["user"]) == ["exec"], "credentials are asked for when they are needed"
    return user["user"]["exec"]


def test_the_boundary_of_the_stack_file_limits_every_role_and_the_control_planes_too() -> None:
    graph = recorded("registries, admins, operator, alerts and tags")
    roles = [node for node in graph.of("Role") if node.kind.startswith("aws:iam")]
    assert len(roles) > 4
    assert {role.inputs.get("permissionsBoundary") for role in roles} == {BOUNDARY}
    control_plane = graph["Role control-plane"]
    cluster = graph.one("eks:index:Cluster", "cluster")
    assert cluster.inputs["serviceRole"] == {"$ref": control_plane.urn}
    assert "RolePolicyAttachment control-plane-AmazonEKSClusterPolicy" in {
        str(graph.nodes[urn]).rpartition(":")[2] for urn in cluster.needs
    }


def test_the_kubeconfig_asks_for_a_token_and_holds_none(dev: Graph) -> None:
    exec_ = _credentials(dev)
    name = dev["eks:index:Cluster cluster"].inputs["name"]
    assert (exec_["command"], exec_["args"]) == (
        "aws",
        ["eks", "get-token", "--cluster-name", name, "--region", "ap-northeast-2"],
    )
    assert not re.search(
        r'"(token|password|client-key-data|client-certificate-data)"', dev.outputs["kubeconfig"]
    )
    provider = dev["pulumi:providers:kubernetes cluster"].inputs
    assert provider["kubeconfig"] == dev.outputs["kubeconfig"]
    assert provider["clusterIdentifier"].startswith("arn:aws:eks")


def test_a_gpu_node_is_let_in_as_a_node(dev: Graph) -> None:
    entry = dev["AccessEntry gpu-nodes"].inputs
    assert (entry["type"], entry["principalArn"]) == ("EC2_LINUX", "arn:aws:iam:::gpu-nodes")
    assert (
        dev["EC2NodeClass g6e-class"].inputs["spec"]["instanceProfile"]
        == dev["InstanceProfile gpu-nodes"].inputs["name"]
    )


def test_no_node_role_may_change_the_network(dev: Graph) -> None:
    holders = {
        a.inputs["role"] for a in dev.of("RolePolicyAttachment") if "CNI" in a.inputs["policyArn"]
    }
    assert holders == {dev["Role cni"].inputs["name"]}


# Controllers.


def test_karpenter_knows_its_cluster_and_the_queue_that_warns_it(dev: Graph) -> None:
    values = dev["Release karpenter"].inputs["values"]
    assert values["settings"] == {
        "clusterName": dev["eks:index:Cluster cluster"].inputs["name"],
        "clusterEndpoint": "https://cluster",
        "interruptionQueue": "dev-interruptions-dd8bb34a",
        "eksControlPlane": True,
    }
    assert values["controller"]["env"] == [{"name": "AWS_REGION", "value": "ap-northeast-2"}], (
        "Karpenter asks the instance metadata service, which no pod reaches"
    )
    assert dev["Queue karpenter"].inputs["name"] == "dev-interruptions-dd8bb34a"
    association = dev["PodIdentityAssociation karpenter"].inputs
    assert values["serviceAccount"]["name"] == association["serviceAccount"]
    assert dev["Release karpenter"].inputs["namespace"] == association["namespace"]


def test_karpenter_never_runs_on_a_node_that_it_could_remove(dev: Graph) -> None:
    assert dev["NodeGroup system"].inputs["scalingConfig"] == {
        "minSize": 2,
        "maxSize": 3,
        "desiredSize": 2,
    }
    taints = [t for p in dev.of("NodePool") for t in p.inputs["spec"]["template"]["spec"]["taints"]]
    assert len(taints) == 2 and "nvidia.com/gpu" not in json.dumps(dev["Release karpenter"].inputs)


def test_crds_of_karpenter_are_upgraded_by_a_release_of_their_own(dev: Graph) -> None:
    assert dev["Release karpenter"].inputs["skipCrds"] is True
    crds, controller = (dev[f"Release {name}"].inputs for name in ("karpenter-crd", "karpenter"))
    assert crds["version"] == controller["version"]


def test_a_release_is_named_like_its_resource_so_that_a_lost_one_is_found(dev: Graph) -> None:
    assert len(dev.of("Release")) == 5
    assert all(release.inputs["name"] == release.name for release in dev.of("Release"))


def test_a_release_that_begins_before_its_nodes_waits_as_long_as_the_slowest_of_them(
    dev: Graph,
) -> None:
    slowest = 1979  # trainyard/catalog/aws/latencies.py, eks.nodegroup
    for release in dev.of("Release"):
        waits = release.name in ("karpenter", "kubeflow-trainer")
        assert (release.inputs["timeout"] > slowest + 60) is waits, release


def test_karpenter_asks_the_resolver_of_the_vpc_and_starts_without_coredns(dev: Graph) -> None:
    assert dev["Release karpenter"].inputs["values"]["dnsPolicy"] == "Default"


def test_the_trainers_controller_has_the_version_of_its_chart(dev: Graph) -> None:
    release = dev["Release kubeflow-trainer"].inputs
    assert (release["version"], release["values"]["image"]) == ("2.1.0", {"tag": "v2.1.0"})


def test_the_trainers_crds_follow_its_version_and_come_from_nowhere_else(dev: Graph) -> None:
    crds, controller = (dev[f"Release kubeflow-trainer{end}"].inputs for end in ("-crds", ""))
    assert crds["chart"].endswith(f"-{controller['version']}") and crds["takeOwnership"] is True
    assert controller["skipCrds"] is True and controller["values"]["crds"] == {"enabled": False}


def test_events_that_end_nodes_reach_the_queue(dev: Graph) -> None:
    patterns = {
        r.inputs["name"]: json.loads(r.inputs["eventPattern"])["detail-type"]
        for r in dev.of("EventRule")
    }
    assert ["EC2 Spot Instance Interruption Warning"] in patterns.values() and len(patterns) == 5
    targets = {t.inputs["rule"]: t.inputs["arn"] for t in dev.of("EventTarget")}
    assert targets == dict.fromkeys(patterns, "arn:aws:sqs:::karpenter")


# Pools.


def test_a_pool_never_ends_a_node_under_a_running_gang(dev: Graph) -> None:
    for pool in dev.of("NodePool"):
        spec = pool.inputs["spec"]
        assert spec["template"]["spec"]["expireAfter"] == "Never"
        assert spec["disruption"]["consolidationPolicy"] == "WhenEmpty"
        assert {"nodes": "0", "reasons": ["Drifted", "Underutilized"]} in spec["disruption"][
            "budgets"
        ]


def test_karpenter_makes_dry_runs_unless_the_stack_file_says_otherwise(dev: Graph) -> None:
    def settings(graph: Graph) -> dict[str, Any]:
        return graph["Release karpenter"].inputs["values"]["settings"]

    without_dry_runs = settings(environment(at("karpenter.dry_run", False)))
    assert without_dry_runs == settings(dev) | {"disableDryRun": True}
    assert "disableDryRun" not in settings(dev)


def test_a_pool_stops_at_its_limit(dev: Graph) -> None:
    assert dev["NodePool g6e-pool"].inputs["spec"]["limits"] == {
        "nodes": "4",
        "nvidia.com/gpu": "32",
    }


def test_deleting_a_pool_has_time_for_its_last_node(dev: Graph) -> None:
    assert {
        n.options.customTimeouts.delete for n in [*dev.of("NodePool"), *dev.of("EC2NodeClass")]
    } == {"30m"}


def test_what_runs_on_a_gpu_node_tolerates_its_taint(dev: Graph) -> None:
    [taint] = dev["NodePool g6e-pool"].inputs["spec"]["template"]["spec"]["taints"]
    job = dev[TRAIN_JOB].inputs["spec"]["podTemplateOverrides"][0]["spec"]
    plugin = dev["DaemonSet efa-device-plugin"].inputs["spec"]["template"]["spec"]
    for pod in (job, plugin):
        assert any(
            (t["key"], t.get("effect", taint["effect"])) == (taint["key"], taint["effect"])
            and (t["operator"] == "Exists" or t.get("value") == taint["value"])
            for t in pod["tolerations"]
        )


def test_nothing_else_is_scheduled_on_a_gpu_node(dev: Graph) -> None:
    """PreferNoSchedule is advice: a full system node would send its pods to a p5."""
    taints = dev["NodePool g6e-pool"].inputs["spec"]["template"]["spec"]["taints"]
    assert [taint["effect"] for taint in taints] == ["NoSchedule"]


def test_the_efa_plugin_runs_where_there_are_efa_devices(dev: Graph) -> None:
    affinity = dev["DaemonSet efa-device-plugin"].inputs["spec"]["template"]["spec"]["affinity"][
        "nodeAffinity"
    ]
    [term] = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term["matchExpressions"] == [
        {
            "key": "node.kubernetes.io/instance-type",
            "operator": "In",
            "values": ["g6e.48xlarge", "p5.48xlarge"],
        }
    ]
    assert not environment(at("pools", {}), at("jobs", {})).of("DaemonSet")


# The job and its runtime: what somebody would have written by hand, and what they would have
# forgotten.


def test_the_job_means_what_the_hand_written_one_means(dev: Graph) -> None:
    job = dev[TRAIN_JOB].inputs
    assert (job["apiVersion"], job["kind"]) == ("trainer.kubeflow.org/v1alpha1", "TrainJob")
    assert (job["metadata"]["name"], job["metadata"]["namespace"]) == ("t5-large", "training")
    trainer = job["spec"]["trainer"]
    assert trainer["numNodes"] == 2 and "numProcPerNode" not in trainer  # which is auto
    assert trainer["image"].startswith(
        "public.ecr.aws/deep-learning-containers/pytorch:2.11.0-cu130-amzn2023"
    )
    assert trainer["resourcesPerNode"]["limits"]["nvidia.com/gpu"] == "8"
    [override] = job["spec"]["podTemplateOverrides"]
    assert override["targetJobs"] == [{"name": "node"}]
    assert override["spec"]["nodeSelector"] == {
        "trainyard.io/pool": "g6e",
        "node.kubernetes.io/instance-type": "g6e.48xlarge",
        "topology.kubernetes.io/zone": "ap-northeast-2a",
    }


def test_the_job_starts_eight_ranks_a_node_that_meet_at_the_first(dev: Graph) -> None:
    shell, flag, script = dev[TRAIN_JOB].inputs["spec"]["trainer"]["command"]
    assert (shell, flag, script.splitlines()[0]) == ("/bin/bash", "-c", "set -euo pipefail")
    text = script.replace("\\\n", " ")
    assert (
        "export MASTER_ADDR=${PET_MASTER_ADDR}" in text
        and "export MASTER_PORT=${PET_MASTER_PORT:-29500}" in text
    )
    [launch] = [line.split() for line in text.splitlines() if line.startswith("torchrun")]
    assert launch == [
        "torchrun",
        "--nproc_per_node=8",
        "--rdzv_id=elastic-job",
        "--rdzv_backend=c10d",
        "--rdzv_endpoint=${MASTER_ADDR}:${MASTER_PORT}",
        "t5-fsdp.py",
    ]
    assert (
        text.index("git clone")
        < text.index("cd /workspace/code/samples/fsdp")
        < text.index("pip install")
    )


def test_the_job_gets_all_efa_devices_and_asks_for_what_it_gets(dev: Graph) -> None:
    resources = dev[TRAIN_JOB].inputs["spec"]["trainer"]["resourcesPerNode"]
    limits = {"nvidia.com/gpu": "8", "vpc.amazonaws.com/efa": "4", "memory": "1272Gi"}
    assert resources == {"limits": limits, "requests": {"cpu": "171", **limits}}


def test_the_job_has_shared_memory_and_a_place_for_checkpoints(dev: Graph) -> None:
    spec = dev[TRAIN_JOB].inputs["spec"]
    pod = spec["podTemplateOverrides"][0]["spec"]
    assert {v["name"]: v for v in pod["volumes"]} == {
        "dshm": {"name": "dshm", "emptyDir": {"medium": "Memory", "sizeLimit": "64Gi"}},
        "scratch": {"name": "scratch", "persistentVolumeClaim": {"claimName": SCRATCH}},
    }
    [container] = pod["containers"]
    assert container == {
        "name": "node",
        "volumeMounts": [
            {"name": "dshm", "mountPath": "/dev/shm"},
            {"name": "scratch", "mountPath": "/checkpoints", "subPath": "t5-large"},
        ],
    }
    env = {each["name"]: each["value"] for each in spec["trainer"]["env"]}
    assert env == {"CHECKPOINT_DIR": "/checkpoints", VARIABLE: conf(), "PYTHONUNBUFFERED": "1"}


def test_the_job_leaves_a_dead_node_soon_and_is_not_disrupted(dev: Graph) -> None:
    override = dev[TRAIN_JOB].inputs["spec"]["podTemplateOverrides"][0]
    assert override["metadata"]["annotations"] == {"karpenter.sh/do-not-disrupt": "true"}
    seconds = {t["key"]: t.get("tolerationSeconds") for t in override["spec"]["tolerations"]}
    assert seconds == {
        "nvidia.com/gpu": None,
        "trainyard.io/pool": None,
        "node.kubernetes.io/unreachable": 30,
        "node.kubernetes.io/not-ready": 30,
    }


def test_the_jobs_own_runtime_restarts_the_whole_gang_five_times(dev: Graph) -> None:
    assert dev[TRAIN_JOB].inputs["spec"]["runtimeRef"] == {"name": "torch-distributed-resilient"}
    runtime = dev[RESILIENT].inputs
    assert runtime["metadata"] == {
        "name": "torch-distributed-resilient",
        "labels": {"trainer.kubeflow.org/framework": "torch"},
    }
    jobset = runtime["spec"]["template"]["spec"]
    assert jobset["failurePolicy"] == {"maxRestarts": 5}
    [job] = jobset["replicatedJobs"]
    assert job["name"] == "node"
    assert job["template"]["metadata"]["labels"] == {
        "trainer.kubeflow.org/trainjob-ancestor-step": "trainer"
    }
    assert job["template"]["spec"]["backoffLimit"] == 0, (
        "a pod that is retried alone waits for ranks that are gone"
    )
    assert job["template"]["spec"]["template"]["spec"]["restartPolicy"] == "Never"


def test_only_a_changed_identity_replaces_a_run_and_the_old_one_goes_first(dev: Graph) -> None:
    node = dev[TRAIN_JOB]
    assert list(node.options.ignoreChanges) == ["spec"]
    assert list(node.options.replaceOnChanges) == ['metadata.annotations["trainyard.io/run"]']
    assert node.options.deleteBeforeReplace
    again = environment(at(f"{JOB}.run", 2))[TRAIN_JOB].inputs["metadata"]["annotations"][
        "trainyard.io/run"
    ]
    first = node.inputs["metadata"]["annotations"]["trainyard.io/run"]
    assert first != again and first.partition("-")[0] == again.partition("-")[0], (
        "same work, counted up"
    )


def test_a_runtime_keeps_its_name_so_the_old_one_goes_first(dev: Graph) -> None:
    assert len(dev.of("ClusterTrainingRuntime")) == 7
    runtimes = dev.of("ClusterTrainingRuntime")
    assert len(runtimes) > 5 and all(r.options.deleteBeforeReplace for r in runtimes)


def test_a_runtime_with_another_failure_policy_is_made_anew(dev: Graph) -> None:
    """JobSet refuses to change the field in place."""
    with_policy = [
        runtime
        for runtime in dev.of("ClusterTrainingRuntime")
        if "failurePolicy" in runtime.inputs["spec"]["template"]["spec"]
    ]
    assert with_policy and all(
        "spec.template.spec.failurePolicy" in runtime.options.replaceOnChanges
        for runtime in with_policy
    )


def test_claims_are_bound_to_the_environments_file_systems(dev: Graph) -> None:
    volume = dev["PersistentVolume training-scratch-volume"].inputs["spec"]
    assert volume["csi"] == {
        "driver": "fsx.csi.aws.com",
        "volumeHandle": "scratch-id",
        "volumeAttributes": {"dnsname": "scratch.fsx", "mountname": "mnt"},
    }
    assert volume["claimRef"] == {"name": SCRATCH, "namespace": "training"}
    assert volume["persistentVolumeReclaimPolicy"] == "Retain"
    claim = dev["PersistentVolumeClaim training-scratch-claim"].inputs
    assert (claim["spec"]["volumeName"], claim["spec"]["storageClassName"]) == (
        f"training-{SCRATCH}",
        "",
    )
    home = dev["PersistentVolume training-home-volume"].inputs["spec"]
    assert home["csi"]["driver"] == "efs.csi.aws.com" and home["csi"]["volumeHandle"] == "home-id"


# Data.


@pytest.mark.parametrize(
    ("store", "kept"),
    [
        ("scratch", "aws:fsx/lustreFileSystem:LustreFileSystem scratch"),
        ("home", "aws:efs/fileSystem:FileSystem home"),
    ],
)
def test_kept_data_is_protected_and_nothing_else_is(store: str, kept: str) -> None:
    graph = environment(at(f"storage.{store}.data", "keep"))
    assert [str(n) for n in graph.nodes.values() if n.options.protect] == [kept]


def test_data_at_rest_is_encrypted(dev: Graph) -> None:
    """FSx encrypts always; the rest has to be told."""
    assert dev["FileSystem home"].inputs["encrypted"] is True
    assert dev["Queue karpenter"].inputs["sqsManagedSseEnabled"] is True
    disks = [
        disk["ebs"]["encrypted"]
        for node_class in dev.of("EC2NodeClass")
        for disk in node_class.inputs["spec"]["blockDeviceMappings"]
    ]
    assert disks == [True, True]


def test_the_file_system_has_the_size_and_speed_of_the_stack_file(dev: Graph) -> None:
    i = dev["LustreFileSystem scratch"].inputs
    assert (i["storageCapacity"], i["perUnitStorageThroughput"], i["deploymentType"]) == (
        4800,
        500,
        "PERSISTENT_2",
    )
    waits = dev["LustreFileSystem scratch"].options.customTimeouts
    assert waits.update == "120m", "it grows for longer than the provider's half an hour"
    assert not waits.create and not waits.delete, "those of the provider will do"


@pytest.mark.parametrize(
    ("settings", "days"),
    [
        ({}, 0),
        ({"backup_days": 7}, 7),
        ({"restore_from": "backup-0123456789abcdef0"}, None),
        ({"restore_from": "backup-0123456789abcdef0", "backup_days": 0}, 0),
        ({"deployment": "SCRATCH_2", "throughput_mbps_per_tib": None}, None),
    ],
)
def test_backups_end_when_their_line_is_taken_out(
    settings: dict[str, Any], days: int | None
) -> None:
    """To the provider a missing number is AWS's choice. A restored file system goes on with its backups."""
    given = {"capacity_gib": 4800, "throughput_mbps_per_tib": 500} | settings
    found = environment(at("storage.scratch.lustre", given))["LustreFileSystem scratch"]
    assert found.inputs.get("automaticBackupRetentionDays") == days


def test_data_is_kept_where_the_stack_file_is_silent() -> None:
    graph = environment(without("storage.scratch.data"), without("storage.home.data"))
    assert {n.name for n in graph.nodes.values() if n.options.protect} == {"scratch", "home"}


LINKED = at(
    "storage.scratch.lustre.repositories",
    {
        "images": {"s3": "s3://sets/images/", "path": "/images"},
        "out": {
            "s3": "s3://runs",
            "path": "/out",
            "auto_import": [],
            "auto_export": ["NEW", "CHANGED"],
            "import_at_creation": False,
        },
    },
)


def test_directories_of_the_file_system_show_s3_before_anybody_mounts_it() -> None:
    """At destroy the other way round: volume, links, file system."""
    graph = environment(LINKED)
    images, out = (graph[f"DataRepositoryAssociation scratch.{name}"] for name in ("images", "out"))
    assert images.inputs["fileSystemId"] == graph["LustreFileSystem scratch"].id
    assert (images.inputs["dataRepositoryPath"], images.inputs["fileSystemPath"]) == (
        "s3://sets/images/",
        "/images",
    )
    assert images.inputs["s3"] == {"autoImportPolicy": {"events": ["NEW", "CHANGED", "DELETED"]}}
    assert out.inputs["s3"] == {"autoExportPolicy": {"events": ["NEW", "CHANGED"]}}
    assert not any(each.inputs["deleteDataInFilesystem"] for each in (images, out))
    assert graph.waits_for(out, images), "FSx makes one link after the other"
    assert graph.waits_for(graph["PersistentVolume training-scratch-volume"], out)
    assert graph.waits_for(graph[TRAIN_JOB], out)


def test_a_link_to_s3_is_found_again_by_its_tags_and_stands_alone_when_it_is_made_anew() -> None:
    for link in environment(LINKED).of("DataRepositoryAssociation"):
        assert (
            link.inputs["tags"]["trainyard:name"] == link.name and link.options.deleteBeforeReplace
        )
        assert link.options.customTimeouts.create == "30m", (
            "FSx has taken longer than the provider's ten minutes"
        )


def test_a_link_is_protected_where_it_would_take_kept_data_with_it() -> None:
    graph = environment(
        LINKED,
        at("storage.scratch.data", "keep"),
        at("storage.scratch.lustre.repositories.out.delete_data_in_filesystem", True),
    )
    assert {n.name for n in graph.nodes.values() if n.options.protect} == {"scratch", "scratch.out"}


OVER_EFA = at(
    "storage.scratch.lustre", {"capacity_gib": 9600, "throughput_mbps_per_tib": 500, "efa": True}
)


def test_a_store_that_is_made_for_efa_is_so_from_the_beginning() -> None:
    found = environment(OVER_EFA)["LustreFileSystem scratch"]
    assert found.inputs["efaEnabled"] is True and found.inputs["metadataConfiguration"] == {
        "mode": "AUTOMATIC"
    }
    assert list(found.options.replaceOnChanges) == ["perUnitStorageThroughput"], (
        "FSx never changes it"
    )


def test_servers_and_clients_of_efa_let_everything_through_in_both_directions_by_id() -> None:
    graph = environment(OVER_EFA)
    for kind in ("SecurityGroupIngressRule", "SecurityGroupEgressRule"):
        open_ = {
            (r.inputs["securityGroupId"], r.inputs.get("referencedSecurityGroupId"))
            for r in graph.of(kind)
            if r.inputs["ipProtocol"] == "-1"
        }
        assert open_ >= {
            ("scratch-id", "scratch-id"),
            ("scratch-id", "nodes-id"),
            ("nodes-id", "scratch-id"),
        }
    assert graph.waits_for(
        graph["LustreFileSystem scratch"], graph["SecurityGroupEgressRule scratch-servers-out"]
    )
    assert not [r for r in graph.of("SecurityGroupEgressRule") if r.inputs["ipProtocol"] == "tcp"]
    assert not [n for n in graph.nodes.values() if "servers-988" in n.name], (
        "all traffic holds those ports"
    )


def test_a_volume_of_efs_waits_for_the_mount_targets_of_all_zones() -> None:
    away = ["ap-northeast-2c", "ap-northeast-2b"]
    graph = environment(at("pools.h100.fallback_zones", away))
    subnet = {s.id: s.inputs["availabilityZone"] for s in graph.of("Subnet")}
    assert {t.name: subnet[t.inputs["subnetId"]] for t in graph.of("MountTarget")} == {
        "home.a": "ap-northeast-2a",
        "home.b": "ap-northeast-2b",
        "home.c": "ap-northeast-2c",
    }
    before = {t.name: t.options.aliases[0].spec.name for t in graph.of("MountTarget")}
    assert before == {"home.a": "home", "home.b": "home-b", "home.c": "home-c"}
    volume = graph["PersistentVolume training-home-volume"]
    assert volume.inputs["spec"]["csi"]["volumeHandle"] == "home-id"
    for target in graph.of("MountTarget"):
        assert target.inputs["securityGroups"] == ["home-id"]
        assert graph.waits_for(volume, target)
        assert graph.waits_for(target, graph["SecurityGroupIngressRule home-nfs"])


def test_only_nodes_that_can_have_lustre_go_over_efa(dev: Graph) -> None:
    def boots(graph: Graph) -> dict[str, bool]:
        return {n.name: "lnetctl" in n.inputs["spec"]["userData"] for n in graph.of("EC2NodeClass")}

    assert boots(environment(OVER_EFA)) == {"g6e-class": False, "h100-class": True}
    assert boots(dev) == {"g6e-class": False, "h100-class": False}


def test_every_pool_has_the_client_of_lustre_where_some_store_is_lustre(dev: Graph) -> None:
    def installs(graph: Graph) -> set[bool]:
        classes = graph.of("EC2NodeClass")
        return {"lustre-client" in one.inputs["spec"]["userData"] for one in classes}

    assert installs(dev) == {True}
    saves = at("jobs.t5-large.checkpoints.store", "home")
    assert installs(environment(without("storage.scratch"), saves)) == {False}


GUARDS = {
    f"aws:s3/bucket{kind}:Bucket{kind}"
    for kind in (
        "LifecycleConfiguration",
        "Policy",
        "PublicAccessBlock",
        "ServerSideEncryptionConfiguration",
    )
}
"""Types of what guards a bucket that is kept. They cost nothing."""


def test_nothing_is_ever_forgotten_while_it_still_costs_money(dev: Graph, most: Graph) -> None:
    """Kubernetes itself deletes what lies in a namespace, with the namespace."""
    kept = environment(at("storage.scratch.data", "keep"))
    nodes = [node for graph in (dev, most, kept) for node in graph.nodes.values()]
    retained = {n.kind for n in nodes if n.options.retainOnDelete}
    assert retained <= GUARDS
    assert not [n for n in [*dev.nodes.values(), *kept.nodes.values()] if n.options.deletedWith]
    for node in most.nodes.values():
        if node.options.deletedWith:
            space = most.nodes[node.options.deletedWith]
            assert space.kind == "kubernetes:core/v1:Namespace"
            assert node.kind.startswith("kubernetes:")
            assert node.inputs["metadata"]["namespace"] == space.inputs["metadata"]["name"]


# Outputs and refusals.


def test_outputs_are_plain_and_say_where_the_jobs_are(dev: Graph) -> None:
    assert set(dev.outputs) == {
        "kubeconfig",
        "contract",
        "jobs",
        "registries",
        "plan",
        "release",
    }
    assert dev.outputs["release"] == TRAINYARD
    job = dev.outputs["jobs"]["t5-large"]
    assert (job["kind"], job["namespace"], job["name"]) == ("TrainJob", "training", "t5-large")
    shown = {"status", "logs", "logs_of_rank_0", "events", "describe", "delete", "again"}
    assert job.keys() == {"kind", "namespace", "name", *shown}
    assert dev.outputs["plan"]["quota_vcpus"] == {
        "L-1216C47A": 32,
        "L-417A185B": 384,
        "L-DB2E81BA": 768,
    }
    assert dev.outputs["contract"]["volumes"]["scratch"] == {
        "driver": "fsx.csi.aws.com",
        "handle": "scratch-id",
        "options": ["flock"],
        "attributes": {"dnsname": "scratch.fsx", "mountname": "mnt"},
    }


def _planted(values: dict[str, Any]) -> None:
    at("zone", "ap-northeast-2")(values[ENVIRONMENT])
    at(f"{JOB}.gpus_per_node", 9)(values[ENVIRONMENT])


def test_a_stack_with_errors_creates_nothing_and_names_all_of_them() -> None:
    with pytest.raises(pulumi.RunError) as refused:
        deploy("dev", _planted)
    head, *lines = str(refused.value).splitlines()
    assert head == "2 errors in the stack file"
    assert [line.split()[:2] for line in lines] == [
        ["error", "environment.zone"],
        ["error", f"environment.{JOB}.gpus_per_node"],
    ]


def test_what_should_be_known_is_a_warning_of_the_preview(caplog: pytest.LogCaptureFixture) -> None:
    deploy("dev", preview=True)
    assert re.search(
        r"public_access_cidrs \[Pulumi\.dev\.yaml:\d+\]: 203.0.113.7/32 is an address of examples",
        caplog.text,
    )


SETTINGS: dict[str, Changes] = {
    "no stores": lambda v: [at("storage", {})(v[ENVIRONMENT]), at("jobs", {})(v[ENVIRONMENT])],
    "no pools": lambda v: [at("pools", {})(v[ENVIRONMENT]), at("jobs", {})(v[ENVIRONMENT])],
    "three file systems": (
        lambda v: v[ENVIRONMENT]["storage"].update(
            data={"lustre": {"capacity_gib": 1200, "deployment": "SCRATCH_2"}}
        )
    ),
}


@pytest.mark.parametrize("setting", SETTINGS)
def test_other_stacks_build_too(setting: str) -> None:
    graph = deploy("dev", SETTINGS[setting])
    assert len(graph.of("NodeGroup")) == 1


def test_system_nodes_are_upgraded_patched_encrypted_and_keep_their_credentials(dev: Graph) -> None:
    group, template = dev["NodeGroup system"].inputs, dev["LaunchTemplate system"].inputs
    assert (group["version"], group["releaseVersion"]) == ("1.35", "1.35.8-20261012")
    assert group["launchTemplate"] == {"id": "system-id", "version": "1"}
    assert template["metadataOptions"] == {"httpTokens": "required", "httpPutResponseHopLimit": 1}
    assert [disk["ebs"]["encrypted"] for disk in template["blockDeviceMappings"]] == ["true"]
    assert "diskSize" not in group, "EKS refuses it beside a launch template"


def test_an_update_of_system_nodes_leaves_one_for_coredns_and_the_webhooks(dev: Graph) -> None:
    group = dev["NodeGroup system"].inputs
    assert 0 < group["updateConfig"]["maxUnavailable"] < group["scalingConfig"]["desiredSize"]


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("eks:index:Cluster cluster", "Addon kube-proxy"),
        ("eks:index:Cluster cluster", "NodeGroup system"),
        ("NodeGroup system", "Addon coredns"),
        ("Release karpenter-crd", "Release karpenter"),
        ("RolePolicy karpenter-nodes", "Release karpenter"),
        ("Release karpenter", "EC2NodeClass g6e-class"),
    ],
)
def test_an_upgrade_goes_in_the_order_that_works(dev: Graph, earlier: str, later: str) -> None:
    assert dev.waits_for(dev[later], dev[earlier])


def test_the_control_plane_logs_who_did_what_and_stays_as_it_is_when_support_ends(
    dev: Graph,
) -> None:
    cluster = dev["eks:index:Cluster cluster"].inputs
    assert cluster["enabledClusterLogTypes"] == ["audit", "authenticator"]
    assert cluster["upgradePolicy"] == {"supportType": "EXTENDED"}
    assert [group.inputs["retentionInDays"] for group in dev.of("LogGroup")] == [90]
    other = environment(
        without("cluster.log_retention_days"),
        at("cluster.logs", []),
        at("cluster.upgrade_policy", "standard"),
    )
    assert not other.of("LogGroup")
    cluster = other["eks:index:Cluster cluster"].inputs
    assert cluster["enabledClusterLogTypes"] == []
    assert cluster["upgradePolicy"] == {"supportType": "STANDARD"}


def test_a_claim_goes_before_a_volume_that_is_replaced_under_its_name(dev: Graph) -> None:
    """A bound volume waits for its claim, and the provider does not know that the claim must go."""
    volume = dev["PersistentVolume training-scratch-volume"]
    claim = dev["PersistentVolumeClaim training-scratch-claim"]
    assert [*claim.options.replace_with] == [volume.urn]
