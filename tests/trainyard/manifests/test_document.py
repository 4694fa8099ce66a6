"""What people bring is read as Kubernetes would read it, and every value knows its line."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.support.recording import WORKLOADS
from trainyard.manifests.document import Workload, read_manifest

FOLDER = WORKLOADS
JOB = """\
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJob
metadata: {name: a}
spec:
  trainer:
    command:
    - torchrun
    - train.py
"""


def one(text: str) -> Workload:
    [workload], errors = read_manifest(text, "job.yaml")
    assert errors == ()
    return workload


def test_a_value_knows_its_line_and_a_missing_one_the_line_of_what_should_hold_it() -> None:
    job = one(JOB)
    assert job.where("spec", "trainer", "command", 1) == "spec.trainer.command[1] [job.yaml:8]"
    assert job.where("spec", "trainer", "image") == "spec.trainer.image [job.yaml:5]"
    assert job.where() == "job.yaml:1"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("**/*.y*ml")), ids=lambda path: path.name)
def test_a_file_is_read_as_any_yaml_reader_reads_it(path: Path) -> None:
    if path.name.startswith("c-"):
        pytest.skip("is not YAML")
    documents = [document for document in yaml.safe_load_all(path.read_text()) if document]
    found, errors = read_manifest(path.read_text(), path.name)
    assert [workload.body for workload in found] == documents and not errors


def test_a_line_that_is_indented_wrongly_is_named_and_the_rest_is_read() -> None:
    text = (FOLDER / "c-pytorch-dist-job.flawed.yaml").read_text()
    [job], [error] = read_manifest(text, "c.yaml")
    wrong = next(
        number
        for number, line in enumerate(text.splitlines(), 1)
        if line.startswith(" " * 14 + "command")
    )
    assert (
        error.where == f"c.yaml:{wrong}"
        and "be YAML" in error.must
        and error.got.startswith("command:")
    )
    assert [(pod.role, pod.nodes, pod.containers[0].command[0]) for pod in job.pods] == [
        ("Master", 1, "/bin/bash"),
        ("Worker", 2, "/bin/bash"),
    ]


def test_two_lines_that_are_indented_wrongly_are_two_errors() -> None:
    text = JOB.replace("kind: TrainJob", "  kind: TrainJob").replace("    command:", "\t command:")
    _, errors = read_manifest(text, "job.yaml")
    assert [error.where for error in errors] == ["job.yaml:2", "job.yaml:6"]


@pytest.mark.parametrize(
    "text", ["a: [", "{", "a: *nowhere", "a: !unknown b", "\t", "a: 'b", "a: \x07"]
)
def test_what_cannot_be_mended_is_a_fault_and_no_workload(text: str) -> None:
    found, errors = read_manifest(text, "x.yaml")
    assert (
        errors
        and all(error.where == "x.yaml:1" for error in errors)
        and not any(w.kind for w in found)
    )


def test_an_empty_file_holds_nothing() -> None:
    assert (
        read_manifest("", "x.yaml")
        == read_manifest("# only this\n---\n---\n", "x.yaml")
        == ((), ())
    )


def test_a_key_that_is_given_twice_is_a_fault_with_the_line_of_the_second() -> None:
    _, [error] = read_manifest(JOB + "kind: PyTorchJob\n", "job.yaml")
    assert str(error) == (
        "kind [job.yaml:9]: must be set once; got another value in line 2, which was not checked. Fix: delete one"
        " of the two"
    )


def test_what_kubernetes_reads_as_text_is_text() -> None:
    body = one("spec: {a: 2026-11-01, b: 12:30:00, c: yes, d: 0x10, e: 1e3, f: ~, g: 1_000}").get(
        "spec"
    )
    assert (body["a"], body["b"], body["c"], body["d"], body["f"]) == (
        "2026-11-01",
        "12:30:00",
        True,
        16,
        None,
    )


def test_anchors_and_merge_keys_are_followed_and_the_nearer_value_counts() -> None:
    job = one("""\
x: &a {image: "one:1", numNodes: 2}
y: &b {image: "two:1", env: [{name: A, value: "1"}]}
kind: TrainJob
spec:
  trainer:
    numNodes: 3
    <<: [*a, *b]
