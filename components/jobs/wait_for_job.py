"""Waits until a run has started or has ended, with kubectl; a run that fails, fails with what its
ranks said last.

Works with any Kubernetes provider: it looks at the object, not at how it got there.
"""

from __future__ import annotations

import atexit
import functools
import json
import math
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from typing import Any

import pulumi

from components.jobs.followed import Followed
from components.jobs.unanswered import Answers
from trainyard.catalog.job_kinds import JOB_KINDS, SUCCEEDED, outcome, true_conditions
from trainyard.catalog.logs.cause import Cause, Watched, most_told
from trainyard.catalog.logs.first_end import TAIL, End, Object
from trainyard.catalog.logs.known_failures import NO_LOG
from trainyard.catalog.logs.log_words import nothing_done, nothing_to_do
from trainyard.catalog.logs.noted import noted, noting
from trainyard.catalog.logs.symptoms import GRACE_SECONDS
from trainyard.catalog.logs.tries import Tries
from trainyard.catalog.logs.waiting import phases, why_they_wait

POLL_SECONDS = 3.0
"""A failed run must be known within ten seconds."""
EVERY_SECONDS = 10.0
"""Between two lines about a run that goes on, at least."""
LINES = 20
"""Lines shown of the logs of a run of which no rank has ended with an error."""
MESSAGE_SHOWN = 32
"""Exit code of a Python program whose error is said already (pulumi-language-python-exec)."""
UNSEEN, GONE = "not seen yet", "gone"
"""States of a run before the API server has answered, and of one that it does not have."""
Kubectl = tuple[str, ...]
"""The words of a call before its verb."""


class RunFailed(RuntimeError):
    """The run failed, or was not where it should be in time; the message says which, with the
    log."""


def wait_or_report(
    kubeconfig: str,
    kind: str,
    namespace: str,
    name: str,
    *,
    until: str,
    minutes: float,
    stack: str,
) -> None:
    """`wait`, but a failure ends no program at once: it is said, and this update fails at its end.

    Pulumi deletes what a stack file no longer has after its program has ended, and deletes nothing
    where the program ends with an error.
    """
    try:
        end = wait(kubeconfig, kind, namespace, name, until=until, minutes=minutes, stack=stack)
        if end == GONE:
            pulumi.log.warn(
                f"{kind} {namespace}/{name} is not on the cluster: it was stopped or deleted before this update, which"
                " does not begin it again. Fix: increase `run` of its entry, or delete the entry"
            )
        if end in SUCCEEDED and (idle := _nothing_done(kubeconfig, kind, namespace, name)):
            pulumi.log.warn(f"{kind} {namespace}/{name} is {end}, and {nothing_to_do(idle)}")
    except RunFailed as failure:
        pulumi.log.error(str(failure))
        fail_at_the_end()


@functools.cache
def fail_at_the_end() -> None:
    """Let this process end with an error. The SDK returns to the process only after the engine has
    deleted everything, and knows no way to return an error then."""
    atexit.register(os._exit, MESSAGE_SHOWN)


def wait(
    kubeconfig: str,
    kind: str,
    namespace: str,
    name: str,
    *,
    until: str,
    minutes: float,
    stack: str = "",
    say: Callable[[str], object] = pulumi.info,
) -> str:
    """Wait until the run is `running` or `complete`, at most so many minutes. Returns its state; GONE for one that
    was not there when the wait began. `say` gets a line whenever the pods of the run do something else, and whenever
    its gang begins again. `stack`: named in advice; of a job that another one waits for nobody needs it.

    Raises RunFailed when it fails, when the time is over, and at once where there is no kubectl; NotAnswered where
    nobody has answered for long, and no time limits the wait.
    """
    deadline, selector = time.monotonic() + minutes * 60, f"{JOB_KINDS[kind].pod_label}={name}"
    with (
        kubectl_of(kubeconfig, namespace) as kubectl,
        closing(Followed(kubectl, selector)) as followed,
    ):
        ask = functools.partial(_selected, kubectl)
        tries = Tries(kind, namespace, name, ask, followed.take, stack=stack)
        note = functools.partial(_note, kubectl, kind, name)
        where, said, watched, told = UNSEEN, "", Watched(), Told(say, tries, followed, note)
        run, why = f"{kind} {namespace}/{name}", functools.partial(silence, kubectl, kind.lower())
        answers = Answers(run, why, say, ends=math.isinf(minutes))
        found: list[Any] | None = None
        while time.monotonic() < deadline:
            found = jobs_named(kubectl, kind, name)
            answers.look(answered=found is not None)
            if found == []:
                return _gone(run, where)
            where = _state(found[0]) if found else where
            if _is_reached(where, until):
                return where
            # Some runtimes delete the pods of a failed job, so their logs are read before it fails.
            pods = listed(kubectl, "pods", f"--selector={selector}")
            new = _words_of_failures(kubectl, selector, watched, pods)
            said = new or (said if watched.cause else "")
            if where == "Failed":
                break
            told.look(f"{namespace}/{name}", kubectl, selector, pods, watched)
            time.sleep(POLL_SECONDS)
        failed = where == "Failed"
        cause = _cause(watched, followed, note, found) if failed else None
        said = said or _without_failures(kubectl, selector, cause, failed=failed)
    over = "" if failed else f" after {minutes:g} minutes (wait_minutes)"
    raise RunFailed(f"{run} is {where}{over}{said}")


