"""What `make status` says of a broken node."""

from __future__ import annotations

from typing import Any

import pytest

from operations.sick_nodes import sick
from operations.snapshot import Snapshot
from plans.repair import NOTE


def _node(note: str = "", reason: str = "", nodes: str = "training") -> dict[str, Any]:
    condition = {"type": "AcceleratedHardwareReady", "status": "False" if reason else "True"}
    return {
        "metadata": {
            "name": "n0",
            "labels": {"trainyard.io/nodes": nodes},
            "annotations": {NOTE: note} if note else {},
        },
        "status": {"conditions": [condition | {"reason": reason, "message": "it broke"}]},
    }


def _said(node: dict[str, Any]) -> list[str]:
    return [str(finding) for finding in sick(Snapshot(objects={"nodes": [node]}))]


def test_a_node_that_is_replaced_is_named_with_its_cause_and_what_happens_next() -> None:
    assert _said(_node(note="NvidiaXID79Error: it broke; replaced")) == [
        "node n0 is sick\n    NvidiaXID79Error: it broke; replaced\n    → wait: Karpenter replaces the"
        " node, and its gangs start anew from their checkpoints"
    ]


def test_a_node_that_is_held_is_named_with_the_command_that_replaces_it() -> None:
    [said] = _said(_node(note="DCGMError: not replaced, because 1 node of pool h100 was"))
    assert "kubectl delete nodeclaim" in said


def test_without_repair_the_words_of_the_monitoring_agent_are_told() -> None:
    [said] = _said(_node(reason="NvidiaXID79Error"))
    assert "NvidiaXID79Error: it broke" in said and "environment.repair" in said


@pytest.mark.parametrize("node", [_node(), _node(reason="DCGMError", nodes="system")])
def test_healthy_nodes_and_nodes_of_no_pool_are_not_told(node: dict[str, Any]) -> None:
    assert _said(node) == []
