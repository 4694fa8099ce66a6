"""Components of the package, made by the recording engine as by a program in another language."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from package.outer import LINK
from package.provider import Components
from tests.support.recording import Graph, Node, record
from trainyard.replacing.deployed import Deployed

NAMED = "platform"
"""Name of the component in the program."""


def made(
    kind: str,
    arguments: dict[str, Any] | Callable[[], dict[str, Any]],
    folder: Path,
    *,
    name: str = NAMED,
    stack: str = "dev",
    config: dict[str, str] | None = None,
    **engine: Any,
) -> tuple[Graph, dict[str, Any]]:
    """The graph of a component, and its outputs. `arguments`: or what
    makes them, for those that are outputs. `config`: of the program's stack; by default its region.
    `engine`: as of record()."""
    found: list[Any] = []
    config = {"aws:region": "ap-northeast-2"} if config is None else config

    def program() -> None:
        given = arguments() if callable(arguments) else arguments
        found.append(Components().construct(name, kind, given))

    graph = record(program, stack, config, folder=folder, **engine)
    return graph, found[0].state


def inside(graph: Graph, kind: str, name: str = NAMED) -> list[dict[str, Any]]:
    """The graph as a golden has it, without the component itself: what it holds has no parent, as in the
    program of a stack file, and names charts as that does."""
    outer = f"{kind} {name}"
    found = [each for each in json.loads(graph.golden()) if each["type"] != kind]
    for each in found:
        if each.get("parent") == outer:
            del each["parent"]
    return json.loads(json.dumps(found).replace(f'"./{LINK}/', '"./'))


def left(*graphs: Graph) -> Deployed:
    """State of a program after an `up` that made these components. Each type has those of its parents before it,
    as in a URN."""

    def types(graph: Graph, node: Node) -> str:
        above = graph.nodes.get(node.options.parent)
        return f"{types(graph, above)}${node.kind}" if above else node.kind

    return Deployed(
        resources={
            (types(graph, node), node.name): node.inputs | graph.registered.get(urn, {})
            for graph in graphs
            for urn, node in graph.nodes.items()
        }
    )


def tops(graph: Graph) -> list[str]:
    """Types of resources that belong to no other one of the program."""
    return [each.kind for each in graph.nodes.values() if each.options.parent not in graph.nodes]
