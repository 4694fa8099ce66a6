"""`trainyard shell STACK [--pool POOL] [--run COMMAND]`: a terminal, or one command, in a pod on a node of a
pool, which is deleted at the end.

The pod is that of a job of one node: it waits in the team's queue, counts against its quotas and mounts
its stores (shell_job.py). It ends by itself after --minutes, also where this program cannot delete it.
"""

from __future__ import annotations

import argparse
import json
import secrets
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any

from trainyard.catalog.job_kinds import ENDED, JOB_KINDS
from trainyard.catalog.logs.waiting import container_statuses
from trainyard.operations.nodes.shell_job import ENDED as END
from trainyard.operations.nodes.shell_job import Shell, shell_job
from trainyard.operations.reach.consent import ask
from trainyard.operations.reach.kubectl import Kubectl, Object, kubectl_with
from trainyard.operations.reach.place import Reached, reached
from trainyard.operations.reach.snapshot import condition_of, last_condition
from trainyard.operations.reach.stack import read_stack
from trainyard.operations.recovery.drain import POLL_SECONDS, delete
from trainyard.problems import Refused
from trainyard.reports.amounts import JobCost

NOTHING = "Nothing was started."
TERMINAL = ("/bin/sh", "-c", "command -v bash >/dev/null && exec bash || exec sh")


class Ended(RuntimeError):
    """The job ended before its pod ran; the message says how."""


def main(options: argparse.Namespace) -> int:
    """Return the exit code of the command or the terminal; 1 where the pod does not start; 2 where
    there is no terminal to ask."""
    try:
        shell = shell_job(
            read_stack(options.stack),
            f"shell-{secrets.token_hex(3)}",
            pool=options.pool,
            image=options.image,
            gpus=options.gpus,
            minutes=options.minutes,
            command=options.run,
        )
    except (FileNotFoundError, Refused, RuntimeError) as error:
        print(f"{error}\n{NOTHING}", file=sys.stderr)
        return 1
    try:
        with reached(options.stack, to=sys.stderr) as cluster:
            kubectl = kubectl_with(cluster.login, "--request-timeout=150s")
            if options.run is None:
                _require_terminal(kubectl, shell, options.stack)
            print("\n".join(described(shell, options.minutes)), file=sys.stderr)
            if code := ask("Start it?", yes=options.yes, otherwise=NOTHING):
                return code
            return _session(cluster, kubectl, shell, options.run)
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return 1


def _require_terminal(kubectl: Kubectl, shell: Shell, stack: str) -> None:
    """RuntimeError before a node is paid for that nobody could use."""
    if not sys.stdin.isatty():
        raise RuntimeError(
            f"there is no terminal here. Fix: --run a command, whose output is printed\n{NOTHING}"
        )
    where = f"--namespace={shell.plan.namespace}"
    try:
        allowed = kubectl("auth", "can-i", "create", "pods", "--subresource=exec", where).strip()
    except RuntimeError as error:  # kubectl's exit code for "no" is 1
        allowed = str(error).splitlines()[-1]
    if allowed != "yes":
        raise RuntimeError(
            f"you cannot open a terminal in pods of namespace {shell.plan.namespace}: a team that the"
            f' environment lists has no right to. Fix: trainyard shell {stack} --run "nvidia-smi"'
            f"\n{NOTHING}"
        )


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


def _session(cluster: Reached, kubectl: Kubectl, shell: Shell, command: str | None) -> int:
    """Send the job, wait for its pod, use it, and delete the job whatever happens."""
    began = time.monotonic()
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file, _no_way_around():
        file.write(json.dumps(shell.body))
        file.flush()
        try:
            kubectl("create", f"--filename={file.name}")
            pod = _started(kubectl, shell)
            print(_place(kubectl, pod), file=sys.stderr, flush=True)
            return _used(cluster, pod, command)
        except Ended as error:
            print(error, file=sys.stderr)
            return 1
        finally:
            _delete(kubectl, shell)
            print(f"it took {(time.monotonic() - began) / 60:.0f} minutes", file=sys.stderr)


def _used(cluster: Reached, pod: Object, command: str | None) -> int:
    """The terminal, or the output of the command; the exit code."""
    name, where = pod["metadata"]["name"], f"--namespace={pod['metadata']['namespace']}"
    container = pod["spec"]["containers"][0]["name"]
    sys.stdout.flush()
    if command is None:
        words = ["kubectl", "exec", "-it", name, where, f"--container={container}", "--"]
        return subprocess.run([*words, *TERMINAL], env=cluster.login()).returncode
    words = ["kubectl", "logs", "--follow", name, where, f"--container={container}"]
    code = None
    with subprocess.Popen(words, env=cluster.login(), stdout=subprocess.PIPE, text=True) as log:
        assert log.stdout
        for line in log.stdout:
            if line.startswith(END):
                code = int(line.removeprefix(END).rstrip("]\n"))
            else:
                print(line, end="", flush=True)
    if code is None:
        print("the pod ended before the command did, or could not start it", file=sys.stderr)
        return 1
    return code


def _started(kubectl: Kubectl, shell: Shell) -> Object:
    """The pod, when its container runs or has run. Print what it waits for. Raises Ended."""
    kind = JOB_KINDS[shell.plan.kind]
    where = (f"--namespace={shell.plan.namespace}", "--output=json")
    said = ""
    while True:
        job = json.loads(kubectl("get", shell.plan.kind.lower(), shell.plan.name, *where))
        selector = f"--selector={kind.pod_label}={shell.plan.name}"
        pods = json.loads(kubectl("get", "pods", selector, *where))["items"]
        for pod in pods:
            statuses = container_statuses(pod)
            states = [each.get(key, {}) for each in statuses for key in ("state", "lastState")]
            if any("running" in state or "terminated" in state for state in states):
                return pod
        state = last_condition(job)
        if state["type"] in ENDED:
            raise Ended(f"the job ended: {state.get('reason')}: {state.get('message')}")
        if (why := waits_for(state, pods)) != said:
            said = why
            print(f"waits: {why}", file=sys.stderr, flush=True)
        time.sleep(POLL_SECONDS)


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


def _delete(kubectl: Kubectl, shell: Shell) -> None:
    """The job with its pod. Standard output is the command's alone."""
    with redirect_stdout(sys.stderr):
        delete(kubectl, shell.plan.kind.lower(), shell.body)


@contextmanager
def _no_way_around() -> Iterator[None]:
    """SIGTERM and a terminal that closes end the block as ctrl-C does, so that the job is deleted."""

    def leave(*_: Any) -> None:
        raise KeyboardInterrupt

    before = {kind: signal.signal(kind, leave) for kind in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for kind, handler in before.items():
            signal.signal(kind, handler)
