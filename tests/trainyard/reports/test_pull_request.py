"""What a comment on a pull request says."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.recording import CHECKOUT
from tests.support.stackfile import at, environment_plan
from tests.trainyard.replacing.test_new_runs import JOB as JOB_ENTRY
from trainyard.reports import pull_request

URN = "urn:pulumi:dev::trainyard::trainyard:storage:Lustre${kind}::{name}"
LUSTRE = URN.format(kind="aws:fsx/lustreFileSystem:LustreFileSystem", name="scratch")
POOL = URN.format(kind="kubernetes:karpenter.sh/v1:NodePool", name="h100")
PREVIEW: dict[str, Any] = {
    "changeSummary": {"same": 110, "replace": 1, "delete": 1},
    "steps": [
        {"op": "create-replacement", "urn": LUSTRE, "replaceReasons": ["storageCapacity"]},
        {"op": "replace", "urn": LUSTRE, "replaceReasons": ["storageCapacity"]},
        {"op": "delete-replaced", "urn": LUSTRE},
        {"op": "delete", "urn": POOL},
        {"op": "same", "urn": POOL},
    ],
    "diagnostics": [
        {"severity": "warning", "message": "a tag"},
        {"severity": "error", "message": "the cluster is unreachable\n"},
    ],
}


def _printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert pull_request.main(["dev", *arguments]) == 0
    return capsys.readouterr().out


def test_replacements_and_deletions_are_named_once_with_their_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(CHECKOUT)
    (tmp_path / "preview.json").write_text(json.dumps(PREVIEW))
    said = _printed(capsys, str(tmp_path / "preview.json"))
    assert "Compared with what is deployed: 1 to replace, 1 to delete, 110 unchanged." in said
    assert said.count("scratch`") == said.count("h100`") == 1
    assert "- **replaces** `LustreFileSystem scratch`, because of storageCapacity" in said
    assert "- **deletes** `NodePool h100`" in said
    assert "- **error**: the cluster is unreachable\n" in said and "a tag" not in said


JOB = "urn:pulumi:dev::trainyard::trainyard:jobs:Jobs$kubernetes:trainer.kubeflow.org/v1alpha1:TrainJob::{}"

CONFIG_MAP = "urn:pulumi:dev::trainyard::trainyard:jobs:Jobs$kubernetes:core/v1:ConfigMap::{}"


def _state(*words: str) -> dict[str, Any]:
    return {"inputs": {"spec": {"trainer": {"numNodes": 2, "args": [*words]}}}}


def test_a_job_that_starts_again_is_named_with_what_changed_and_where_it_begins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(CHECKOUT)
    step = {"op": "replace", "replaceReasons": ['metadata.annotations["trainyard.io/run"]']}
    states = {"oldState": _state("--lr", "1e-4"), "newState": _state("--lr", "2e-4")}
    steps = [step | states | {"urn": JOB.format("t5-large")}, step | {"urn": JOB.format("other")}]
    (tmp_path / "preview.json").write_text(json.dumps({"changeSummary": {}, "steps": steps}))
    said = _printed(capsys, str(tmp_path / "preview.json"))
    assert (
        "- **new run** of `t5-large`: `--lr 1e-4` → `--lr 2e-4`. It resumes from the checkpoint in"
        in said
    )
    assert "- **new run** of `other`: its `run` or `after`, or something" in said
    assert "annotations" not in said


def test_a_changed_script_is_named_by_its_path_and_not_by_its_configmap() -> None:
    brings = {"files": {"sources": ["workloads/ddp/train.py"]}}
    [(name, job)] = environment_plan(at("jobs", {"t5": {**JOB_ENTRY, **brings}})).jobs.items()
    volumes = [{"name": "files", "configMap": {"name": called}} for called in ("before", "now")]
    old, new = ({"inputs": {"spec": {"overrides": [{"volumes": [it]}]}}} for it in volumes)
    files = {"inputs": {"data": {"train.py": "print()"}}}
    steps = [
        {"op": "replace", "urn": JOB.format(name), "oldState": old, "newState": new},
        {"op": "replace", "urn": CONFIG_MAP.format(f"{name}-files"), "oldState": files},
    ]
    said = [*pull_request.previewed({"steps": steps}, {name: job})]
    assert said[0].startswith("- **new run** of `t5`: `workloads/ddp/train.py` changed. ")
    assert not [line for line in said if "ConfigMap" in line]


def test_a_job_that_only_comes_after_a_changed_one_is_named_with_that_one() -> None:
    last = {**JOB_ENTRY, "checkpoints": {"store": "scratch", "directory": "last"}, "after": ["t5"]}
    jobs = environment_plan(at("jobs", {"t5": JOB_ENTRY, "last": last})).jobs
    step = {"op": "replace", "oldState": _state("same"), "newState": _state("same")}
    steps = [step | {"urn": JOB.format(name)} for name in jobs]
    [said] = [line for line in pull_request.previewed({"steps": steps}, jobs) if "`last`" in line]
    assert said.startswith("- **new run** of `last`: it comes after t5, which changed. It resumes")


def test_a_preview_that_failed_before_it_began_is_an_error_and_not_no_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """pulumi 3.259 prints {} where it refuses a policy pack's configuration."""
    monkeypatch.chdir(CHECKOUT)
    for preview in ({}, {"diagnostics": [{"severity": "error", "message": "no such stack"}]}):
        (tmp_path / "preview.json").write_text(json.dumps(preview))
        said = _printed(capsys, str(tmp_path / "preview.json"))
        assert len(re.findall(r"^- \*\*error\*\*", said, re.MULTILINE)) == 1
        assert "Compared with" not in said


def test_without_a_preview_the_comment_says_that_the_account_is_empty(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(CHECKOUT)
    said = _printed(capsys)
    assert "it previews an empty account" in said and "Compared with" not in said


def test_dollars_and_minutes_are_in_the_comment(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(CHECKOUT)
    said = _printed(capsys)
    idle = "| usd a month idle | at least 490.63, oldest price 2026-01-22; with guessed prices between "
    assert idle in said
    assert "| minutes to first step | 16.2 |" in said


def test_the_comment_on_a_team_has_the_dollars_of_its_jobs_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(CHECKOUT)
    assert pull_request.main(["team-vision"]) == 0
    said = capsys.readouterr().out
    assert said.count("usd per hour") == 1 and "quota" not in said
    assert "| usd per hour at work | at least 37.0447, oldest price 2026-01-22 |" in said