def _gone(run: str, where: str) -> str:
    """GONE for a run that the API server has not. Raises RunFailed where it was there a moment ago."""
    if where != UNSEEN:
        raise RunFailed(
            f"{run} is not on the cluster any more: somebody stopped or deleted it. Fix: increase `run` of its entry,"
            " or delete the entry"
        )
    return GONE


def _is_reached(where: str, until: str) -> bool:
    """True for a run that need not be waited for any more: it is complete, or runs where that is enough."""
    return where in SUCCEEDED or (until == "running" and where == "Running")


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


class Told:
    """Lines about a run while `up` waits for it: the phases of its pods, why they wait or fail, and each try that
    begins."""

    def __init__(
        self,
        say: Callable[[str], object],
        tries: Tries,
        followed: Followed,
        note: Callable[[Cause], object],
    ) -> None:
        """`note`: is given the reason of each try that failed."""
        self._say, self._tries, self._followed, self._note = say, tries, followed, note
        self._said, self._at = "", -EVERY_SECONDS

    def look(
        self,
        run: str,
        kubectl: Kubectl,
        selector: str,
        pods: Sequence[Object] | None,
        watched: Watched,
    ) -> None:
        """Say what is new, and nothing for EVERY_SECONDS after it: a large gang changes all the time. That the gang
        begins again is said at once. `pods`: None where the API server did not answer."""
        now = time.monotonic()
        if pods is None:
            return
        if begun := self._tries.look(pods, watched):
            self._say("\n".join(begun))
            if self._tries.why:
                self._note(self._tries.why)
        self._followed.look(pods)
        if now - self._at < EVERY_SECONDS:
            return
        lines = [f"{run}: {phases(pods)}", *self._why(kubectl, selector, pods, watched)]
        if "\n".join(lines) != self._said:
            self._said, self._at = "\n".join(lines), now
            self._say(self._said)

    def _why(
        self, kubectl: Kubectl, selector: str, pods: Sequence[Object], watched: Watched
    ) -> list[str]:
        if cause := watched.cause:
            return [f"    {cause.sentence}", *([f"    Fix: {cause.do}"] if cause.do else [])]
        if not any(_waits_long(pod) for pod in pods):
            return []
        events = listed(kubectl, "events", "--field-selector=type=Warning") or []
        namespace = pods[0]["metadata"]["namespace"]
        found = why_they_wait(pods, events, namespace=namespace, job=selector)
        return [f"    {line}" for line in found]


def _waits_long(pod: Object) -> bool:
    """True of a pod that has not started GRACE_SECONDS after it was made."""
    if pod["status"].get("phase") != "Pending":
        return False
    made = datetime.fromisoformat(pod["metadata"]["creationTimestamp"])
    return (datetime.now(UTC) - made).total_seconds() >= GRACE_SECONDS


def jobs_named(kubectl: Kubectl, kind: str, name: str) -> list[Any] | None:
    """The job; an empty list where there is none. None where the API server does not answer."""
    return listed(kubectl, kind.lower(), f"--field-selector=metadata.name={name}")


def _selected(kubectl: Kubectl, resource: str, fields: str) -> list[Any] | None:
    """Objects that a field selector selects; None where the API server does not answer."""
    return listed(kubectl, resource, f"--field-selector={fields}")


