"""Waits until a run has started or has ended, with kubectl; a run that fails, fails with what its
ranks said last.

Works with any Kubernetes provider: it looks at the object, not at how it got there.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from collections.abc import Mapping
from typing import Any

from catalog.job_kinds import JOB_KINDS, SUCCEEDED, outcome, true_conditions

POLL_SECONDS = 3.0
"""A failed run must be known within ten seconds."""
LINES = 20
"""Of the log that a failure shows."""


class RunFailed(RuntimeError):
    """The run failed, or was not where it should be in time; the message says which, with the
    log."""


def wait(
    kubeconfig: str, kind: str, namespace: str, name: str, *, until: str, minutes: float
) -> str:
    """Wait until the run is `running` or `complete`, at most so many minutes. Returns its state.

    Raises RunFailed when it fails, when the time is over, and at once where there is no kubectl.
    """
    deadline = time.monotonic() + minutes * 60
    with tempfile.NamedTemporaryFile("w", suffix=".kubeconfig") as file:
        file.write(kubeconfig)
        file.flush()
        kubectl = (
            "kubectl",
            f"--kubeconfig={file.name}",
            f"--namespace={namespace}",
            "--request-timeout=20s",
        )
        where = "not seen yet"
        while time.monotonic() < deadline:
            where = (
                _state(
                    json.loads(_said(*kubectl, "get", kind.lower(), name, "--output=json") or "{}")
                )
                or where
            )
            if where in SUCCEEDED or (until == "running" and where == "Running"):
                return where
            if where == "Failed":
                break
            time.sleep(POLL_SECONDS)
        log = _said(
            *kubectl,
            "logs",
            f"--selector={JOB_KINDS[kind].pod_label}={name}",
            f"--tail={LINES}",
            "--prefix",
        )
    over = "" if where == "Failed" else f" after {minutes:g} minutes (wait_minutes)"
    raise RunFailed(
        f"{kind} {namespace}/{name} is {where}{over}; its ranks said last:\n{log or 'nothing'}"
    )


def _state(job: Mapping[str, Any]) -> str:
    """The condition with which the job ended; else Running once all pods are ready, and Waiting
    before. Empty for no job."""
    if not job:
        return ""
    if end := outcome(job):
        return end
    status = job.get("status") or {}
    ready = [part.get("ready") or part.get("succeeded") for part in status.get("jobsStatus", [])]
    running = any(condition["type"] == "Running" for condition in true_conditions(job))
    return "Running" if running or (ready and all(ready)) else "Waiting"


def _said(*words: str) -> str:
    """What a command prints; empty where it fails, as the API server may be away for a moment."""
    try:
        return subprocess.run(words, capture_output=True, text=True, timeout=60).stdout
    except FileNotFoundError:
        raise RunFailed(
            "`wait` needs kubectl on this machine; install it, or set wait: none"
        ) from None
    except subprocess.TimeoutExpired:
        return ""
