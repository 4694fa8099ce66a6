"""The fields of the CRDs in components/charts, as fields.json has them. Descriptions, limits and
CEL rules are left out, and each shape of an object stands once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from trainyard.catalog.fields import METADATA
from trainyard.catalog.job_kinds import JOB_KINDS
from trainyard.catalog.versions import TRAINERS, TRAINING_OPERATORS

CHARTS = Path(__file__).parents[2] / "components" / "charts"
TRAINER_CRDS = "kubeflow-trainer-crds-{release}/templates/{plural}.trainer.kubeflow.org.yaml"
FILES: dict[str, dict[str, str]] = {
    "TrainJob": {v: TRAINER_CRDS.format(release=v, plural="trainjobs") for v in TRAINERS},
    "TrainingRuntime": {
        v: TRAINER_CRDS.format(release=v, plural="trainingruntimes") for v in TRAINERS
    },
    **{
        kind: {TRAINING_OPERATORS[-1]: f"training-operator/files/kubeflow.org_{kind.lower()}s.yaml"}
        for kind, it in JOB_KINDS.items()
        if it.replicas
    },
}
"""Kind → release → the file of its CRD. A ClusterTrainingRuntime has the fields of a
TrainingRuntime."""
WORDS = ("type", "properties", "items", "additionalProperties")


class Definitions:
    """Shapes of objects, each once, with the place where it was found first as its name."""

    def __init__(self) -> None:
        self.by_name: dict[str, dict[str, Any]] = {}
        self._names: dict[str, str] = {}

    def reference(self, shape: dict[str, Any], place: str, release: str) -> dict[str, str]:
        """A reference to the shape, which is added where it is new."""
        written = json.dumps(shape, sort_keys=True)
        if written not in self._names:
            name = place if place not in self.by_name else f"{place} {release}"
            self._names[written] = name
            self.by_name[name] = shape
        return {"$ref": self._names[written]}


def fields_text() -> str:
    """fields.json: a line for each kind and each shape."""
    definitions = Definitions()
    objects = {
        kind: {
            release: _simple(_schema(CHARTS / file), kind, release, definitions)
            for release, file in files.items()
        }
        for kind, files in FILES.items()
    }
    return f'{{"objects": {_lines(objects)},\n"definitions": {_lines(definitions.by_name)}}}\n'


def _lines(rows: Mapping[str, Any]) -> str:
    written = (f"{json.dumps(name)}: {json.dumps(row)}" for name, row in sorted(rows.items()))
    return "{\n" + ",\n".join(written) + "\n}"


def _schema(file: Path) -> dict[str, Any]:
    """Schema of the CRD's stored version."""
    versions = yaml.load(file.read_text(), yaml.CSafeLoader)["spec"]["versions"]
    [stored] = [version for version in versions if version["storage"]]
    return stored["schema"]["openAPIV3Schema"]


def _simple(
    schema: Mapping[str, Any], place: str, release: str, definitions: Definitions
) -> dict[str, Any]:
    """The schema in the words of fields.json."""
    if schema.get("x-kubernetes-int-or-string"):
        return {"type": "quantity" if "pattern" in schema else "int-or-string"}
    simple = {word: schema[word] for word in WORDS if word in schema}
    for word in ("items", "additionalProperties"):
        if isinstance(simple.get(word), Mapping):
            simple[word] = _simple(simple[word], place, release, definitions)
    if "properties" not in simple:
        return simple
    if required := schema.get("required"):
        simple["required"] = required
    simple["properties"] = {
        name: _member(name, inner, f"{place}.{name}", release, definitions)
        for name, inner in sorted(simple["properties"].items())
    }
    return definitions.reference(simple, place, release)


def _member(
    name: str, schema: Mapping[str, Any], place: str, release: str, definitions: Definitions
) -> dict[str, Any]:
    """A field. Nobody writes a status: what people copy from a cluster has one, which is not
    judged."""
    if name == "metadata":
        return {"$ref": METADATA}
    if name == "status" and place.count(".") == 1:
        return {}
    return _simple(schema, place, release, definitions)
