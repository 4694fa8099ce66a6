"""The table of force-new inputs is about resources that there are, and leaves out none."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conftest import GOLDEN
from tests.support.dispatching import CLUSTER, checkout, manager_graph
from tests.support.force_new import CHANGES, NO_INPUT, STACK
from tests.support.graphs import environment
from tests.support.recording import CHECKOUT, Graph, deploy
from tests.support.stackfile import at
from tests.support.stacks import STACKS, recorded
from tests.support.teams import with_queues
from trainyard.catalog.aws_types.table import AWS_TYPES

KEPT = re.compile(r"(?:aws|kubernetes|eks):\S+:(\w+)")
"""A type of what AWS and Kubernetes keep; the group is its kind."""
FILE_WITH_A_RUNTIME = {
    "manifest": "tests/workloads/valid/trainjob-of-dev.yaml",
    "pool": "g6e",
    "claims": {"fsx-pvc": "scratch"},
}
LINE = re.compile(rf'(?:\+ | "type": "){KEPT.pattern}\b')
"""Where a golden names the type of a resource."""


def kind(label: str) -> str:
    return label.partition(" ")[0]


def kinds(graph: Graph) -> set[str]:
    return {found[1] for node in graph.nodes.values() if (found := KEPT.fullmatch(node.kind))}


@pytest.fixture(scope="module")
def graph() -> Graph:
    def changes(values: dict[str, object]) -> None:
        values.clear()
        values |= STACK

    return deploy("dev", changes)


def test_every_type_of_every_stack_has_a_force_new_input_or_has_none(
    most: Graph, tmp_path: Path
) -> None:
    known = {kind(label) for change in CHANGES.values() for label in change.replaces}
    graphs = [
        most,
        environment(
            with_queues,
            at("queues.topology", "preferred"),
            at("pools.g6e.replicas", 4),
            at("pools.h100.replicas", 2),
        ),
        environment(at("jobs.theirs", FILE_WITH_A_RUNTIME)),
        manager_graph(checkout(tmp_path), CLUSTER),
        *map(recorded, STACKS),
    ]
    reviewed = [set(LINE.findall(file.read_text())) for file in GOLDEN.iterdir()]
    assert set[str]().union(*map(kinds, graphs), *reviewed) - known == NO_INPUT.keys()


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_is_of_resources_that_the_stack_has(what: str, graph: Graph) -> None:
    change = CHANGES[what]
    for label in {*change.replaces, *change.inputs} - {"Cluster cluster-eksCluster"}:
        assert graph[label]
    assert [bool(change.settings), bool(change.inputs), bool(change.program)].count(True) == 1
    for file, (old, _) in change.program.items():
        assert (CHECKOUT / file).read_text().count(old) == 1


def test_what_is_changed_of_an_aws_resource_is_what_its_row_says_replaces_it(graph: Graph) -> None:
    changed = [
        (graph[label].kind, {*edits})
        for change in CHANGES.values()
        for label, edits in change.inputs.items()
        if graph[label].kind in AWS_TYPES
    ]
    assert len(changed) > 10
    assert [kind for kind, edits in changed if not edits & {*AWS_TYPES[kind].replaces}] == []


def test_a_type_that_nothing_replaces_has_no_change() -> None:
    never = {kind.rpartition(":")[2] for kind, row in AWS_TYPES.items() if not row.replaces}
    assert never and never <= NO_INPUT.keys()
