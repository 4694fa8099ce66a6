"""The copy of a stack file that the engine reads in the rehearsal: the tracked file, with what is the
rehearsal's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from trainyard.catalog.scalars import Copier, EngineLoader, as_file

ENVIRONMENT = "trainyard:environment"


def read(text: str) -> Any:
    """Settings that the engine reads in a file. Raises yaml.YAMLError for what is no YAML."""
    return yaml.load(text, EngineLoader)


def copied(text: str, charts: str, own: Mapping[str, Any]) -> str:
    """A stack file whose charts come from a folder, with `own` beside `config`. All else stays as the
    file writes it, quotes included, so that the engine reads the same. Settings of a wrong kind stay,
    too: the program refuses them."""
    root = yaml.compose(text, EngineLoader)
    environment = read(text)["config"].get(ENVIRONMENT)
    artifacts = environment.get("artifacts", {}) if isinstance(environment, dict) else None
    if isinstance(artifacts, dict):
        _put(root, ("config", ENVIRONMENT), {"artifacts": artifacts | {"charts": charts}})
    _put(root, (), own)
    return yaml.serialize(root, Dumper=Copier)


def _put(node: Any, path: tuple[str, ...], values: Mapping[str, Any]) -> None:
    """Set keys of the map at a path of a document."""
    for step in path:
        node = next(value for key, value in node.value if key.value == step)
    kept = [pair for pair in node.value if pair[0].value not in values]
    added: Any = yaml.compose(as_file(dict(values)), EngineLoader)
    node.value = kept + added.value
