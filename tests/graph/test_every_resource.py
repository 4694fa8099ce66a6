"""What holds for every resource, whatever it is for, in a stack that has nearly all of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pulumi
import pytest

from tests.support.recording import Graph, Node

OTHER_TYPES = {
    "jobs:Workspace": "JobNamespace",
    "cluster:Cluster": "OwnCluster",
    "network:Network": "OwnNetwork",
    "teams:Identity": "TeamIdentity",
    "teams:Rules": "TeamRules",
    **dict.fromkeys(("jobs:History", "nodes:Repair", "queues:Gangs", "queues:Passes"), "Program"),
}
"""The end of a type → its class, where it is not the name of the class."""
CLUSTER_WIDE = {
    *("ClusterQueue", "ClusterRole", "ClusterRoleBinding", "ClusterTrainingRuntime", "Cohort"),
    *("EC2NodeClass", "Namespace", "NodePool", "PersistentVolume", "PriorityClass"),
    *("ResourceFlavor", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"),
    "WorkloadPriorityClass",
}


CONTAINERS = {
    "efa-device-plugin": "efa",
    "gangs": "gangs",
    "metrics-prometheus": "prometheus",
    "repair": "repair",
    "trainyard-efa": "efa",
    "trainyard-gpus": "gpus",
    "trainyard-gpus-by-driver": "gpus",
    "trainyard-nodes": "nodes",
}
"""Workload → its container. `kubectl logs --container`, dashboards and alerts of a company know it by
name."""
ACCOUNTS = {
    "gangs-account": "trainyard-gangs",
    "metrics-account": "prometheus",
    "repair-account": "trainyard-repair",
}
"""Service account → its name. Audit rules and associations of Pod Identity know it by name."""


@pytest.fixture(scope="module")
def nodes(dev: Graph, most: Graph) -> list[Node]:
    """Resources of the dev stack and of one with nearly all that there is."""
    return [*dev.nodes.values(), *most.nodes.values()]


def _objects(nodes: list[Node]) -> list[Node]:
    """Kubernetes objects; a release of Helm is none."""
    return [n for n in nodes if n.kind.startswith("kubernetes:") and "helm.sh" not in n.kind]


def _pods(nodes: list[Node]) -> Iterator[tuple[str, dict[str, Any]]]:
    for node in _objects(nodes):
        if node.kind.rpartition(":")[2] in ("DaemonSet", "Deployment"):
            yield node.name, node.inputs["spec"]["template"]["spec"]


def _components(of: type) -> Iterator[type]:
    for each in of.__subclasses__():
        if each.__module__.startswith("components."):
            yield each
        yield from _components(each)


def test_a_component_keeps_the_type_under_which_it_is_deployed(nodes: list[Node]) -> None:
    """Another type is another resource: an update deletes everything below it and makes it anew."""
    found = {n.kind.removeprefix("trainyard:") for n in nodes if n.kind.startswith("trainyard:")}
    classes = {each.__name__ for each in _components(pulumi.ComponentResource)}
    named = {OTHER_TYPES.get(kind, kind.rpartition(":")[2]) for kind in found}
    assert len(found) > 22 and named <= classes
    assert found >= set(OTHER_TYPES) - {"teams:Identity", "jobs:History", "queues:Passes"}
    known = ("trainyard:", "aws:", "kubernetes:", "eks:", "pulumi:")
    assert {n.kind for n in nodes if not n.kind.startswith(known)} == set()


def test_whatever_is_made_belongs_to_a_component(nodes: list[Node]) -> None:
    """A resource without a parent has another URN, so it is deleted and made anew."""
    outside = {
        str(node)
        for node in nodes
        if not node.kind.startswith(("trainyard:", "pulumi:"))
        and "trainyard:" not in (node.options.parent or "")
        and "eks:index" not in (node.options.parent or "")
    }
    assert outside == set()


def test_an_object_has_the_name_and_namespace_that_others_refer_to_it_by(
    nodes: list[Node],
) -> None:
    """Pulumi gives one without a name another name at each replacement; one without a namespace
    lands in `default`."""
    objects = _objects(nodes)
    assert len(objects) > 50
    for node in objects:
        metadata = node.inputs["metadata"]
        assert metadata.get("name"), node
        wide = node.kind.rpartition(":")[2] in CLUSTER_WIDE
        assert bool(metadata.get("namespace")) != wide, node


def test_a_container_and_a_service_account_keep_their_names(nodes: list[Node]) -> None:
    """Others refer to them, and nothing of ours would notice."""
    found = {
        name: pod["containers"][0]["name"]
        for name, pod in _pods(nodes)
        if not name.endswith("-images")
    }
    assert found == CONTAINERS
    accounts = {n.name: n.inputs["metadata"]["name"] for n in nodes if "ServiceAccount" in n.kind}
    assert accounts == ACCOUNTS


def test_a_pod_mounts_each_of_its_volumes_and_no_other(nodes: list[Node]) -> None:
    for name, pod in _pods(nodes):
        mounted = {
            mount["name"] for one in pod["containers"] for mount in one.get("volumeMounts", [])
        }
        assert mounted == {volume["name"] for volume in pod.get("volumes", [])}, name


def test_a_path_of_the_host_is_seen_where_it_is_or_below_host(nodes: list[Node]) -> None:
    """A device plugin that looks for /dev/infiniband elsewhere registers no device."""
    for name, pod in _pods(nodes):
        paths = {
            v["name"]: v["hostPath"]["path"] for v in pod.get("volumes", []) if "hostPath" in v
        }
        for one in pod["containers"]:
            for mount in one.get("volumeMounts", []):
                if path := paths.get(mount["name"]):
                    at_host = ("/host/root", f"/host{path}")
                    assert mount["mountPath"] in (path, *at_host), (name, path)


def test_our_own_pods_drop_all_capabilities_and_gain_none(nodes: list[Node]) -> None:
    """dcgm-exporter reads profiling counters with SYS_ADMIN, as upstream's chart has it."""
    for name, pod in _pods(nodes):
        for one in pod["containers"]:
            context = one.get("securityContext", {})
            if not name.startswith("trainyard-gpus"):
                assert context["capabilities"] == {"drop": ["ALL"]}, name
                assert context["allowPrivilegeEscalation"] is False, name


def test_our_own_pods_request_what_they_need(nodes: list[Node]) -> None:
    """Karpenter leaves as much free on a node as its DaemonSets request. Pods that hold an image in
    the cache need nothing."""
    for name, pod in _pods(nodes):
        for one in pod["containers"]:
            if not name.endswith("-images"):
                assert set(one["resources"]["requests"]) == {"cpu", "memory"}, name


def test_a_service_has_pods_behind_it(nodes: list[Node]) -> None:
    labels = [
        node.inputs["spec"]["template"]["metadata"]["labels"]
        for node in _objects(nodes)
        if "template" in node.inputs.get("spec", {}) and "apps/" in node.kind
    ]
    services = [node for node in _objects(nodes) if node.kind.endswith(":Service")]
    assert services
    for service in services:
        selector = service.inputs["spec"]["selector"].items()
        assert any(selector <= each.items() for each in labels), service


def test_a_workload_selects_its_own_pods(nodes: list[Node]) -> None:
    """The API server refuses a selector that its template does not have."""
    for node in _objects(nodes):
        if "apps/" in node.kind:
            spec = node.inputs["spec"]
            selector = spec["selector"]["matchLabels"].items()
            assert selector and selector <= spec["template"]["metadata"]["labels"].items(), node
