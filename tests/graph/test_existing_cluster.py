"""An environment in a cluster that exists before it: what is made in it, what is left alone, what is
refused."""

from __future__ import annotations

import json
from typing import Any

import pulumi
import pytest

from components.cluster.add_ons import CNI_POLICY
from tests.support.existing_cluster import (
    BUILDS,
    GROUP,
    IN_CLUSTER,
    NAME,
    SERVICES,
    ExistingCluster,
    Failed,
)
from tests.support.existing_vpc import ACCOUNT
from tests.support.recording import Graph, deploy
from tests.support.stackfile import ENVIRONMENT, Edit, at, environment_plan
from tests.support.stacks import recorded
from tests.support.teams import with_queues
from trainyard.catalog.chart_objects import chart_objects
from trainyard.plans.clusters import ALWAYS_THERE
from trainyard.reports.policy import policies


@pytest.fixture(scope="module")
def graph() -> Graph:
    return recorded("existing cluster")


def graph_with(cluster: ExistingCluster, *edits: Edit, preview: bool = False) -> Graph:
    """The graph of the dev stack in that cluster."""

    def changes(values: dict[str, Any]) -> None:
        for edit in (*IN_CLUSTER, *edits):
            edit(values[ENVIRONMENT])

    return deploy("dev", changes, vpc=cluster, preview=preview)


def test_no_control_plane_is_made_and_nothing_of_it_is_in_the_state(graph: Graph) -> None:
    kinds = {node.kind for node in graph.nodes.values()}
    assert not kinds & {
        "eks:index:Cluster",
        "aws:eks/cluster:Cluster",
        "aws:cloudwatch/logGroup:LogGroup",
    }


def test_add_ons_that_are_there_are_not_the_stacks(graph: Graph) -> None:
    made = {node.name for node in graph.of("Addon")}
    assert made == {"aws-fsx-csi-driver", "aws-efs-csi-driver"} and not made & set(BUILDS)
    listed = at("cluster.existing_add_ons", ["eks-pod-identity-agent", "aws-fsx-csi-driver"])
    more = ExistingCluster(builds={**BUILDS, "aws-fsx-csi-driver": "v1.7.0-eksbuild.1"})
    assert [node.name for node in graph_with(more, listed).of("Addon")] == ["aws-efs-csi-driver"]


def test_an_add_on_of_the_stack_overwrites_nothing_in_an_existing_cluster(
    graph: Graph, dev: Graph
) -> None:
    conflicts = {node.inputs["resolveConflictsOnCreate"] for node in graph.of("Addon")}
    assert conflicts == {"NONE"}
    assert {node.inputs["resolveConflictsOnCreate"] for node in dev.of("Addon")} == {"OVERWRITE"}


def test_the_vpc_cni_gets_its_permission_from_the_nodes_and_no_new_identity(graph: Graph) -> None:
    """An association for aws-node would change the identity of the pods on all nodes."""
    accounts = {node.inputs["serviceAccount"] for node in graph.of("PodIdentityAssociation")}
    assert "aws-node" not in accounts and "karpenter" in accounts
    carriers = {
        node.inputs["role"]
        for node in graph.of("RolePolicyAttachment")
        if node.inputs["policyArn"] == CNI_POLICY
    }
    roles = {graph[f"Role {name}"].inputs["name"] for name in ("system", "gpu-nodes")}
    assert carriers == roles


def test_nodes_and_controllers_join_the_existing_cluster(graph: Graph) -> None:
    for kind in ("Addon", "AccessEntry", "NodeGroup", "PodIdentityAssociation"):
        assert {node.inputs["clusterName"] for node in graph.of(kind)} == {NAME}, kind
    for node_class in graph.of("EC2NodeClass"):
        groups = {term["id"] for term in node_class.inputs["spec"]["securityGroupSelectorTerms"]}
        assert GROUP in groups
    settings = graph["Release karpenter"].inputs["values"]["settings"]
    assert settings["clusterName"] == NAME
    [cluster] = json.loads(graph.outputs["kubeconfig"])["clusters"]
    assert cluster["cluster"]["server"] == "https://research"


def test_controllers_of_charts_run_on_the_nodes_of_the_stack() -> None:
    """On nodes of the owner the API server can be kept from them: then namespaces of the whole cluster stay
    Terminating."""
    there = ExistingCluster(configuration={"vpc-cni": '{"enableNetworkPolicy": "true"}'})
    operator = at("training_operator", {"version": "1.8.1"})
    graph = graph_with(there, with_queues, operator)
    pinned: dict[str, int] = {}
    for release in graph.of("Release"):
        made = [one.kind for one in chart_objects()[release.name].objects].count("Deployment")
        selectors = str(release.inputs.get("values")).count("'trainyard.io/nodes': 'system'")
        assert selectors == made, release.name
        pinned[release.name] = made
    assert pinned["karpenter"] == pinned["kueue"] == pinned["training-operator"] == 1
    assert pinned["kubeflow-trainer"] == 2


def test_pods_of_a_team_reach_no_service_of_the_existing_cluster() -> None:
    there = ExistingCluster(configuration={"vpc-cni": '{"enableNetworkPolicy": "true"}'})
    role = f"arn:aws:iam::{ACCOUNT}:role/nlp-deployer"
    graph = graph_with(there, at("teams", {"nlp": {"deployer": role}}))
    spec = graph["NetworkPolicy team-nlp-network"].inputs["spec"]
    outside = [
        to["ipBlock"]["except"]
        for rule in spec["egress"]
        for to in rule["to"]
        if to.get("ipBlock", {}).get("except")
    ]
    assert outside == [["10.20.0.0/16", SERVICES]]


