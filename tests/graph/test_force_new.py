"""The table of force-new inputs is about resources that there are, and leaves out none."""

from __future__ import annotations

import pytest

from tests.support.force_new import CHANGES, NO_INPUT, STACK
from tests.support.recording import CHECKOUT, Graph, deploy
from tests.support.stacks import STACKS, recorded

ELSEWHERE = {"Cluster"}


def kind(label: str) -> str:
    return label.partition(" ")[0]


def kinds(graph: Graph) -> set[str]:
    """Types of what AWS and Kubernetes keep."""
    found = [
        *graph.starting("aws:"),
        *graph.starting("kubernetes:"),
        *graph.of("eks:index:Cluster"),
    ]
    return {node.kind.rpartition(":")[2] for node in found}


@pytest.fixture(scope="module")
def graph() -> Graph:
    def changes(values: dict[str, object]) -> None:
        values.clear()
        values |= STACK

    return deploy("dev", changes)


def test_every_type_of_every_stack_has_a_force_new_input_or_has_none(most: Graph) -> None:
    known = {kind(label) for change in CHANGES.values() for label in change.replaces}
    graphs = [most, *map(recorded, STACKS)]
    assert set[str]().union(*map(kinds, graphs)) - known - NO_INPUT.keys() == set()


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_is_of_resources_that_the_stack_has(what: str, graph: Graph) -> None:
    change = CHANGES[what]
    for label in {*change.replaces, *change.inputs} - {"Cluster cluster-eksCluster"}:
        assert graph[label]
    assert [bool(change.settings), bool(change.inputs), bool(change.program)].count(True) == 1
    for file, (old, _) in change.program.items():
        assert (CHECKOUT / file).read_text().count(old) == 1
