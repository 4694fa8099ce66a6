"""Errors of the Pulumi CLI, and its history."""

from __future__ import annotations

import json
import subprocess

import pytest

from trainyard.operations.reach import pulumi


@pytest.mark.parametrize(
    ("stdout", "stderr", "said"),
    [
        ("", "error: no stack\n", "error: no stack"),
        (
            json.dumps(
                {
                    "steps": [{}] * 99,
                    "diagnostics": [
                        {"severity": "warning", "message": "a tag"},
                        {"severity": "error", "message": "connection refused\n"},
                    ],
                }
            ),
            "",
            "connection refused",
        ),
    ],
)
def test_a_refusal_is_told_by_its_errors_alone(
    monkeypatch: pytest.MonkeyPatch, stdout: str, stderr: str, said: str
) -> None:
    monkeypatch.setattr(
        subprocess, "run", lambda *_, **__: subprocess.CompletedProcess([], 1, stdout, stderr)
    )
    with pytest.raises(pulumi.PulumiError) as refused:
        pulumi.pulumi("dev", "preview", "--json")
    assert str(refused.value) == f"pulumi preview --json: {said}"


@pytest.mark.parametrize(
    ("history", "result"),
    [
        ("", None),
        ([("refresh", "succeeded")], None),
        ([("refresh", "succeeded"), ("update", "failed"), ("update", "succeeded")], "failed"),
        ([("resource-import", "failed"), ("destroy", "succeeded")], "succeeded"),
    ],
)
def test_the_last_update_is_not_the_refresh_of_a_repair(
    monkeypatch: pytest.MonkeyPatch, history: list[tuple[str, str]], result: str | None
) -> None:
    ended = "2026-11-27T09:30:00.000Z"
    listed = [{"kind": kind, "result": end, "endTime": ended} for kind, end in history]
    monkeypatch.setattr(pulumi, "pulumi", lambda *_: json.dumps(listed) if history else "")
    newest = pulumi.last_update("dev")
    assert (newest.result if newest else None) == result
    assert pulumi.last_update_failed("dev") == (result == "failed")