def listed(kubectl: Kubectl, kind: str, *which: str) -> list[Any] | None:
    """Objects of a kind; None where the API server does not answer."""
    shown = answer(*kubectl, "get", kind, *which, "--output=json")
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


def _words_of_failures(
    kubectl: Kubectl, selector: str, watched: Watched, pods: Sequence[Object] | None
) -> str:
    """Say why the run failed, show the lines of the log that say it, then the last line of every pod. Empty
    where nothing new is known."""

    def log_of(end: End) -> str:
        return answer(
            *(*kubectl, "logs", end.pod, f"--container={end.container}", f"--tail={TAIL}"),
            *(["--previous"] if end.previous else []),
        )

    if not watched.look(pods or [], log_of):
        return ""
    end, cause = watched.end, watched.cause
    assert end and cause
    lines = [
        *_told(cause, f"pod {end.pod}"),
        "the last line of every pod:",
        _last_lines(kubectl, selector, 1).strip() or "none",
    ]
    return "\n".join(lines)


def _cause(
    watched: Watched,
    followed: Followed,
    note: Callable[[Cause], object],
    found: Sequence[Any] | None,
) -> Cause | None:
    """The reason why the run failed, which is noted, or was by an update that saw it; None where no rank has ended
    with an error. `found`: the run as it is now."""
    if cause := most_told(watched.cause, followed.take()):
        note(cause)
    return most_told(cause, *(noted(job) for job in found or ()))


def _note(kubectl: Kubectl, kind: str, name: str, cause: Cause) -> None:
    """Write the reason on the job, for whoever asks later, where there is one."""
    if cause.is_told:
        answer(*kubectl, *noting(kind, name, cause))


def _told(cause: Cause, whose: str) -> list[str]:
    """Lines that say why a run failed, and show its log. `whose`: the pod that the log is of."""
    return [
        f": {cause.sentence}",
        *([f"Fix: {cause.do}"] if cause.do else []),
        f"the log of {whose}, up to the line that says why:",
        *(cause.shown or ["no log"]),
    ]


def _without_failures(kubectl: Kubectl, selector: str, cause: Cause | None, *, failed: bool) -> str:
    """The error that a rank of a failed run wrote before the pods were gone, where there is one; else the last
    lines of the ranks, of which none has ended with an error."""
    if cause:
        return "\n".join(_told(cause, "that rank"))
    nothing = f"nothing: it has no pods{f'; {NO_LOG}' if failed else ''}"
    return f"; its ranks said last:\n{_last_lines(kubectl, selector, LINES) or nothing}"


def _nothing_done(kubeconfig: str, kind: str, namespace: str, name: str) -> str | None:
    """The checkpoint from which a run resumed that was complete without a step; None for others."""
    rank = f"{JOB_KINDS[kind].pod_label}={name},{JOB_KINDS[kind].rank_label}=0"
    with kubectl_of(kubeconfig, namespace) as kubectl:
        log = answer(*kubectl, "logs", f"--selector={rank}", "--tail=-1", "--ignore-errors")
    return nothing_done(log.splitlines())


def _last_lines(kubectl: Kubectl, selector: str, lines: int) -> str:
    return answer(
        *(*kubectl, "logs", f"--selector={selector}", f"--tail={lines}"),
        *("--prefix", "--ignore-errors"),
    )


def answer(*words: str) -> str:
    """Output of a command; empty where it fails, as the API server may be away for a moment."""
    try:
        return subprocess.run(
            words, capture_output=True, encoding="utf-8", errors="replace", timeout=60
        ).stdout
    except FileNotFoundError:
        raise RunFailed(
            "`wait` needs kubectl on this machine; install it, or set wait: none"
        ) from None
    except subprocess.TimeoutExpired:
        return ""


def silence(kubectl: Kubectl, kind: str) -> str:
    """The error of asking for objects of a kind, in words of kubectl; empty where the API server answers."""
    try:
        done = subprocess.run([*kubectl, "get", kind], capture_output=True, text=True, timeout=60)
    except subprocess.TimeoutExpired:
        return "kubectl has not ended after 60 seconds"
    return done.stderr if done.returncode else ""


def refusal(*words: str, text: str = "") -> str:
    """The error of a command that changes something, in its words; empty where it has none. `text`: its
    input."""
    done = subprocess.run(words, input=text, capture_output=True, text=True, timeout=600)
    return done.stderr.strip() if done.returncode else ""
