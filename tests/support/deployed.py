"""State of a stack after an `up`, as the engine tells it: made from a recorded graph."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from tests.support.recording import Graph
from trainyard.replacing.deployed import Deployed
from trainyard.replacing.replacing import CLUSTER, RUNTIME, STORES

REGION = "ap-northeast-2"
BY_PULUMI_EKS = "arn:aws:iam::123456789012:role/cluster-eksRole-role-dc27638"
"""The control plane's role, where the program makes none."""
KEY_OF_AWS = "arn:aws:kms:ap-northeast-2:123456789012:key/ffffffff-0000-4000-8000-000000000000"
"""The key of a store, where the program names none."""


def deployed(graph: Graph) -> Deployed:
    """Outputs are inputs, those that a component registers, and what AWS adds to them as far as a rule reads it."""
    found = {
        (node.kind, node.name): _outputs(node.kind, node.inputs) | graph.registered.get(urn, {})
        for urn, node in graph.nodes.items()
    }
    for node in graph.of("eks:index:Cluster"):
        role = node.inputs.get("serviceRole")
        found[CLUSTER] = {
            "name": node.inputs["name"],
            "version": node.inputs["version"],
            "region": REGION,
            "roleArn": f"arn:aws:iam::123456789012:role/{_role(graph)}" if role else BY_PULUMI_EKS,
            "vpcConfig": {"vpcId": node.inputs["vpcId"]},
            "kubernetesNetworkConfig": {
                "serviceIpv4Cidr": node.inputs["kubernetesServiceIpAddressRange"]
            },
            **_encryption(node.inputs.get("encryptionConfigKeyArn")),
        }
    return Deployed(resources=found)


def _outputs(kind: str, inputs: Mapping[str, Any]) -> dict[str, Any]:
    if kind == RUNTIME:
        return _with_defaults(inputs)
    key = {"kmsKeyId": KEY_OF_AWS} if kind in STORES else {}
    return {"region": REGION, **key, **inputs} if kind.startswith("aws:") else dict(inputs)


def _encryption(key: str | None) -> dict[str, Any]:
    provider = {"provider": {"keyArn": key}, "resources": ["secrets"]}
    return {"encryptionConfig": provider} if key else {}


def _with_defaults(runtime: Mapping[str, Any]) -> dict[str, Any]:
    """As the API server keeps it: JobSet's CRD has a default inside of a failure policy."""
    found = copy.deepcopy(dict(runtime))
    if policy := found["spec"]["template"]["spec"].get("failurePolicy"):
        policy.setdefault("restartStrategy", "Recreate")
    return found


def _role(graph: Graph) -> str:
    return graph.one("Role", "control-plane").inputs["name"]
