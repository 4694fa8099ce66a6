"""The AWS half of a recorded stack as a configuration for Terraform, so that the genuine AWS provider can
create, read and destroy it.

pulumi-aws is made from this provider: a type and an input have the provider's name in another case. The
provider's own schema says which name it is, and what is a block. References between resources are
expressions: the recording engine answers with a mark for each output, and every mark becomes one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rehearsal.aws.identity import ACCOUNT
from tests.support.recording import Changes, Graph, Node, computed, deploy

Block = Mapping[str, Any]
"""A block of the provider's schema, as `terraform providers schema -json` prints it."""
CLUSTER = "eks:index:Cluster"
CONTROL_PLANE = "aws_eks_cluster.control_plane"
SERVICES = {"amp": "prometheus"}
"""Module of pulumi-aws → the word for it in the names of the provider's types, where it is another one."""
RENAMED = {("aws_sns_topic_subscription", "topic"): "topic_arn"}
"""Type and input → argument, where more than the case is different."""
ARN = "arn:aws:mark:ap-northeast-2:111122223333:"
"""Beginning of the mark of an ARN: the program reads the account in it."""
MARK = re.compile(rf"(?:{ARN})?<<([^<>]+)>>")
COUNTED = {"latestVersion": 1}
"""Outputs that the program reads as numbers → the first value that AWS gives."""
TRUST = {
    "Version": "2012-10-17",
    "Statement": [
        {
            "Effect": "Allow",
            "Principal": {"Service": "eks.amazonaws.com"},
            "Action": "sts:AssumeRole",
        }
    ],
}


