"""Graphs of the dev stack with another environment."""

from __future__ import annotations

from typing import Any

from tests.support.recording import Graph, deploy
from tests.support.stackfile import ENVIRONMENT, Edit
from tests.support.stacks import recorded


def environment(*edits: Edit) -> Graph:
    """Graph that the program registers after these edits to the environment; without one it is recorded
    once."""
    if not edits:
        return recorded("dev")

    def changes(values: dict[str, Any]) -> None:
        for edit in edits:
            edit(values[ENVIRONMENT])

    return deploy("dev", changes)
