"""Errors of the Pulumi CLI."""

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
