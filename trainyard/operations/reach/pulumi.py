"""Calls of the Pulumi CLI, in the backend and the account that the environment variables name."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from typing import Any

from trainyard.operations.reach.other_programs import not_on_path

Entry = dict[str, Any]
PATCH_FORCE = "PULUMI_K8S_ENABLE_PATCH_FORCE"
"""Variable of pulumi-kubernetes: without it the API server refuses an update of fields that somebody else has
written."""


class PulumiError(RuntimeError):
    """A Pulumi command failed; the message is Pulumi's own."""


def pulumi(
    stack: str, *arguments: str, text: str | None = None, more: Mapping[str, str] | None = None
) -> str:
    """The output of one command on a stack; PulumiError where it fails. `more`: variables for it, beside those of
    this process."""
    try:
        done = subprocess.run(
            ["pulumi", *arguments, "--stack", stack, "--non-interactive", "--color", "never"],
            input=text,
            env={**os.environ, **(more or {})},
            capture_output=True,
            text=True,
        )
    except FileNotFoundError:
        raise PulumiError(not_on_path("pulumi")) from None
    if done.returncode:
        raise PulumiError(f"pulumi {' '.join(arguments)}: {_errors(done.stderr or done.stdout)}")
    return done.stdout


def _errors(output: str) -> str:
    """The error messages in the output, without the hundreds of lines of a preview as JSON."""
    try:
        diagnostics = json.loads(output)["diagnostics"]
    except (ValueError, KeyError, TypeError):
        return output.strip()
    return "; ".join(
        diagnostic["message"].strip()
        for diagnostic in diagnostics
        if diagnostic.get("severity") == "error"
    )


def deployment(stack: str) -> Entry:
    """The stack's checkpoint as `stack export` gives it: version and deployment."""
    return json.loads(pulumi(stack, "stack", "export"))


def made_by(state: Entry) -> list[Entry]:
    """Resources of a state that its stack has made: no components, and nothing that it only reads."""
    resources = state["deployment"].get("resources") or []
    return [each for each in resources if each.get("custom") and not each.get("external")]


def outputs(stack: str) -> dict[str, Any]:
    """The outputs of the stack's last update, without secrets."""
    return json.loads(pulumi(stack, "stack", "output", "--json"))
