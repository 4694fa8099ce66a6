"""Errors of the Pulumi CLI."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

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


def test_a_command_gets_its_own_variables_beside_those_of_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "pulumi"
    program.write_text('#!/bin/sh\nprintf \'%s %s\' "$OWN" "$OTHER"\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("OTHER", "theirs")
    assert pulumi.pulumi("dev", "preview", more={"OWN": "mine"}) == "mine theirs"
