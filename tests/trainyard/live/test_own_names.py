"""Names that a stack needs in an existing cluster, against what it makes in one."""

from __future__ import annotations

import pytest

from tests.graph.test_recorded_stacks import EVERYTHING, graph_of, plan_of
from tests.support.recording import Graph
from trainyard.catalog.chart_objects import KINDS, WORKLOADS, ObjectName, chart_objects
from trainyard.live.own_names import own_names

STACKS = ("existing cluster", "teams", EVERYTHING)


def _made(graph: Graph) -> set[ObjectName]:
    """What the stack makes without Helm, of the kinds that are asked for."""
    made: set[ObjectName] = set()
    for node in graph.nodes.values():
        kind = node.kind.rpartition(":")[2]
        if node.kind.startswith("kubernetes:") and kind in (*KINDS, *WORKLOADS):
            meta = node.inputs["metadata"]
            made.add(ObjectName(kind, meta["name"], meta.get("namespace", "")))
    return made


def _is_unique(name: ObjectName) -> bool:
    """Nobody else has the prefix, or the namespace is asked for."""
    prefixed = name.name.startswith("trainyard-") and name.kind != "Namespace"
    return prefixed or name.namespace.startswith("trainyard-")


@pytest.mark.parametrize("stack", STACKS)
def test_every_name_that_the_graph_has_is_asked_for(stack: str) -> None:
    asked = {
        name: release for part in own_names(plan_of(stack)) for name, release in part.names.items()
    }
    by_pulumi = {name for name, release in asked.items() if release is None}
    assert by_pulumi == {name for name in _made(graph_of(stack)) if not _is_unique(name)}


@pytest.mark.parametrize("stack", STACKS)
def test_every_release_of_the_graph_is_asked_for_in_its_namespace(stack: str) -> None:
    asked = {release for part in own_names(plan_of(stack)) for release in part.releases}
    made = {
        node.inputs["name"]: node.inputs["namespace"]
        for node in graph_of(stack).nodes.values()
        if node.kind == "kubernetes:helm.sh/v3:Release"
    }
    assert asked == made.keys()
    assert {name: chart_objects()[name].namespace for name in made} == made


def test_the_table_has_every_chart_and_its_crds() -> None:
    table = chart_objects()
    crds = {
        release: sum(one.kind == "CustomResourceDefinition" for one in row.objects)
        for release, row in table.items()
    }
    assert crds.pop("kueue") >= 10
    assert crds == {
        "karpenter": 0,
        "karpenter-crd": 5,
        "kubeflow-trainer": 0,
        "kubeflow-trainer-crds": 4,
        "nvidia-device-plugin": 0,
        "training-operator": 1,
    }
