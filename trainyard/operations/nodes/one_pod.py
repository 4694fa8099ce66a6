"""A job of one pod, as `trainyard shell`, `tensorboard` and `notebook` use it: described, sent, waited for, and deleted
at the end whatever happens."""

from __future__ import annotations

import json
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from trainyard.catalog.job_kinds import ENDED, JOB_KINDS
from trainyard.catalog.logs.first_end import container_statuses
from trainyard.operations.nodes.shell_job import Shell
from trainyard.operations.reach.kubectl import FORBIDDEN, NOT_FOUND, Kubectl, Object
from trainyard.operations.reach.place import title
from trainyard.operations.reach.snapshot import condition_of, last_condition
from trainyard.operations.recovery.drain import POLL_SECONDS, delete_once
from trainyard.reports.costs.amounts import JobCost

AWAY_SECONDS = 300.0
"""Seconds for which a cluster that does not answer is asked again: a laptop that wakes up has its network later."""


class Ended(RuntimeError):
    """The job ended before its pod ran; the message says how."""


class Left(RuntimeError):
    """The job could not be deleted; the message says how to end it."""


def described(shell: Shell, minutes: int) -> list[str]:
    """Lines about what will be started, and its cost."""
    what = f"{shell.gpus} GPU{'s' * (shell.gpus != 1)}" if shell.gpus else "no GPU"
    return [
        f"{shell.plan.kind} {shell.plan.namespace}/{shell.plan.name}: a pod with {what} on pool"
        f" {shell.pool} ({', '.join(shell.instance_types)})",
        f"  image {shell.image}",
        f"  mounts {', '.join(shell.places) or 'no store'}",
        f"  ends after {minutes} minutes, or when you leave",
        f"  {_cost(shell.price)}",
    ]


def may(kubectl: Kubectl, subresource: str, shell: Shell) -> bool:
    """True where whoever asks may create a subresource of pods, such as exec, in the namespace of the pod."""
    what, where = f"--subresource={subresource}", f"--namespace={shell.plan.namespace}"
    try:
        return kubectl("auth", "can-i", "create", "pods", what, where).strip() == "yes"
    except RuntimeError:  # kubectl's exit code for "no" is 1
        return False


def _cost(price: JobCost) -> str:
    """Price of an hour, in words."""
    lacks = f", without {', '.join(price.missing)}" if price.missing else ""
    if price.prepaid:
        return "its node is paid already: a Capacity Block"
    known = price.most_usd_per_hour if price.at_most else price.at_least_usd_per_hour
    if known is None:
        return f"no price is known{lacks}"
    return (
        f"{'at most ' if price.at_most else ''}{known:,.2f} USD an hour{lacks}, where a node is launched for it;"
        " nothing more on a node that runs anyway"
    )


@contextmanager
def running(kubectl: Kubectl, shell: Shell) -> Iterator[Object]:
    """The pod of a job that is sent here, when its container runs or has run. The job is deleted at the end of the
    block, also by ctrl-C, by SIGTERM and by a terminal that closes. Raises Ended and Left."""
    began = time.monotonic()
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file, _no_way_around():
        file.write(json.dumps(shell.body))
        file.flush()
        try:
            kubectl("create", f"--filename={file.name}")
            pod = _started(kubectl, shell)
            print(_place(kubectl, pod), file=sys.stderr, flush=True)
            yield pod
        finally:
            before = sys.exc_info()[1]
            left = _delete(kubectl, shell)
            _say(f"it took {(time.monotonic() - began) / 60:.0f} minutes")
            if left:
                raise Left(f"{before}\n{left}" if isinstance(before, RuntimeError) else left)


def _started(kubectl: Kubectl, shell: Shell) -> Object:
    """The pod, when its container runs or has run. Print what it waits for. Raises Ended, and RuntimeError where the
    cluster stays away."""
    said, answered = "", time.monotonic()
    while True:
        try:
            state, pods = _seen(kubectl, shell)
        except RuntimeError as error:
            lasting = NOT_FOUND in str(error) or FORBIDDEN in str(error)
            if lasting or time.monotonic() - answered > AWAY_SECONDS:
                raise
            why = f"for an answer of the cluster: {error}"
        else:
            if pod := next(filter(_has_run, pods), None):
                return pod
            if state["type"] in ENDED:
                raise Ended(f"the job ended: {state.get('reason')}: {state.get('message')}")
            why, answered = waits_for(state, pods), time.monotonic()
        if why != said:
            print(f"waits: {why}", file=sys.stderr, flush=True)
        said = why
        time.sleep(POLL_SECONDS)


