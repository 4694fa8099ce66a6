"""Half gangs of PyTorchJobs give their nodes back: which environments have the program, and what it is
told."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from rehearsal.providers.kubernetes import kinds
from tests.support.graphs import environment
from tests.support.recording import Graph
from tests.support.stackfile import at, errors
from tests.support.teams import with_queues
from trainyard.objects.programs.gangs import AGAIN, APP, TRIES

OPERATOR = at("training_operator", {"version": "1.8.1"})


@pytest.fixture(scope="module")
def graph() -> Graph:
    return environment(with_queues, OPERATOR)


def program(graph: Graph) -> list[str]:
    return [str(each) for each in graph.nodes.values() if "gangs" in each.name]


def test_only_queues_of_pytorchjobs_have_the_program(graph: Graph) -> None:
    assert program(environment(with_queues)) == [] == program(environment(OPERATOR))
    assert "Deployment gangs" in [each.rpartition(":")[2] for each in program(graph)]


@pytest.mark.parametrize("pool", [{}, {"replicas": 2}], ids=["on demand", "kept"])
def test_it_waits_as_long_as_the_queues_and_tries_as_often(pool: dict[str, int]) -> None:
    kept = [at(f"pools.h100.{key}", value) for key, value in pool.items()]
    graph = environment(with_queues, OPERATOR, at("trainer.runtimes", ["torch-distributed"]), *kept)
    said = json.loads(graph["ConfigMap gangs-files"].inputs["data"]["settings.json"])
    values = graph["Release kueue"].inputs["values"]["managerConfig"]
    ready: Any = yaml.safe_load(values["controllerManagerConfigYaml"])["waitForPodsReady"]
    assert ready["timeout"] == f"{said['ready_seconds'] // 60}m"
    again = ready["requeuingStrategy"]
    assert again["backoffBaseSeconds"] == said["backoff_seconds"]
    assert again["backoffMaxSeconds"] == said["longest_backoff_seconds"]
    assert (said["tries_note"], said["again_note"]) == (TRIES, AGAIN)


def test_it_does_not_wait_for_models_which_no_pytorchjob_fetches(graph: Graph) -> None:
    """Kueue has one time for all jobs, and waits an hour longer."""
    said = json.loads(graph["ConfigMap gangs-files"].inputs["data"]["settings.json"])
    assert said["ready_seconds"] == 18 * 60


def test_its_pod_has_the_program_and_no_right_beyond_workloads_pods_and_events(
    graph: Graph,
) -> None:
    pod = graph["Deployment gangs"].inputs["spec"]["template"]["spec"]
    [container] = pod["containers"]
    files = graph["ConfigMap gangs-files"].inputs["data"]
    assert container["command"][2].rpartition("/")[2] in files
    rules = graph["ClusterRole gangs-acts"].inputs["rules"]
    assert [(each["resources"], each["verbs"]) for each in rules] == [
        (["workloads"], ["list", "watch", "patch"]),
        (["pods"], ["list", "watch"]),
        (["events"], ["create"]),
    ]


def test_the_rehearsal_implements_every_kind_of_it(graph: Graph) -> None:
    made = [each.inputs for each in graph.starting("kubernetes:") if "gangs" in each.name]
    assert made and all(kinds.of(inputs) for inputs in made)


def test_its_namespace_is_no_namespace_for_jobs() -> None:
    [error] = errors(at("namespace", APP))
    assert APP in str(error)
