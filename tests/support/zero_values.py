"""A TrainJob that says every zero value that Kueue's Go types would leave out, made from the CRD."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import yaml

from trainyard.catalog.crds import CHARTS, FILES
from trainyard.catalog.kueue_types import _forms
from trainyard.objects.jobs.trainer import changed_pods

FORMS = _forms("2.3.0")
ZEROS: dict[str, Any] = {"array": [], "boolean": False, "integer": 0, "object": {}, "string": ""}
SAMPLES: dict[str, Any] = {**ZEROS, "array": ["x"], "integer": 1, "string": "x"}

NO_NULL = "apiGroup"
"""Kueue's webhook writes null where a volume's dataSource has none, and the API server takes no null."""


def zero_spec(release: str, field: str, chosen: dict[str, Any]) -> dict[str, Any]:
    """Spec of a TrainJob of a release of the Trainer, with its trainer and its pods. `field`: the
    field that changes the pods of its runtime. `chosen`: how pods choose nodes, which the CRD does
    not compare."""
    spec = _crd(release)["properties"]["spec"]["properties"]
    pod_form = _pod(spec[field])
    pod = _zeros(pod_form, "PodSpecPatch", {"PodSpecPatch", "EnvVar", "ContainerPatch"})
    container_form = pod_form["properties"]["containers"]["items"]
    container = _zeros(container_form, "ContainerPatch", {"ContainerPatch", "EnvVar"})
    del pod["affinity"]
    pod |= {"containers": [container | {"name": "node"}], **chosen}
    return {
        "trainer": _zeros(spec["trainer"], "Trainer", {"Trainer"}),
        field: changed_pods(field, {"node": pod}),
    }


def find_zeros(value: Any) -> list[Any]:
    """Every false, 0, empty text, list and map inside a value."""
    if isinstance(value, dict | list) and value:
        inside = value.values() if isinstance(value, dict) else value
        return [zero for each in inside for zero in find_zeros(each)]
    return [] if value else [value]


def _crd(release: str) -> dict[str, Any]:
    read = yaml.load((CHARTS / FILES["TrainJob"][release]).read_text(), yaml.CSafeLoader)
    [stored] = [version for version in read["spec"]["versions"] if version["storage"]]
    return stored["schema"]["openAPIV3Schema"]


def _pod(form: Mapping[str, Any]) -> Mapping[str, Any]:
    """The first spec with containers below a form."""
    form = form.get("items", form)
    if "containers" in (properties := form.get("properties", {})):
        return form
    steps = ("trainingRuntimeSpec", "replicatedJobs", "template", "spec")
    return _pod(next(properties[step] for step in steps if step in properties))


def _zeros(form: Mapping[str, Any], name: str, seen: set[str]) -> dict[str, Any]:
    """An object of a type with its zero values; of each type inside it one object. `seen`: those types
    that there are already."""
    made: dict[str, Any] = {}
    for field, inner in form["properties"].items():
        inside = FORMS[name]["inside"].get(field)
        entry = inner.get("items", inner)
        if inside and inside not in seen and "properties" in entry:
            seen.add(inside)
            held = _zeros(entry, inside, seen)
            made[field] = [held] if entry is not inner else held
        elif field in (*form.get("required", ()), NO_NULL):
            made[field] = SAMPLES[inner.get("type", "string")]
        elif field in FORMS[name]["drops"] and not inner.get("minLength"):
            made[field] = ZEROS[inner["type"]]
    return made
