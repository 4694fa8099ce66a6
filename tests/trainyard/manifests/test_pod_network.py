"""Pods that must find each other by name ask the cluster's DNS."""

from __future__ import annotations

import pytest

from tests.trainyard.manifests.test_rules import judged

RULE = "the cluster's DNS"


def pytorch_job(spec: str, workers: int = 1) -> list[str]:
    """Errors about DNS of a PyTorchJob whose pods have these fields."""
    pod = (
        f"{{{spec}containers: [{{name: pytorch, image: 'a/b:1', command: [torchrun, t.py],"
        " resources: {limits: {nvidia.com/gpu: 8}}}]}"
    )
    role = f"{{restartPolicy: Never, replicas: 1, template: {{spec: {pod}}}}}"
    worker = f", Worker: {role}" * workers
    return _said(
        "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: a}\n"
        f"spec: {{pytorchReplicaSpecs: {{Master: {role}{worker}}}}}\n"
    )


def runtime(spec: str, nodes: int = 2) -> list[str]:
    """The same of a runtime."""
    pod = f"{{{spec}containers: [{{name: node, image: 'a/b:1', command: [torchrun, t.py]}}]}}"
    step = "{labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}"
    return _said(
        "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainingRuntime\nmetadata: {name: r}\nspec:\n"
        f"  mlPolicy: {{numNodes: {nodes}, torch: {{}}}}\n  template: {{spec: {{replicatedJobs: [{{name: node,"
        f" template: {{metadata: {step}, spec: {{template: {{spec: {pod}}}}}}}}}]}}}}\n"
    )


def _said(text: str) -> list[str]:
    return [each for each in judged(text) if RULE in each]


REFUSED = {
    "the network of the node": (
        "hostNetwork: true, ",
        "hostNetwork",
        "add dnsPolicy: ClusterFirstWithHostNet",
    ),
    "the same with the policy of other pods": (
        "hostNetwork: true, dnsPolicy: ClusterFirst, ",
        "dnsPolicy",
        "write ClusterFirstWithHostNet",
    ),
    "the same with the policy of the node": (
        "hostNetwork: true, dnsPolicy: Default, ",
        "dnsPolicy",
        "write ClusterFirstWithHostNet",
    ),
    "the policy of the node": ("dnsPolicy: Default, ", "dnsPolicy", "delete it"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_pods_that_cannot_resolve_the_first_node_are_refused(name: str) -> None:
    spec, field, fix = REFUSED[name]
    for found in (*pytorch_job(spec), *runtime(spec)):
        assert f".{field} [" in found and f"Fix: {fix}" in found
    assert len(pytorch_job(spec)) == 2 and len(runtime(spec)) == 1
    assert pytorch_job(spec, workers=0) == runtime(spec, nodes=1) == []


@pytest.mark.parametrize(
    "spec",
    [
        "",
        "dnsPolicy: ClusterFirst, ",
        "hostNetwork: false, ",
        "hostNetwork: true, dnsPolicy: ClusterFirstWithHostNet, ",
        "hostNetwork: true, dnsPolicy: None, dnsConfig: {nameservers: [172.20.0.10]}, ",
        "dnsPolicy: Default, dnsConfig: {nameservers: [172.20.0.10]}, ",
        "hostNetwork: true, hostAliases: [{ip: 10.0.0.9, hostnames: [a-master-0]}], ",
    ],
)
def test_pods_that_resolve_it_pass(spec: str) -> None:
    assert pytorch_job(spec) == runtime(spec) == []