def _seen(kubectl: Kubectl, shell: Shell) -> tuple[Object, list[Object]]:
    """The last condition of the job, and its pods."""
    where = (f"--namespace={shell.plan.namespace}", "--output=json")
    job = json.loads(kubectl("get", shell.plan.kind.lower(), shell.plan.name, *where))
    selector = f"--selector={JOB_KINDS[shell.plan.kind].pod_label}={shell.plan.name}"
    return last_condition(job), json.loads(kubectl("get", "pods", selector, *where))["items"]


def _has_run(pod: Object) -> bool:
    """True where a container of the pod runs or has run."""
    statuses = container_statuses(pod)
    states = [each.get(key, {}) for each in statuses for key in ("state", "lastState")]
    return any("running" in state or "terminated" in state for state in states)


def waits_for(state: Object, pods: list[Object]) -> str:
    """Reason why no container runs yet. `state`: the job's last condition."""
    for pod in pods:
        for status in container_statuses(pod):
            waiting = status.get("state", {}).get("waiting", {})
            if waiting.get("reason") not in (None, "ContainerCreating", "PodInitializing"):
                return f"{waiting['reason']}: {waiting.get('message', '')}".rstrip(": ")
        scheduled = condition_of(pod, "PodScheduled")
        if scheduled.get("status") == "False":
            return f"for a node: {scheduled.get('message', '')}".rstrip(": ")
        return "for its image and its mounts"
    if state["type"] == "Suspended":
        return f"in its queue: {state.get('message', '')}".rstrip(": ")
    return "for its pod"


def _place(kubectl: Kubectl, pod: Object) -> str:
    """Node, instance type and zone of the pod, in words. A team that the environment lists cannot read nodes."""
    name = pod["spec"].get("nodeName", "")
    try:
        labels = json.loads(kubectl("get", "node", name, "--output=json"))["metadata"]["labels"]
    except RuntimeError:
        labels = {}
    kind = labels.get("node.kubernetes.io/instance-type", "")
    zone = labels.get("topology.kubernetes.io/zone", "")
    return " ".join(filter(None, ["on node", name, kind, zone and f"in {zone}"]))


def _delete(kubectl: Kubectl, shell: Shell) -> str:
    """Delete the job with its pod, with more tries where that fails. A line that says how to end a job that may be
    there still, else empty. Only ctrl-C between two tries gives up."""
    job, said = title(shell.body), ""
    until = time.monotonic() + AWAY_SECONDS
    with _handled(signal.SIG_IGN, signal.SIGTERM, signal.SIGHUP), suppress(KeyboardInterrupt):
        _say(f"deletes {job}")
        while failed := _try_to_delete(kubectl, shell):
            over = time.monotonic() > until or FORBIDDEN in failed
            more = (
                "" if over else f"; tries again, for {AWAY_SECONDS / 60:g} minutes, or until ctrl-C"
            )
            if (line := f"could not delete {job}: {failed}{more}") != said:
                _say(said := line)
            if over:
                break
            time.sleep(POLL_SECONDS)
        else:
            return ""
    where = f"{shell.plan.namespace}/{shell.plan.name}"
    return (
        f"{job} may still be there, and hold its node until its time is over."
        f" Fix: trainyard stop {where} --stack {shell.stack}"
    )


def _try_to_delete(kubectl: Kubectl, shell: Shell) -> str:
    """The reason why the job is not deleted; empty where it is gone."""
    with _handled(signal.SIG_IGN, signal.SIGINT):
        try:
            delete_once(kubectl, shell.plan.kind.lower(), shell.body, "--ignore-not-found")
        except RuntimeError as error:
            return str(error)
    return ""


def _say(line: str) -> None:
    """A line for a person. Standard output is the command's alone, and a terminal that has closed takes none."""
    with suppress(OSError):
        print(line, file=sys.stderr, flush=True)


@contextmanager
def _handled(handler: Any, *kinds: signal.Signals) -> Iterator[None]:
    """Signals have this handler in the block. Programs that it starts ignore what it ignores."""
    before = {kind: signal.signal(kind, handler) for kind in kinds}
    try:
        yield
    finally:
        for kind, former in before.items():
            signal.signal(kind, former)


@contextmanager
def _no_way_around() -> Iterator[None]:
    """SIGTERM and a terminal that closes end the block as ctrl-C does, so that the job is deleted. What is ignored,
    as nohup ignores a terminal that closes, stays so."""

    def leave(*_: Any) -> None:
        raise KeyboardInterrupt

    kinds = (signal.SIGTERM, signal.SIGHUP)
    with _handled(leave, *(kind for kind in kinds if signal.getsignal(kind) != signal.SIG_IGN)):
        yield
