"""Fields of an object of a YAML file: those that its API server would drop without a word, and
those of another type than it takes. The table of fields: catalog/fields.py."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Any

from catalog.fields import FIELDS, fields
from catalog.quantities import amount
from stacks.manifests.context import ManifestContext
from stacks.manifests.document import Path
from stacks.settings.problems import InputError

TYPES: dict[str, tuple[Any, str]] = {
    "text": (str, "text"),
    "number": (int, "a whole number"),
    "amount": ((int, str), "a whole number or text"),
}
ELASTIC_FIX = "delete it and set mlPolicy.numNodes: a JobSet cannot resize"
FIXES = {
    "TrainJobSpec.backoffLimit": (
        "a TrainJob has none: set spec.template.spec.failurePolicy.maxRestarts in its runtime"
    ),
    "TrainJobSpec.restartPolicy": (
        "a TrainJob has none: failurePolicy.maxRestarts in its runtime restarts all ranks"
    ),
    "TrainJobSpec.schedulingPolicy": (
        "podGroupPolicy of the runtime, or a queue: label kueue.x-k8s.io/queue-name"
    ),
    "TrainJobSpec.podTemplateOverrides": (
        "runtimePatches: [{manager: example.io/me, trainingRuntimeSpec: …}]"
    ),
    "TrainJobSpec.runtimePatches": "podTemplateOverrides: [{targetJobs: [{name: node}], spec: …}]",
    "Torch.elasticPolicy": ELASTIC_FIX,
    "Torch.numProcPerNode": "numProcPerNode of the TrainJob's trainer",
    "command": '[/bin/bash, -c, "…"], or one entry for each word',
    "targetJobs": "a list of names: - name: node",
}
"""Type and field, or field → what to write instead."""
JUDGED = ("TrainJob", "TrainingRuntime", "PyTorchJob", "ConfigMap")


def field_errors(context: ManifestContext) -> Iterator[InputError]:
    """Every error of the object's fields."""
    if context.workload.kind in JUDGED:
        yield from _typed(context, context.workload.kind, context.workload.body, ())


def _typed(context: ManifestContext, form: str, value: Any, path: Path) -> Iterator[InputError]:
    """What is of another type than `form`, a word of catalog/fields.py."""
    if value is None or not form:
        return
    type_, called = (
        (list, "a list") if form.startswith("[") else TYPES.get(form, (Mapping, "a map"))
    )
    if not isinstance(value, type_) or isinstance(value, bool):
        yield context.error(path, f"be {called}", value, _type_fix(form, value, path))
    elif form == "amount" and amount(value) is None:
        fix = "a number, and m, k, M, G, Ki, Mi or Gi behind it: 64Gi"
        yield context.error(path, "be a quantity", value, fix)
    elif form[0] in "[{":
        for key, entry in enumerate(value) if form[0] == "[" else value.items():
            yield from _typed(context, form[1:-1], entry, (*path, key))
    elif form in FIELDS:
        yield from _members(context, form, value, path)


def _type_fix(form: str, value: Any, path: Path) -> str:
    if str(path[-1]) in FIXES:
        return FIXES[str(path[-1])]
    if form in ("text", "amount"):
        return f'quote it: "{str(value).lower() if isinstance(value, bool) else value}"'
    return f"without quotes: {value}" if form == "number" else "indent it so"


def _members(
    context: ManifestContext, form: str, value: Mapping[str, Any], path: Path
) -> Iterator[InputError]:
    """Fields that no object of this type has."""
    known = fields(form, "{}.{}".format(*context.trainer_minor))
    for key, entry in value.items():
        yield from _typed(context, known.get(key, ""), entry, (*path, key))
        if key in known:
            continue
        near = difflib.get_close_matches(key, known, 1, 0.85 if "*" in known else 0.6)
        if near or "*" not in known:
            fix = f"did you mean {near[0]}?" if near else f"fields here: {', '.join(known)}"
            yield context.error(
                (*path, key),
                f"be a field of {context.controller}: its API server drops others silently",
                entry,
                FIXES.get(f"{form}.{key}", fix),
            )