""")
    assert job.get("spec", "trainer") == {
        "image": "one:1",
        "numNodes": 3,
        "env": [{"name": "A", "value": "1"}],
    }
    assert job.where("spec", "trainer", "numNodes") == "spec.trainer.numNodes [job.yaml:6]"
    assert job.pods[0].nodes == 3 and dict(job.pods[0].containers[0].env) == {"A": "1"}


LIST = f"""\
apiVersion: v1
items:
- apiVersion: kubeflow.org/v1
  kind: PyTorchJob
  metadata: {{name: bert}}
- kind: List
  items:
  - {{kind: ConfigMap, metadata: {{name: code}}}}
- only a text
kind: List
metadata: {{resourceVersion: ""}}
---
apiVersion: trainer.kubeflow.org/v1alpha1
kind: TrainJobList
items:
- metadata:
    name: t5
    annotations: {{token: hf_{"aBcDe" * 6}}}
"""


def test_the_items_of_a_list_are_objects_with_their_own_lines() -> None:
    """kubectl get pytorchjobs -o yaml prints one; a list of the API names the kind of its items."""
    workloads, [secret] = read_manifest(LIST, "jobs.yaml")
    assert [(each.kind, each.name, each.where("metadata", "name")) for each in workloads] == [
        ("PyTorchJob", "bert", "metadata.name [jobs.yaml:5]"),
        ("ConfigMap", "code", "metadata.name [jobs.yaml:8]"),
        ("TrainJob", "t5", "metadata.name [jobs.yaml:17]"),
    ]
    assert workloads[2].get("apiVersion") == "trainer.kubeflow.org/v1alpha1"
    assert secret.line == 18


def test_a_part_of_a_runtime_counts_as_a_runtime() -> None:
    fragment = one((FOLDER / "d-gpu.runtime-fragment.yaml").read_text())
    assert (
        fragment.kind == "TrainingRuntime"
        and fragment.pods[0].containers[0].amount("nvidia.com/gpu") == 4
    )


def test_the_pods_of_a_train_job_are_its_trainer_and_what_it_overrides() -> None:
    patched = one("""\
kind: TrainJob
spec:
  trainer: {numNodes: 2}
  podTemplateOverrides: [{spec: {containers: [{name: node}]}}]
  runtimePatches: [{trainingRuntimeSpec: {template: {spec: {replicatedJobs: [
    {name: node, template: {spec: {template: {spec: {nodeSelector: {a: b}}}}}}]}}}}]
""")
    assert [(pod.role, pod.nodes) for pod in patched.pods] == [
        ("trainer", 2),
        ("override", None),
        ("override", None),
    ]
    assert patched.pods[2].spec == {"nodeSelector": {"a": "b"}}


@pytest.mark.parametrize(
    ("command", "script"),
    [
        ("[bash, -c, 'a b']", "a b"),
        ("[/bin/sh, -ec, 'a', ignored]", "a"),
        ("[bash, --login, -c, x]", "x"),
        ("[python, -c, 'print(1)']", "python -c print(1)"),
        ("a text", "a text"),
        ("[bash, -c]", "bash -c"),
        ("~", ""),
        ("{not: a list}", ""),
    ],
)
def test_a_script_is_what_a_shell_is_given_or_the_command(command: str, script: str) -> None:
    job = one(f"kind: TrainJob\nspec: {{trainer: {{command: {command}}}}}")
    assert job.pods[0].containers[0].script == script


@pytest.mark.parametrize("value", ["1", "text", "[1, [2]]", "~", "[{}]", "{a: [1]}"])
@pytest.mark.parametrize(
    "key", ["metadata", "spec", "trainer", "podTemplateOverrides", "env", "resourcesPerNode"]
)
def test_no_shape_is_too_wrong_to_be_read(key: str, value: str) -> None:
    inner = (
        f"{key}: {value}"
        if key in ("metadata", "spec")
        else (
            f"spec: {{{key}: {value}}}"
            if key[0] in "tp"
            else f"spec: {{trainer: {{{key}: {value}}}}}"
        )
    )
    assert one(f"kind: TrainJob\n{inner}").kind == "TrainJob"
