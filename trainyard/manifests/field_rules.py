"""Fields of an object of a YAML file: those that its API server would drop without a word, and
those of another type than it takes. The fields of each kind: trainyard/catalog/fields.py."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from trainyard.catalog.fields import Schema, resolved, schema
from trainyard.catalog.job_kinds import JOB_KINDS
from trainyard.catalog.quantities import amount
from trainyard.manifests.context import ManifestContext
from trainyard.manifests.document import Path, mapping
from trainyard.manifests.pod_shape import missing
from trainyard.problems import InputError
from trainyard.settings.reading.yaml_file import as_yaml

TYPES: dict[str, tuple[Any, str]] = {
    "array": (list, "a list"),
    "boolean": (bool, "true or false"),
    "integer": (int, "a whole number"),
    "int-or-string": ((int, str), "a whole number or text"),
    "object": (Mapping, "a map"),
    "quantity": ((int, str), "a whole number or text"),
    "string": (str, "text"),
}
"""Type of a schema → the types of YAML that it takes, and what they are called."""
TORCH = "TrainingRuntime.spec.mlPolicy.torch"
ELASTIC_FIX = "delete it and set mlPolicy.numNodes: a JobSet cannot resize"
FIXES = {
    "TrainJob.spec.backoffLimit": (
        "delete it, and set spec.template.spec.failurePolicy.maxRestarts in its runtime"
    ),
    "TrainJob.spec.restartPolicy": (
        "delete it: failurePolicy.maxRestarts in its runtime restarts all ranks"
    ),
    "TrainJob.spec.schedulingPolicy": (
        "use podGroupPolicy of the runtime, or a queue: label kueue.x-k8s.io/queue-name"
    ),
    "TrainJob.spec.podTemplateOverrides": (
        "write runtimePatches: [{manager: example.io/me, trainingRuntimeSpec: …}]"
    ),
    "TrainJob.spec.runtimePatches": "write podTemplateOverrides: [{targetJobs: [{name: node}], spec: …}]",
    "TrainJob.spec.trainer.envFrom": "delete it, and list each variable under env, with valueFrom",
    f"{TORCH}.elasticPolicy": ELASTIC_FIX,
    f"{TORCH}.numProcPerNode": "set numProcPerNode of the TrainJob's trainer",
    "command": 'write [/bin/bash, -c, "…"], or one entry for each word',
    "targetJobs": "write a list of names: - name: node",
}
"""Kind and place of a field, or name of a field → what to write instead."""
SHAPES = {
    "array": "write a list: a line that begins with - for each",
    "object": "write a map: a line with a name, a colon and a value for each",
}
"""Type of JSON schema → what to write in its place."""
_QUANTITIES = {
    "cpu": "write a number of cores, such as 64, or thousandths of one, such as 500m",
    "memory": "write a number, and m, k, M, G, Ki, Mi or Gi behind it: 64Gi",
}
"""Resource → how its amounts are written."""
_NO_VALUE = "write it, or delete the line"
A_FEW = 20
"""Most fields of an object that an error lists."""
AT_LEAST_ONE = ("numNodes", "numProcPerNode", "minReplicas", "maxReplicas", "nProcPerNode")
"""Numbers of pods and of processes, of which none is no training."""
SIGNED = ("priority", "tolerationSeconds")
"""Fields that may be less than 0 (k8s.io/api/core/v1, types.go)."""
JUDGED = (*JOB_KINDS, "TrainingRuntime", "ConfigMap")


def field_errors(context: ManifestContext) -> Iterator[InputError]:
    """Every error of the object's fields."""
    kind, body = context.workload.kind, context.workload.body
    if kind in JUDGED:
        if "kind" in body:
            wanted = ("apiVersion",) if kind == "ConfigMap" else ("apiVersion", "spec")
            yield from missing(context, (), body, wanted)
        yield from _typed(context, schema(kind, context.trainer_minor), body, ())


def _typed(context: ManifestContext, form: Schema, value: Any, path: Path) -> Iterator[InputError]:
    """Errors about types other than the schema's, in the value and inside it."""
    form = resolved(form)
    if value is None or "type" not in form:
        return
    type_, called = TYPES[form["type"]]
    if not isinstance(value, type_) or isinstance(value, bool) != (type_ is bool):
        yield context.error(path, f"be {called}", value, _type_fix(form["type"], value, path))
    elif form["type"] == "quantity" and amount(value) is None:
        fix = _QUANTITIES.get(str(path[-1]), _QUANTITIES["memory"])
        yield context.error(path, "be a quantity", value, _as_requested(context, path, fix))
    elif form["type"] in ("integer", "int-or-string", "quantity"):
        yield from _least(context, value, path)
    elif "properties" in form:
        yield from _members(context, form, value, path)
    elif entries := form.get("items") or form.get("additionalProperties"):
        inside = value.items() if form["type"] == "object" else enumerate(value)
        yield from _entries(context, entries, dict(inside), path)


