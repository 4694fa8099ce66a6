"""A pod ends when all of its containers have ended."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.trainyard.manifests.test_rules import judged

RULE = "the pod ends only when this container has ended, too"
SERVER = '{name: exporter, image: "prom/statsd-exporter:v0.27.1"RESTARTS}'


def pytorch_job(beside: str, before: str = "") -> list[str]:
    """Warnings about containers beside the one that trains, of a PyTorchJob."""
    init = f"initContainers: [{before}], " if before else ""
    pod = f"{{{init}containers: [{{name: pytorch, image: 'a/b:1', command: [torchrun, t.py]}}{beside}]}}"
    return _said(
        "apiVersion: kubeflow.org/v1\nkind: PyTorchJob\nmetadata: {name: a}\nspec: {pytorchReplicaSpecs: "
        f"{{Master: {{replicas: 1, restartPolicy: Never, template: {{spec: {pod}}}}}}}}}\n"
    )


def runtime(beside: str, before: str = "") -> list[str]:
    """The same of a runtime."""
    init = f"initContainers: [{before}], " if before else ""
    pod = (
        f"{{{init}containers: [{{name: node, image: 'a/b:1', command: [torchrun, t.py]}}{beside}]}}"
    )
    step = "{labels: {trainer.kubeflow.org/trainjob-ancestor-step: trainer}}"
    return _said(
        "apiVersion: trainer.kubeflow.org/v1alpha1\nkind: TrainingRuntime\nmetadata: {name: r}\nspec:\n"
        "  mlPolicy: {numNodes: 2, torch: {}}\n  template: {spec: {replicatedJobs: [{name: node,"
        f" template: {{metadata: {step}, spec: {{template: {{spec: {pod}}}}}}}}}]}}}}\n"
    )


def _said(text: str) -> list[str]:
    return [each for each in judged(text) if RULE in each]


@pytest.mark.parametrize("made", [pytorch_job, runtime])
def test_a_container_beside_the_one_that_trains_is_warned_about(
    made: Callable[..., list[str]],
) -> None:
    server = SERVER.replace("RESTARTS", "")
    [found] = made(f", {server}")
    assert found.startswith("warning: ") and "containers[1]" in found
    assert "make it one of initContainers with restartPolicy: Always" in found
    assert made("") == made("", SERVER.replace("RESTARTS", ", restartPolicy: Always")) == []
