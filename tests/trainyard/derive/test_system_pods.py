"""The pods that share the system nodes are those that an environment makes."""

from __future__ import annotations

import pytest

from tests.support.graphs import environment
from tests.support.recording import Graph
from tests.support.stackfile import Edit, at
from tests.support.stackfile import environment as settings
from tests.support.teams import with_queues
from trainyard.catalog.upstream import cpu_requests
from trainyard.derive.system_pods import first_without_room, left_beside_karpenter, system_pods
from trainyard.parts.parts import wanted_parts
from trainyard.plans.system_nodes import SystemPod

QUEUES = at("queues", {})
OPERATOR = at("training_operator", {"version": "1.8.1"})
MAKES: dict[str, tuple[Edit, ...]] = {
    "nothing": (),
    "metrics": (at("metrics", {}),),
    "all of metrics": (
        at("metrics", {"grafana": True, "alerts": {}, "push_gateway": True}),
        at("pools.h100.max_nodes", 64),
    ),
    "programs": (
        at("repair", {}),
        at("history", {}),
        at("told", {"emails": ["gpu-oncall@example.com"]}),
    ),
    "queues": (QUEUES,),
    "queues of PyTorchJobs": (QUEUES, OPERATOR),
}


def deployed(graph: Graph) -> list[int]:
    """CPU requests of the pods of our own Deployments, in thousandths of a vCPU."""
    pods = [
        (node.inputs["spec"]["replicas"], node.inputs["spec"]["template"]["spec"])
        for node in graph.starting("kubernetes:apps/v1:Deployment")
    ]
    assert all(pod["nodeSelector"] == {"trainyard.io/nodes": "system"} for _, pod in pods)
    return sorted(
        int(container["resources"]["requests"]["cpu"].removesuffix("m"))
        for replicas, pod in pods
        for container in pod["containers"] * int(replicas)
    )


@pytest.mark.parametrize("edits", MAKES.values(), ids=MAKES)
def test_parts_name_the_pods_that_they_make(edits: tuple[Edit, ...]) -> None:
    queued = [with_queues] if QUEUES in edits else []
    wanted = settings(*edits)
    named = [pod for part, its in wanted_parts(wanted) for pod in part.system_pods(its, wanted)]
    made = deployed(environment(*(edit for edit in edits if edit is not QUEUES), *queued))
    assert sorted(pod.millicpus for pod in named) == made


def test_controllers_are_counted_where_the_stack_file_wants_them() -> None:
    assert [pod.name for pod in system_pods(settings())] == ["JobSet", "CoreDNS", "CoreDNS"]
    named = [pod.name for pod in system_pods(settings(QUEUES, OPERATOR))]
    assert named.count("Kueue") == 2 and "training-operator" in named
    assert named.index("Kueue") < named.index("CoreDNS"), "the largest first"


def test_kueue_and_karpenter_have_the_replicas_and_requests_that_are_counted() -> None:
    graph = environment(with_queues)
    kueue = graph["Release kueue"].inputs["values"]["controllerManager"]
    assert kueue["replicas"] == 2 and "resources" not in kueue["manager"]
    karpenter = graph["Release karpenter"].inputs["values"]
    assert karpenter["controller"]["resources"]["requests"]["cpu"] == "1"
    assert "replicas" not in karpenter
    assert left_beside_karpenter(2) == 1930 - cpu_requests.EACH_NODE - 1000


def test_a_node_without_karpenter_has_more_room() -> None:
    whole = SystemPod("Prometheus", 1000)
    assert first_without_room([whole], 2, 2) == whole
    assert first_without_room([whole], 2, 3) is None
    assert first_without_room([whole, whole], 2, 3) == whole