def _as_requested(context: ManifestContext, path: Path, fix: str) -> str:
    """Fix of a limit: what is requested. `fix`: where nothing is, or it is no limit."""
    if path[-2:-1] != ("limits",):
        return fix
    requested = context.get(*path[:-2], "requests", path[-1])
    return fix if amount(requested) is None else f"write {requested}, as in requests"


def _least(context: ManifestContext, value: Any, path: Path) -> Iterator[InputError]:
    """A number below what its field can mean."""
    name = str(path[-1])
    least = 1 if name in AT_LEAST_ONE or path[-2:] == ("Master", "replicas") else 0
    number = value if isinstance(value, int) else amount(value)
    if number is not None and number < least and name not in SIGNED:
        yield context.error(
            path, f"be at least {least}", value, f"write {least} or more, or delete the line"
        )


def _entries(
    context: ManifestContext, form: Schema, values: Mapping[Any, Any], path: Path
) -> Iterator[InputError]:
    """Errors about the entries of a map or list; one without a value counts as zero or as empty
    text, silently."""
    for key, entry in values.items():
        if entry is None:
            fix = _as_requested(context, (*path, key), _NO_VALUE)
            yield context.error((*path, key), "have a value", "nothing", fix)
        yield from _typed(context, form, entry, (*path, key))


def _type_fix(type_: str, value: Any, path: Path) -> str:
    if str(path[-1]) in FIXES:
        return FIXES[str(path[-1])]
    if type_ == "string" and isinstance(value, dict) and [*value] == ["name"]:
        return f"write {value['name']}"
    if type_ in ("string", "quantity", "int-or-string"):
        return f'quote it: "{str(value).lower() if isinstance(value, bool) else value}"'
    if type_ == "boolean":
        return "write true or false, without quotes"
    if type_ == "array" and isinstance(value, dict) and path[-1] == "env":
        return (
            f"write {as_yaml([{'name': name, 'value': str(each)} for name, each in value.items()])}"
        )
    if type_ in SHAPES:
        return SHAPES[type_]
    is_number = str(value).lstrip("-").isdecimal()
    return f"write it without quotes: {value}" if is_number else "write a number, such as 2"


def _members(
    context: ManifestContext, form: Schema, value: Mapping[str, Any], path: Path
) -> Iterator[InputError]:
    """Fields that no object of this type has. Of a type that is open, slips only."""
    known, is_open = form["properties"], bool(form.get("additionalProperties"))
    if "kind" in context.workload.body:
        yield from missing(context, path, value, form.get("required", ()))
    place = ".".join([context.workload.kind, *(step for step in path if isinstance(step, str))])
    for key, entry in value.items():
        yield from _typed(context, known.get(key, {}), entry, (*path, key))
        if key in known:
            continue
        near = get_close_matches(key, known, 1, 0.85 if is_open else 0.6)
        if near or not is_open:
            yield context.error(
                (*path, key),
                f"be a field of {context.controller}: its API server drops others silently",
                entry,
                FIXES.get(f"{place}.{key}") or _member_fix(key, value, near, known),
            )


def _member_fix(
    key: str, beside: Mapping[str, Any], near: list[str], known: Mapping[str, Schema]
) -> str:
    """Advice about a field that is not here: it may be one of a field beside it, or a slip of one that takes
    such a value."""
    entry = beside[key]
    forms = {name: resolved(form) for name, form in known.items()}
    inside = [name for name, form in forms.items() if key in form.get("properties", {})]
    if inside:
        other = mapping(beside.get(inside[0])).get(key)
        if other == entry:
            return f"delete it: {inside[0]} has it"
        return f"move it into {inside[0]}" + f", in the place of {key}: {other}" * bool(other)
    if near and near[0] in beside:
        return f"delete it: {near[0]} is there"
    if near and isinstance(entry, TYPES.get(str(forms[near[0]].get("type")), (object,))[0]):
        return f"did you mean {near[0]}?"
    return (
        f"delete it; the fields here are {', '.join(known)}" if len(known) <= A_FEW else "delete it"
    )