@dataclass(frozen=True)
class Translation:
    """The words of a provider's release."""

    types: Mapping[str, Any]
    """Its schema of each resource type."""

    def configuration(self, changes: Changes, region: str) -> dict[str, Any]:
        """main.tf.json of the dev stack after these changes. AssertionError for an input that the provider
        does not know."""
        graph = deploy("dev", changes, maker=self._made)
        resources: dict[str, dict[str, Any]] = {}
        for node in [*graph.starting("aws:"), *graph.of(CLUSTER)]:
            for kind, name, arguments in self._translated(node, graph):
                resources.setdefault(kind, {})[name] = arguments
        return {
            "terraform": {"required_providers": {"aws": {"source": "hashicorp/aws"}}},
            "provider": {"aws": {"region": region}},
            "resource": _expressions(resources),
        }

    def _made(self, kind: str, name: str, inputs: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """In the place of the cloud: id and outputs of a resource, as marks."""
        if kind == CLUSTER:
            return name, _cluster_outputs()
        made = computed(kind, name)
        if not kind.startswith("aws:"):
            return f"{name}-id", made
        address = self._address(kind, name)
        return _mark(address, "id"), {
            key: COUNTED.get(key) or (ARN if key == "arn" else "") + _mark(address, _snake(key))
            for key in made
        }

    def _translated(self, node: Node, graph: Graph) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """(type, name, arguments) of each resource that stands for one of the graph."""
        needs = [graph.nodes[urn] for urn in sorted(node.needs) if urn in graph.nodes]
        after = [
            CONTROL_PLANE if each.kind == CLUSTER else self._address(each.kind, each.name)
            for each in needs
            if each.kind == CLUSTER or each.kind.startswith("aws:")
        ]
        if node.kind == CLUSTER:
            yield from _control_plane(node.inputs, graph, after, self._address)
            return
        kind = self._type(node.kind)
        arguments = self._arguments(kind, self.types[kind]["block"], node.inputs)
        yield kind, _label(node.name), arguments | {"depends_on": after}

    def _arguments(self, kind: str, block: Block, inputs: Mapping[str, Any]) -> dict[str, Any]:
        blocks = block.get("block_types", {})
        found: dict[str, Any] = {}
        for key, value in inputs.items():
            name = self._argument(kind, block, key)
            if name not in blocks:
                many = block["attributes"][name]["type"][0] in ("list", "set")
                found[name] = [value] if many and not isinstance(value, list) else value
                continue
            inner = blocks[name]["block"]
            many = value if isinstance(value, list) else [value]
            found[name] = [self._arguments(f"{kind}.{name}", inner, each) for each in many if each]
        return found

    def _argument(self, kind: str, block: Block, key: str) -> str:
        """pulumi-aws writes lists in the plural."""
        name = RENAMED.get((kind, key), _snake(key))
        names = {**block.get("attributes", {}), **block.get("block_types", {})}
        singular = (name, name.removesuffix("s"), f"{name.removesuffix('ies')}y", name[:-2])
        found = next((each for each in singular if each in names), None)
        assert found, f"{kind} has no argument for {key}"
        return found

    def _type(self, kind: str) -> str:
        _, module, name = kind.split(":")
        service = module.partition("/")[0]
        service = SERVICES.get(service, service)
        names = (f"aws_{service}_{_snake(name)}", f"aws_{_snake(name)}")
        found = next((each for each in names if each in self.types), None)
        assert found, f"the provider has no type for {kind}"
        return found

    def _address(self, kind: str, name: str) -> str:
        return f"{self._type(kind)}.{_label(name)}"


def _control_plane(
    inputs: dict[str, Any], graph: Graph, after: list[str], address: Any
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Resources that pulumi-eks makes of its inputs (nodejs/eks/cluster/cluster.ts, createCore)."""
    role = "aws_iam_role.control_plane_of_the_component"
    if given := inputs.get("serviceRole"):
        node = graph.nodes[given["$ref"]]
        role = address(node.kind, node.name)
    else:
        trust = {"assume_role_policy": json.dumps(TRUST)}
        yield "aws_iam_role", role.partition(".")[2], trust
        policy = "arn:aws:iam::aws:policy/AmazonEKSClusterPolicy"
        attached = {"role": _mark(role, "name"), "policy_arn": policy}
        yield "aws_iam_role_policy_attachment", "control_plane_of_the_component", attached
        after = [*after, "aws_iam_role_policy_attachment.control_plane_of_the_component"]
    own = {"role_arn": ARN + _mark(role, "arn"), "depends_on": after}
    kind, name = CONTROL_PLANE.split(".")
    yield kind, name, _control_plane_arguments(inputs) | own


def _control_plane_arguments(inputs: dict[str, Any]) -> dict[str, Any]:
    same = {
        _snake(key): inputs[key]
        for key in (
            "name",
            "version",
            "tags",
            "bootstrapSelfManagedAddons",
            "enabledClusterLogTypes",
        )
    }
    network = {
        "subnet_ids": [*inputs["publicSubnetIds"], *inputs["privateSubnetIds"]],
        "endpoint_private_access": inputs["endpointPrivateAccess"],
        "endpoint_public_access": inputs["endpointPublicAccess"],
        "public_access_cidrs": inputs.get("publicAccessCidrs"),
    }
    key = inputs.get("encryptionConfigKeyArn")
    sealed = {"resources": ["secrets"], "provider": [{"key_arn": key}]}
    support = inputs.get("upgradePolicy")
    return {
        **same,
        "access_config": [{"authentication_mode": inputs["authenticationMode"]}],
        "vpc_config": [network],
        "kubernetes_network_config": [
            {"service_ipv4_cidr": inputs["kubernetesServiceIpAddressRange"]}
        ],
        "upgrade_policy": [{"support_type": support["supportType"]}] if support else [],
        "encryption_config": [sealed] if key else [],
    }


def _cluster_outputs() -> dict[str, Any]:
    return {
        "clusterSecurityGroupId": _mark(CONTROL_PLANE, "vpc_config[0].cluster_security_group_id"),
        "eksCluster": {
            "name": _mark(CONTROL_PLANE, "name"),
            "arn": ARN + _mark(CONTROL_PLANE, "arn"),
            "endpoint": _mark(CONTROL_PLANE, "endpoint"),
            "certificateAuthority": {"data": _mark(CONTROL_PLANE, "certificate_authority[0].data")},
        },
    }


def _expressions(value: Any) -> Any:
    """Marks as expressions; everything else that Terraform would take for one as the text that it is. The
    account of the recording engine is that of the world."""
    if isinstance(value, dict):
        return {key: _expressions(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_expressions(inner) for inner in value]
    if not isinstance(value, str):
        return value
    plain = value.replace("${", "$${").replace("%{", "%%{")
    return MARK.sub(r"${\1}", plain).replace("111122223333", ACCOUNT)


def _mark(address: str, attribute: str) -> str:
    return f"<<{address}.{attribute}>>"


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()


def _label(name: str) -> str:
    return re.sub(r"\W", "_", name)
