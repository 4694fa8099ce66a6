"""The eks plugin's component: its children, what it refuses, how its cluster is reached."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pulumi
import pulumi_aws as aws
import pytest
from pulumi.runtime import mocks, settings

from rehearsal import paths
from rehearsal.providers import eks

BARE: dict[str, Any] = {
    "authenticationMode": "API",
    "skipDefaultNodeGroup": True,
    "skipDefaultSecurityGroups": True,
    "useDefaultVpcCni": True,
    "kubeProxyAddonOptions": {"enabled": False},
    "corednsAddonOptions": {"enabled": False},
    "createOidcProvider": False,
}
WANTED = {
    **BARE,
    "name": "demo",
    "version": "1.34",
    "vpcId": "vpc-1",
    "privateSubnetIds": ["subnet-1"],
    "publicSubnetIds": ["subnet-2"],
    "endpointPrivateAccess": True,
    "bootstrapSelfManagedAddons": False,
    "tags": {"Name": "demo"},
}


class Recorder(pulumi.runtime.Mocks):
    """An engine that remembers what it was asked for."""

    def __init__(self) -> None:
        self.made: dict[str, pulumi.runtime.MockResourceArgs] = {}

    def new_resource(
        self, args: pulumi.runtime.MockResourceArgs
    ) -> tuple[str | None, dict[str, Any]]:
        self.made[args.name] = args
        answers = {
            "aws:iam/role:Role": {"arn": f"arn:aws:iam::1:role/{args.name}"},
            "aws:eks/cluster:Cluster": {
                "arn": "arn:aws:eks:ap-northeast-2:1:cluster/demo",
                "endpoint": "https://127.0.0.1:6443",
                "certificateAuthority": {"data": "Y2E="},
                "identities": [{"oidcs": [{"issuer": "https://oidc/1"}]}],
                "vpcConfig": {"subnetIds": [], "clusterSecurityGroupId": "sg-1"},
            },
        }
        return f"{args.name}-id", {**args.inputs, **answers.get(args.typ, {})}

    def call(
        self, args: pulumi.runtime.MockCallArgs
    ) -> tuple[dict[str, Any], list[tuple[str, str]]]:
        return {"partition": "aws", "dnsSuffix": "amazonaws.com"}, []


def build(given: dict[str, Any], role: str = "") -> tuple[Recorder, dict[str, Any]]:
    """The component in a recording engine: what it made, and its outputs' values. `role`: name of one
    that exists already."""
    recorder, values = Recorder(), {}

    async def run() -> None:
        mocks.set_mocks(recorder)
        roles = {"serviceRole": aws.iam.Role(role, assume_role_policy="{}")} if role else {}
        cluster = eks.Cluster("main", given | roles, None)
        outputs = {
            key: pulumi.Output.from_input(value)
            for key, value in cluster.outputs().items()
            if key != "core"
        }
        for key, output in outputs.items():
            values[key] = await output.future()
        while settings._get_rpc_manager().rpcs:
            await settings._get_rpc_manager().rpcs.pop()

    asyncio.run(run())
    return recorder, values


@pytest.fixture(scope="module")
def built() -> tuple[Recorder, dict[str, Any]]:
    return build(WANTED)


def test_the_component_has_the_children_of_the_genuine_one(
    built: tuple[Recorder, dict[str, Any]],
) -> None:
    types = {name: args.typ for name, args in built[0].made.items()}
    assert types == {
        "main": "eks:index:Cluster",
        "main-eksRole": "eks:index:ServiceRole",
        "main-eksRole-role": "aws:iam/role:Role",
        "main-eksRole-4b490823": "aws:iam/rolePolicyAttachment:RolePolicyAttachment",
        "main-eksCluster": "aws:eks/cluster:Cluster",
        "main-eks-k8s": "pulumi:providers:kubernetes",
    }


def test_the_cluster_is_asked_for_as_the_genuine_component_does(
    built: tuple[Recorder, dict[str, Any]],
) -> None:
    inputs = built[0].made["main-eksCluster"].inputs
    assert inputs["vpcConfig"] == {
        "subnetIds": ["subnet-2", "subnet-1"],
        "endpointPrivateAccess": True,
    }
    assert inputs["accessConfig"] == {
        "authenticationMode": "API",
        "bootstrapClusterCreatorAdminPermissions": True,
    }
    assert inputs["bootstrapSelfManagedAddons"] is False
    assert inputs["tags"] == {"Name": "demo"}
    assert "kubernetesNetworkConfig" not in inputs


def test_a_role_that_is_given_takes_the_place_of_its_own() -> None:
    recorder, _ = build(WANTED, role="control-plane")
    assert recorder.made.keys() == {"control-plane", "main", "main-eksCluster", "main-eks-k8s"}
    arn = "arn:aws:iam::1:role/control-plane"
    assert recorder.made["main-eksCluster"].inputs["roleArn"] == arn


def test_the_outputs_say_how_the_cluster_is_reached(built: tuple[Recorder, dict[str, Any]]) -> None:
    outputs = built[1]
    command = outputs["kubeconfig"]["users"][0]["user"]["exec"]
    assert command["args"] == [
        "--region",
        "ap-northeast-2",
        "eks",
        "get-token",
        "--cluster-name",
        "demo",
        "--output",
        "json",
    ]
    assert outputs["clusterSecurityGroupId"] == "sg-1"
    assert outputs["oidcIssuer"] == "oidc/1"


def test_a_bare_control_plane_is_no_fault_nor_is_the_programs() -> None:
    graph = json.loads((paths.HOME / "tests/golden/dev.graph.json").read_text())
    assert eks.faults(WANTED) == []
    assert [
        eks.faults(made["inputs"]) for made in graph if made["type"] == "eks:index:Cluster"
    ] == [[]]


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"fargate": True}, "fargate"),
        ({"accessEntries": {}}, "accessEntries"),
        ({"instanceRole": "x"}, "instanceRole"),
        ({"skipDefaultNodeGroup": False}, "skipDefaultNodeGroup must be True"),
        ({"kubeProxyAddonOptions": None}, "kubeProxyAddonOptions"),
        ({"authenticationMode": "CONFIG_MAP"}, "'API'"),
    ],
)
def test_what_it_does_not_build_is_refused_by_name(given: dict[str, Any], named: str) -> None:
    assert [named in fault for fault in eks.faults({**BARE, **given})] == [True]


def test_another_component_is_refused_by_name() -> None:
    with pytest.raises(NotImplementedError, match="eks:index:ManagedNodeGroup"):
        eks.Eks().construct("x", "eks:index:ManagedNodeGroup", {})
