"""The table of fields is the release's own."""

from __future__ import annotations

import difflib

import pytest

from catalog.fields import FIELDS, fields
from tests.support import crds

JOBS = "spec.template.spec.replicatedJobs"
POD = f"{JOBS}.template.spec.template.spec"
MAIN = f"{POD}.containers"
CRD = {
    "TrainJob": {
        "TrainJob": "",
        "TrainJobSpec": "spec",
        "Ref": "spec.runtimeRef",
        "Trainer": "spec.trainer",
        "Override": "spec.podTemplateOverrides",
        "PodPatch": "spec.podTemplateOverrides.spec",
        "Env": "spec.trainer.env",
        "Patched": "spec.podTemplateOverrides.spec.containers",
        "Resources": "spec.trainer.resourcesPerNode",
    },
    "ClusterTrainingRuntime": {
        "TrainingRuntime": "",
        "RuntimeSpec": "spec",
        "Policy": "spec.mlPolicy",
        "Torch": "spec.mlPolicy.torch",
        "Mpi": "spec.mlPolicy.mpi",
        "JobSet": "spec.template.spec",
        "FailurePolicy": "spec.template.spec.failurePolicy",
        "Replicated": JOBS,
        "DependsOn": f"{JOBS}.dependsOn",
        "Job": f"{JOBS}.template.spec",
        "Pod": POD,
        "PodTemplate": f"{JOBS}.template.spec.template",
        "Container": MAIN,
        "Mount": f"{MAIN}.volumeMounts",
        "Source": f"{MAIN}.env.valueFrom",
        "KeyRef": f"{MAIN}.env.valueFrom.secretKeyRef",
        "Volume": f"{POD}.volumes",
        "Toleration": f"{POD}.tolerations",
        "EmptyDir": f"{POD}.volumes.emptyDir",
        "Claim": f"{POD}.volumes.persistentVolumeClaim",
    },
}


@pytest.mark.parametrize(
    ("kind", "form"), [(kind, form) for kind, forms in CRD.items() for form in forms]
)
def test_the_table_of_fields_is_the_release_s_own(kind: str, form: str) -> None:
    schema = crds._crd(kind, "trainer.kubeflow.org/v1alpha1")[1]
    for step in filter(None, CRD[kind][form].split(".")):
        schema = schema["properties"][step]
        schema = schema.get("items", schema)
    known, real = fields(form, "2.1"), set(schema["properties"])
    if "*" not in known:
        assert {*known} - {"status"} == real - {"status"}
    else:
        assert {*known} - {"*"} <= real
        near = [name for name in real - {*known} if difflib.get_close_matches(name, known, 1, 0.85)]
        assert near == [], "a field of Kubernetes would be taken for a slip"


def test_every_type_of_the_table_is_described() -> None:
    held = {
        each.strip("[]{}")
        for form in FIELDS
        for minor in ("2.1", "2.3")
        for each in fields(form, minor).values()
    }
    assert held <= {"", "text", "number", "amount", *FIELDS}


def test_a_release_has_its_own_fields() -> None:
    assert (
        fields("Trainer", "2.1")["numProcPerNode"] == ""
        and fields("Trainer", "2.2")["numProcPerNode"] == "number"
    )
    assert "labels" in fields("TrainJobSpec", "2.1") and "runtimePatches" in fields(
        "TrainJobSpec", "2.10"
    )
    assert not {"podTemplateOverrides", "labels"} & {*fields("TrainJobSpec", "2.3")}
