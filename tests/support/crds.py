"""Custom resources against their CRDs without a cluster: the schema closed to unknown fields, list
keys, CEL rules.

The CRDs are read from upstream's Go modules, which the rehearsal's toolchain has fetched; nothing
is vendored here.
"""

from __future__ import annotations

import copy
import functools
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import celpy
import jsonschema
import pytest
import yaml
from celpy import celtypes
from celpy.adapter import json_to_cel
from celpy.evaluation import CELEvalError

from trainyard.catalog.versions import TRAINER_LINES

MODULES = (
    Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "trainyard" / "go" / "mod"
)
TRAINER = "github.com/kubeflow/trainer/v2@v{trainer}/manifests/base"
KARPENTER = "github.com/aws/karpenter-provider-aws@v{karpenter}/pkg/apis/crds"
FILES = {
    "TrainJob": f"{TRAINER}/crds/trainer.kubeflow.org_trainjobs.yaml",
    "TrainingRuntime": f"{TRAINER}/crds/trainer.kubeflow.org_trainingruntimes.yaml",
    "ClusterTrainingRuntime": f"{TRAINER}/crds/trainer.kubeflow.org_clustertrainingruntimes.yaml",
    "JobSet": (
        "sigs.k8s.io/jobset@v{jobset}/config/components/crd/bases/jobset.x-k8s.io_jobsets.yaml"
    ),
    "EC2NodeClass": f"{KARPENTER}/karpenter.k8s.aws_ec2nodeclasses.yaml",
    "NodePool": f"{KARPENTER}/karpenter.sh_nodepools.yaml",
}
FUNCTIONS = {  # Kubernetes' extensions of CEL that the rules use and cel-python lacks
    "find": lambda text, pattern: celtypes.StringType((re.search(pattern, text) or [""])[0]),
    "split": lambda text, by: celtypes.ListType([celtypes.StringType(t) for t in text.split(by)]),
}


def upstream(path: str, release: str = "2.1.0", karpenter: str = "1.14.1") -> Path:
    """A file or folder of the module cache, of a release of the Trainer and the JobSet in its
    chart, or of one of Karpenter; skips the test where the toolchain was never built."""
    found = MODULES / path.format(
        trainer=release,
        jobset=TRAINER_LINES[release.rpartition(".")[0]].jobset,
        karpenter=karpenter,
    )
    if not found.exists():
        pytest.skip(f"needs {path} of the rehearsal's Go modules (make up fetches them)")
    return found


def problems(
    custom_resource: dict[str, Any], release: str = "2.1.0", karpenter: str = "1.14.1"
) -> list[str]:
    """Errors of an API server with the CRD of a release of the Trainer or of Karpenter, and the fields that it
    would silently drop."""
    closed, schema, validator = _crd(
        custom_resource["kind"], custom_resource["apiVersion"], release, karpenter
    )
    found = [
        f"{error.json_path}: {error.message[:200]}"
        for error in validator.iter_errors(custom_resource)
    ]
    complete = _with_defaults(closed, copy.deepcopy(custom_resource))
    return found or list(_refusals(schema, complete, custom_resource["kind"]))


def rules_of(kind: str, version: str, release: str = "2.1.0") -> int:
    """Number of CEL rules of a CRD, those about updates included."""
    return sum(1 for _ in _rules(_crd(kind, version, release)[1]))


@functools.cache
def _crd(
    kind: str, api_version: str, release: str = "2.1.0", karpenter: str = "1.14.1"
) -> tuple[dict[str, Any], dict[str, Any], Any]:
    spec = yaml.load(upstream(FILES[kind], release, karpenter).read_text(), yaml.CSafeLoader)[
        "spec"
    ]
    group, _, version = api_version.partition("/")
    assert (spec["names"]["kind"], spec["group"]) == (kind, group)
    [schema] = [
        v["schema"]["openAPIV3Schema"]
        for v in spec["versions"]
        if v["name"] == version and v["served"]
    ]
    closed = _closed(schema)
    closed["properties"]["metadata"] = {"type": "object"}  # the API server's own
    return closed, schema, jsonschema.Draft202012Validator(closed)


def _closed(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema as JSON Schema, without room for fields that are not in it."""
    made = {k: v for k, v in schema.items() if not k.startswith("x-kubernetes-")}
    if schema.get("x-kubernetes-int-or-string"):
        return {**made, "type": ["integer", "string"], "anyOf": [{}]}
    if "properties" in schema:
        made["properties"] = {k: _closed(v) for k, v in schema["properties"].items()}
        if not schema.get("x-kubernetes-preserve-unknown-fields"):
            made["additionalProperties"] = False
    for inner in ("items", "additionalProperties"):
        if isinstance(schema.get(inner), dict):
            made[inner] = _closed(schema[inner])
    if schema.get("nullable") and isinstance(made.get("type"), str):
        made["type"] = [made["type"], "null"]
    return made


def _with_defaults(schema: dict[str, Any], value: Any) -> Any:
    if isinstance(value, dict):
        for key, inner in schema.get("properties", {}).items():
            if key not in value and "default" in inner:
                value[key] = copy.deepcopy(inner["default"])
        for key, item in value.items():
            value[key] = _with_defaults(_inner(schema, key), item)
    if isinstance(value, list):
        return [_with_defaults(schema.get("items", {}), item) for item in value]
    return value


def _inner(schema: dict[str, Any], key: str) -> dict[str, Any]:
    rest = schema.get("additionalProperties")
    return schema.get("properties", {}).get(key) or (rest if isinstance(rest, dict) else {})


def _refusals(schema: dict[str, Any], value: Any, path: str) -> Iterator[str]:
    for rule in schema.get("x-kubernetes-validations", ()):
        if "oldSelf" not in rule["rule"] and not _holds(rule["rule"], json.dumps(value)):
            yield f"{path}: {rule.get('message', rule['rule'])}"
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _refusals(_inner(schema, key), item, f"{path}.{key}")
    if isinstance(value, list):
        keys = schema.get("x-kubernetes-list-map-keys", ())
        names = [tuple(str(item.get(key)) for key in keys) for item in value] if keys else []
        yield from (
            f"{path}: {name} is given twice" for name in {n for n in names if names.count(n) > 1}
        )
        for index, item in enumerate(value):
            yield from _refusals(schema.get("items", {}), item, f"{path}[{index}]")


@functools.cache
def _holds(rule: str, value: str) -> bool:
    """A rule that cannot be evaluated refuses, as it does in the API server. `value` is JSON: most
    rules judge the same value in many objects, and CEL in Python is slow."""
    try:
        return bool(_program(rule).evaluate({"self": json_to_cel(json.loads(value))}))
    except CELEvalError:
        return False


@functools.cache
def _program(rule: str) -> Any:
    environment = celpy.Environment()
    return environment.program(environment.compile(rule), functions=FUNCTIONS)  # pyright: ignore[reportArgumentType]


def _rules(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        yield from (
            rule["rule"]
            for rule in schema.get("x-kubernetes-validations", ())
            if isinstance(rule, dict)
        )
        for inner in schema.values():
            yield from _rules(inner)
    if isinstance(schema, list):
        for inner in schema:
            yield from _rules(inner)
