"""Calls of the Pulumi CLI, in the backend and the account that the environment variables name."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

_UPDATES = ("update", "destroy")
"""Kinds of the engine's history that change what exists by the program."""
_LOOKED_AT = 20
"""Entries of the history that are read."""
_SECOND = timedelta(seconds=1)


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


@dataclass(frozen=True, kw_only=True)
class Update:
    """A `pulumi up` or `pulumi destroy` that has ended. The history has no update that was killed."""

    result: str
    """Such as succeeded."""
    ended: datetime
    """In whole seconds."""

    def is_older_than(self, state: dict[str, Any]) -> bool:
        """True where an engine has written the state after the end of this update: the engine that a kill
        ended, or a refresh."""
        written = (state["deployment"].get("manifest") or {}).get("time")
        return bool(written) and datetime.fromisoformat(written) > self.ended + _SECOND


def last_update(stack: str) -> Update | None:
    """The newest `pulumi up` or `pulumi destroy` in the stack's history; None where none has ended. Others,
    such as the refresh of a repair, say nothing about what an update has left."""
    asked = ("stack", "history", "--json", "--page-size", str(_LOOKED_AT))
    history = json.loads(pulumi(stack, *asked) or "[]")
    newest = next((each for each in history if each.get("kind") in _UPDATES), None)
    if newest is None:
        return None
    ended = datetime.fromisoformat(newest["endTime"])
    return Update(result=newest.get("result", ""), ended=ended)


def last_update_failed(stack: str) -> bool:
    """True where the newest update in the stack's history failed."""
    newest = last_update(stack)
    return newest is not None and newest.result != "succeeded"
