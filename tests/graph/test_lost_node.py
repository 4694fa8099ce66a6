"""Controllers leave a system node that died before Kubernetes' default of 300 s: while one is away, its
webhooks refuse every new job."""

from __future__ import annotations

from typing import Any

from tests.support.graphs import environment
from tests.support.recording import Graph
from tests.support.stackfile import at
from tests.support.stacks import recorded
from tests.support.teams import with_queues

SECONDS = {"node.kubernetes.io/unreachable": 30, "node.kubernetes.io/not-ready": 30}


def values(graph: Graph, release: str) -> dict[str, Any]:
    return graph[f"Release {release}"].inputs["values"]


def seconds(pod: dict[str, Any]) -> dict[str, int]:
    every = pod["tolerations"]
    assert all((each["effect"], each["operator"]) == ("NoExecute", "Exists") for each in every)
    return {each["key"]: each["tolerationSeconds"] for each in every}


def test_the_trainer_and_jobset_leave_a_node_that_died_after_30_s() -> None:
    found = values(recorded("dev"), "kubeflow-trainer")
    assert seconds(found["manager"]) == seconds(found["jobset"]["controller"]) == SECONDS


def test_both_pods_of_kueue_do_too() -> None:
    found = values(environment(with_queues), "kueue")["controllerManager"]
    assert found["replicas"] == 2 and seconds(found) == SECONDS


def test_the_training_operator_does_too() -> None:
    graph = environment(at("training_operator", {"version": "1.8.1"}))
    assert seconds(values(graph, "training-operator")) == SECONDS
