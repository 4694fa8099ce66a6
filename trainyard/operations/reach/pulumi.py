"""Calls of the Pulumi CLI, in the backend and the account that the environment variables name."""

from __future__ import annotations

import json
import subprocess
from typing import Any


class PulumiError(RuntimeError):
    """A Pulumi command failed; the message is Pulumi's own."""


def pulumi(stack: str, *arguments: str, text: str | None = None) -> str:
    """The output of one command on a stack; PulumiError where it fails."""
    try:
        done = subprocess.run(
            ["pulumi", *arguments, "--stack", stack, "--non-interactive", "--color", "never"],
            input=text,
            capture_output=True,
            text=True,
        )
    except FileNotFoundError:
        raise PulumiError("pulumi is not on PATH") from None
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


def deployment(stack: str) -> dict[str, Any]:
    """The stack's checkpoint as `stack export` gives it: version and deployment."""
    return json.loads(pulumi(stack, "stack", "export"))


def outputs(stack: str) -> dict[str, Any]:
    """The outputs of the stack's last update, without secrets."""
    return json.loads(pulumi(stack, "stack", "output", "--json"))


def last_update(stack: str) -> str | None:
    """Result of the newest update in the stack's history, such as succeeded; None where none
    has run."""
    history = json.loads(pulumi(stack, "stack", "history", "--json", "--page-size", "1") or "[]")
    return history[0].get("result", "") if history else None


def last_update_failed(stack: str) -> bool:
    """True where the newest update in the stack's history failed."""
    return last_update(stack) not in ("succeeded", None)
