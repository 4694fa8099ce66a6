"""Fields of the objects of training jobs, by release: fields.json.

`python -m trainyard.catalog.refresh --fields` writes it from the CRDs that components/charts installs. Only
metadata is written here: a CRD says nothing about it, the API server knows it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from trainyard.catalog import versions

Schema = Mapping[str, Any]
"""A JSON schema with the words type, properties, required, items, additionalProperties and $ref only. Its
types are those of JSON, int-or-string, and quantity (64Gi, 8, 500m)."""

FIELDS_FILE = Path(__file__).with_name("fields.json")
TEXT: Schema = {"type": "string"}
TEXTS: Schema = {"type": "object", "additionalProperties": TEXT}
METADATA = "metadata"
"""Name of the definition of the metadata of an object, or of a template inside one."""
DEFINED_HERE: dict[str, Schema] = {
    METADATA: {
        "type": "object",
        "properties": {
            "annotations": TEXTS,
            "generateName": TEXT,
            "labels": TEXTS,
            "name": TEXT,
            "namespace": TEXT,
        },
        "additionalProperties": True,
    }
}
"""Definitions that fields.json refers to and no CRD has. What people copy from a cluster has more
fields of metadata, such as uid, that do no harm: only slips are refused."""


@cache
def _definitions() -> dict[str, Schema]:
    return {**_file()["definitions"], **DEFINED_HERE}


@cache
def _file() -> dict[str, Any]:
    return json.loads(FIELDS_FILE.read_text())


def schema(kind: str, minor: tuple[int, int]) -> Schema:
    """Fields of a kind of object in a minor release of the Trainer; a map of anything for a kind
    that has no CRD here. A release without CRDs here has the fields of the next later one."""
    releases: Mapping[str, Schema] = _file()["objects"].get(kind, {"0.0": {"type": "object"}})
    later = (release for release in releases if versions.minor(release) >= minor)
    return resolved(releases[next(later, list(releases)[-1])])


def resolved(schema: Schema) -> Schema:
    """The schema itself, where it is a reference to one."""
    return _definitions()[schema["$ref"]] if "$ref" in schema else schema
