"""The Pulumi CLI, as these operations use it: on the stack, backend and account that the
environment names."""

from __future__ import annotations

import json
import subprocess
from typing import Any


class PulumiError(RuntimeError):
    """Pulumi refused; the message is its own."""


def pulumi(stack: str, *words: str, text: str | None = None) -> str:
    """The output of one command on a stack; PulumiError where it fails."""
    try:
        done = subprocess.run(
            ["pulumi", *words, "--stack", stack, "--non-interactive", "--color", "never"],
            input=text,
            capture_output=True,
            text=True,
        )
    except FileNotFoundError:
        raise PulumiError("pulumi is not on PATH") from None
    if done.returncode:
        raise PulumiError(f"pulumi {' '.join(words)}: {_errors(done.stderr or done.stdout)}")
    return done.stdout


def _errors(said: str) -> str:
    """What went wrong, without the hundreds of lines of a preview as JSON."""
    try:
        diagnostics = json.loads(said)["diagnostics"]
    except (ValueError, KeyError, TypeError):
        return said.strip()
    return "; ".join(
        each["message"].strip() for each in diagnostics if each.get("severity") == "error"
    )


def deployment(stack: str) -> dict[str, Any]:
    """The stack's checkpoint as `stack export` gives it: version and deployment."""
    return json.loads(pulumi(stack, "stack", "export"))


def outputs(stack: str) -> dict[str, Any]:
    """What the stack's program exported when it last ran to its end, without secrets."""
    return json.loads(pulumi(stack, "stack", "output", "--json"))


def last_update_failed(stack: str) -> bool:
    """Whether the newest update on record did not end well."""
    history = json.loads(pulumi(stack, "stack", "history", "--json", "--page-size", "1") or "[]")
    return bool(history) and history[0].get("result") != "succeeded"
