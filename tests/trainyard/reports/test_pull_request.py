"""What a comment on a pull request says."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.recording import CHECKOUT
from trainyard.plan import EnvironmentPlan, TeamPlan
from trainyard.problems import told
from trainyard.replacing.previewed import as_markdown
from trainyard.reports import pull_request
from trainyard.reports.check import judged
from trainyard.reports.plan import as_json, summary
from trainyard.reports.stack_file import planned_file

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
    assert "with what is deployed: 1 to replace, 1 to delete, 110 unchanged." in said
    assert said.count("scratch`") == said.count("h100`") == 1
    assert "- **replaces** `LustreFileSystem scratch`, because of storageCapacity" in said
    assert "- **deletes** `NodePool h100`" in said
    assert "- **error**: the cluster is unreachable\n" in said and "- **warning**: a tag\n" in said


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


@pytest.mark.parametrize(
    ("code", "errors"), [("0", []), ("1", ["the preview failed without an error in its JSON"])]
)
def test_a_preview_that_failed_without_an_error_is_no_success(
    code: str,
    errors: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The JSON of pulumi 3.259 has no violated policy (pkg/backend/display/json.go)."""
    monkeypatch.chdir(CHECKOUT)
    (tmp_path / "preview.json").write_text(json.dumps({"changeSummary": {"same": 110}}))
    said = _printed(capsys, str(tmp_path / "preview.json"), "--exit-code", code)
    found = re.findall(r"^- \*\*error\*\*: (.*), as for a violated policy", said, re.MULTILINE)
    assert found == errors
    assert ("The preview failed, and has compared only this" in said) == bool(errors)
    (tmp_path / "preview.json").write_text(json.dumps(PREVIEW))
    said = _printed(capsys, str(tmp_path / "preview.json"), "--exit-code", code)
    assert said.count("- **error**") == 1, "it has one"


def test_the_errors_of_a_stack_file_are_in_the_comment_as_check_prints_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (CHECKOUT / "Pulumi.dev.yaml").read_text()
    wrong = text.replace("zone: ap-northeast-2a", "zone: ap-northeast-9a", 1)
    (tmp_path / "Pulumi.dev.yaml").write_text(wrong.replace("nodes: 2", "nodes: 0"))
    (tmp_path / "Pulumi.yaml").write_text((CHECKOUT / "Pulumi.yaml").read_text())
    monkeypatch.chdir(tmp_path)
    assert wrong != text and pull_request.main(["dev"]) == 1
    said = capsys.readouterr().out
    found = planned_file("dev")
    assert found is not None and len(found[1].errors) > 1
    lines = re.findall(r"^- \*\*error\*\*: (environment\.\S+) \[", said, re.MULTILINE)
    assert sorted(lines) == sorted(f"{error.path}" for error in found[1].errors), said


@pytest.mark.parametrize(
    ("line", "shown"),
    (
        ("write arn:aws:iam::<account>:role/*", r"write arn:aws:iam::&lt;account>:role/\*"),
        ("run `aws kms <id> *`, or <name>", "run `aws kms <id> *`, or &lt;name>"),
    ),
)
def test_a_message_loses_nothing_in_markdown(line: str, shown: str) -> None:
    assert as_markdown(line) == shown


def test_a_warning_that_the_stack_file_has_anyway_is_not_one_of_the_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(CHECKOUT)
    found = planned_file("dev")
    assert found is not None
    of_the_file = told(judged(found[1], found[0].lines).warnings)
    assert of_the_file
    said = [{"severity": "warning", "message": f"warning: {line}"} for line in of_the_file]
    grows = {"severity": "warning", "message": "warning: grows scratch from 4800 to 7200"}
    preview = {"changeSummary": {"update": 1}, "diagnostics": [*said, grows, grows]}
    (tmp_path / "preview.json").write_text(json.dumps(preview))
    printed = _printed(capsys, str(tmp_path / "preview.json"))
    assert printed.count("**warning**") == 1
    assert "- **warning**: grows scratch from 4800 to 7200\n" in printed
    head, _, folded = printed.partition("<details>")
    assert f"{len(of_the_file)} warnings of the stack file, old and new" in folded
    assert all(f"- {line}\n" in folded and line not in head for line in of_the_file)


def test_figures_that_change_stand_beside_those_of_what_is_deployed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(CHECKOUT)
    now = json.loads(as_json(summary(_plan())))
    before = {**now, "usd_a_month_idle": "at least 100.00", "quota_vcpus": {"L-GONE": 16}}
    stack = "urn:pulumi:dev::trainyard::pulumi:pulumi:Stack::trainyard-dev"
    step = {"op": "same", "urn": stack, "oldState": {"outputs": {"plan": before}}}
    preview = {"changeSummary": {"same": 1}, "steps": [step]}
    (tmp_path / "preview.json").write_text(json.dumps(preview))
    said = _printed(capsys, str(tmp_path / "preview.json"))
    assert "| figure | with this change | deployed |" in said
    assert re.search(
        r"\| usd a month idle \| between .* at least 490.63, .* \| at least 100.00 \|", said
    )
    assert re.search(r"\| quota vcpus L-GONE \| nothing \| 16 \|", said)
    assert "| minutes to first step | 16.2 | the same |" in said
    step["oldState"] = {"outputs": {"plan": now}}
    (tmp_path / "preview.json").write_text(json.dumps(preview))
    assert "| figure | value |" in _printed(capsys, str(tmp_path / "preview.json"))


def test_no_figure_is_printed_as_a_map_of_python() -> None:
    values = {"quota_vcpus": {"L-417A185B": 192}, "goodput": {}, "runs": None, "see": "x"}
    assert [*pull_request.figures(values)] == [
        "| figure | value |",
        "|---|---|",
        "| quota vcpus L-417A185B | 192 |",
        "| see | x |",
    ]


def _plan() -> EnvironmentPlan | TeamPlan:
    found = planned_file("dev")
    assert found is not None and found[1].plan is not None
    return found[1].plan


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
    [idle] = [
        line for line in said.splitlines() if line.startswith("| usd a month idle | between ")
    ]
    assert idle.endswith(
        " with guessed prices; without them at least 490.63, oldest price 2026-01-22 |"
    )
    assert "| minutes to first step | 16.2 |" in said


def test_the_comment_on_a_team_has_the_dollars_of_its_jobs_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(CHECKOUT)
    assert pull_request.main(["team-vision"]) == 0
    said = capsys.readouterr().out
    assert said.count("usd per hour") == 1 and "quota" not in said
    assert "| usd per hour at work | at least 37.0447, oldest price 2026-01-22 |" in said