def test_an_add_on_that_the_stack_made_is_not_taken_for_the_owners() -> None:
    tags = {"trainyard:project": "trainyard", "trainyard:stack": "dev"}
    there = ExistingCluster(tags={"aws-fsx-csi-driver": tags})
    there.builds["aws-fsx-csi-driver"] = "v1.9.0-eksbuild.1"
    assert graph_with(there)["Addon aws-fsx-csi-driver"]
    there.tags["aws-fsx-csi-driver"] = tags | {"trainyard:stack": "prod"}
    with pytest.raises(pulumi.RunError, match=r"existing_add_ons: must list .* got eks-pod"):
        graph_with(there)


def test_a_preview_refuses_a_cluster_with_all_its_faults() -> None:
    there = ExistingCluster(
        cluster={"version": "1.33", "accessConfigs": [{"authenticationMode": "CONFIG_MAP"}]},
        place={"vpcId": "vpc-1", "endpointPrivateAccess": False},
    )
    del there.builds["coredns"]
    with pytest.raises(pulumi.RunError) as refused:
        graph_with(there, preview=True)
    head, *lines = str(refused.value).splitlines()
    assert head == "the cluster cannot be used"
    assert [line.partition(": must ")[0].removeprefix("environment.") for line in lines] == [
        "cluster.version",
        "network.vpc_id",
        "cluster.name",
        "cluster.name",
        "cluster.existing_add_ons",
    ]


def test_a_preview_warns_of_the_strict_mode_of_the_vpc_cni(
    caplog: pytest.LogCaptureFixture,
) -> None:
    values = {"enableNetworkPolicy": "true", "env": {"NETWORK_POLICY_ENFORCING_MODE": "strict"}}
    graph_with(ExistingCluster(configuration={"vpc-cni": json.dumps(values)}), preview=True)
    assert "the VPC CNI of research is in strict mode" in caplog.text


def test_a_preview_refuses_ipv6_and_auto_mode() -> None:
    there = ExistingCluster(
        cluster={
            "kubernetesNetworkConfigs": [{"serviceIpv4Cidr": "", "ipFamily": "ipv6"}],
            "computeConfigs": [{"enabled": True, "nodePools": ["system"], "nodeRoleArn": ""}],
        }
    )
    with pytest.raises(pulumi.RunError, match="ipFamily is ipv6") as refused:
        graph_with(there, preview=True)
    assert "computeConfig is enabled" in str(refused.value)


def test_services_of_an_existing_cluster_may_have_any_range_that_the_vpc_leaves() -> None:
    """Both ranges that the stack chooses from are the VPC's."""
    ranges = [
        {"associationId": "", "cidrBlock": cidr, "state": "associated"}
        for cidr in ("10.100.0.0/16", "172.20.0.0/16")
    ]
    graph_with(ExistingCluster(vpc={"cidrBlockAssociations": ranges}), preview=True)


def test_a_cluster_that_does_not_exist_is_asked_nothing_more() -> None:
    there = ExistingCluster(names=("other",))
    with pytest.raises(pulumi.RunError, match="must be an EKS cluster of this account"):
        graph_with(there)
    assert "getCluster" not in there.asked and "getAddon" not in there.asked


def test_a_deployer_without_an_access_entry_is_refused_with_the_command() -> None:
    with pytest.raises(
        pulumi.RunError, match="must be a cluster whose admin the deployer is"
    ) as no:
        graph_with(ExistingCluster(admits=()))
    assert "--principal-arn arn:aws:iam::111122223333:role/teams/deployer" in str(no.value)


def test_any_other_trouble_of_a_look_up_is_no_missing_add_on() -> None:
    class Denied(ExistingCluster):
        def _getAddon(self, arguments: dict[str, Any]) -> Any:
            raise Failed("AccessDeniedException: eks:DescribeAddon")

    with pytest.raises(Exception, match="AccessDenied"):
        graph_with(Denied())


def test_the_policy_of_the_deployer_names_no_part_of_the_owners() -> None:
    documents = policies(environment_plan(*IN_CLUSTER))
    text = json.dumps(documents)
    for call in ("CreateCluster", "DeleteCluster", "UpdateClusterConfig", "UpdateClusterVersion"):
        assert f"eks:{call}" not in text
    for add_on in (*ALWAYS_THERE, "eks-pod-identity-agent"):
        assert f"addon/{NAME}/{add_on}/" not in text
    assert f"addon/{NAME}/aws-fsx-csi-driver/*" in text and f"nodegroup/{NAME}/dev-*/*" in text
    assert f":*/{NAME}" not in text.replace(f"cluster/{NAME}", "")


def test_a_preview_lists_what_an_update_makes(graph: Graph) -> None:
    assert graph_with(ExistingCluster(), preview=True).nodes.keys() == graph.nodes.keys()


def test_the_entry_of_the_system_nodes_is_the_stacks_and_goes_with_it(
    graph: Graph, dev: Graph
) -> None:
    """EKS would make one itself and leave it in a cluster that stays (seen in the rehearsal)."""
    entry = graph["AccessEntry system"]
    assert entry.inputs["type"] == "EC2_LINUX"
    assert graph.waits_for(graph["NodeGroup system"], entry)
    assert not [node for node in dev.of("AccessEntry") if node.name == "system"]
