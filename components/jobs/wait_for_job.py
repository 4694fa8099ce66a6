"""Waits until a run has started or has ended, with kubectl; a run that fails, fails with what its
ranks said last.

Works with any Kubernetes provider: it looks at the object, not at how it got there.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple

import pulumi

from trainyard.catalog.job_kinds import JOB_KINDS, SUCCEEDED, outcome, true_conditions

POLL_SECONDS = 3.0
"""A failed run must be known within ten seconds."""
LINES = 20
"""Lines shown of the log of the pod that failed first. Of every other pod the last line is
shown."""
KILLED = (137, 143)
"""Exit codes of a rank that was ended because another one had failed: SIGKILL, SIGTERM."""
MESSAGE_SHOWN = 32
"""Exit code of a Python program whose error is said already (pulumi-language-python-exec)."""
Kubectl = tuple[str, ...]
"""The words of a call before its verb."""


class RunFailed(RuntimeError):
    """The run failed, or was not where it should be in time; the message says which, with the
    log."""


class Failure(NamedTuple):
    """The end of a container that failed; in the order in which ends are shown."""

    killed: bool
    at: str
    pod: str
    container: str
    exit_code: int
    restarted: bool
    """The container runs again, and kubectl calls this end the previous one."""


def wait_or_report(
    kubeconfig: str, kind: str, namespace: str, name: str, *, until: str, minutes: float
) -> None:
    """`wait`, but a failure ends no program at once: it is said, and this update fails at its end.

    Pulumi deletes what a stack file no longer has after its program has ended, and deletes nothing
    where the program ends with an error.
    """
    try:
        wait(kubeconfig, kind, namespace, name, until=until, minutes=minutes)
    except RunFailed as failure:
        pulumi.log.error(str(failure))
        fail_at_the_end()


@functools.cache
def fail_at_the_end() -> None:
    """Let this process end with an error. The SDK returns to the process only after the engine has
    deleted everything, and knows no way to return an error then."""
    atexit.register(os._exit, MESSAGE_SHOWN)


def wait(
    kubeconfig: str, kind: str, namespace: str, name: str, *, until: str, minutes: float
) -> str:
    """Wait until the run is `running` or `complete`, at most so many minutes. Returns its state.

    Raises RunFailed when it fails, when the time is over, and at once where there is no kubectl.
    """
    deadline, selector = time.monotonic() + minutes * 60, f"{JOB_KINDS[kind].pod_label}={name}"
    with kubectl_of(kubeconfig, namespace) as kubectl:
        where, said = "not seen yet", ""
        while time.monotonic() < deadline:
            found = _jobs(kubectl, kind, name)
            if found == []:
                raise RunFailed(
                    f"{kind} {namespace}/{name} is not on the cluster any more: somebody stopped or"
                    " deleted it. Fix: increase `run` of its entry, or delete the entry"
                )
            where = _state(found[0]) if found else where
            if where in SUCCEEDED or (until == "running" and where == "Running"):
                return where
            # Some runtimes delete the pods of a failed job, so their logs are read before it fails.
            said = _words_of_failures(kubectl, selector) or said
            if where == "Failed":
                break
            time.sleep(POLL_SECONDS)
        said = said or _last_lines(kubectl, selector, LINES)
    over = "" if where == "Failed" else f" after {minutes:g} minutes (wait_minutes)"
    raise RunFailed(
        f"{kind} {namespace}/{name} is {where}{over}; its ranks said last:\n"
        f"{said or 'nothing: it has no pods'}"
    )


@contextmanager
def kubectl_of(kubeconfig: str, namespace: str) -> Iterator[Kubectl]:
    """kubectl for a namespace of the cluster that a kubeconfig, given as text, leads to."""
    with tempfile.NamedTemporaryFile("w", suffix=".kubeconfig") as file:
        file.write(kubeconfig)
        file.flush()
        yield (
            "kubectl",
            f"--kubeconfig={file.name}",
            f"--namespace={namespace}",
            "--request-timeout=20s",
        )


def _jobs(kubectl: Kubectl, kind: str, name: str) -> list[Any] | None:
    """The job; an empty list where there is none. None where the API server does not answer."""
    one = f"--field-selector=metadata.name={name}"
    shown = answer(*kubectl, "get", kind.lower(), one, "--output=json")
    return json.loads(shown)["items"] if shown else None


def _state(job: Mapping[str, Any]) -> str:
    """The condition with which the job ended; else Running once all pods are ready, and Waiting
    before."""
    if end := outcome(job):
        return end
    status = job.get("status") or {}
    ready = [part.get("ready") or part.get("succeeded") for part in status.get("jobsStatus", [])]
    running = any(condition["type"] == "Running" for condition in true_conditions(job))
    return "Running" if running or (ready and all(ready)) else "Waiting"


def _words_of_failures(kubectl: Kubectl, selector: str) -> str:
    """The last lines of the pod that failed first, then the last line of every pod. Empty where no
    container has failed."""
    shown = answer(*kubectl, "get", "pods", f"--selector={selector}", "--output=json")
    failures = sorted(_failures(json.loads(shown)["items"] if shown else []))
    if not failures:
        return ""
    first = failures[0]
    log = answer(
        *(*kubectl, "logs", first.pod, f"--container={first.container}", f"--tail={LINES}"),
        *(["--previous"] if first.restarted else []),
    )
    return (
        f"pod {first.pod} failed first, with exit code {first.exit_code}:\n{log or 'no log'}\n"
        f"the last line of every pod:\n{_last_lines(kubectl, selector, 1) or 'none'}"
    )


def _failures(pods: list[Mapping[str, Any]]) -> Iterator[Failure]:
    for pod in pods:
        for status in pod.get("status", {}).get("containerStatuses", []):
            for field in ("state", "lastState"):
                end = status.get(field, {}).get("terminated") or {}
                if end.get("exitCode"):
                    yield Failure(
                        killed=end["exitCode"] in KILLED,
                        at=end.get("finishedAt") or "",
                        pod=pod["metadata"]["name"],
                        container=status["name"],
                        exit_code=end["exitCode"],
                        restarted=field == "lastState",
                    )


def _last_lines(kubectl: Kubectl, selector: str, lines: int) -> str:
    return answer(
        *(*kubectl, "logs", f"--selector={selector}", f"--tail={lines}"),
        *("--prefix", "--ignore-errors"),
    )


def answer(*words: str) -> str:
    """Output of a command; empty where it fails, as the API server may be away for a moment."""
    try:
        return subprocess.run(words, capture_output=True, text=True, timeout=60).stdout
    except FileNotFoundError:
        raise RunFailed(
            "`wait` needs kubectl on this machine; install it, or set wait: none"
        ) from None
    except subprocess.TimeoutExpired:
        return ""
