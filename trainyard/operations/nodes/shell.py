"""`trainyard shell STACK [--pool POOL] [--run COMMAND]`: a terminal, or one command, in a pod on a node of a
pool, which is deleted at the end.

The pod is that of a job of one node: it waits in the team's queue, counts against its quotas and mounts
its stores (shell_job.py). It ends by itself after --minutes, also where this program cannot delete it.
"""

from __future__ import annotations

import argparse
import subprocess
import sys

from trainyard.operations.nodes.command_output import followed
from trainyard.operations.nodes.one_pod import described, may, running
from trainyard.operations.nodes.shell_job import Shell, shell_job, shell_name
from trainyard.operations.reach.consent import ask
from trainyard.operations.reach.kubectl import Kubectl, Object, kubectl_with
from trainyard.operations.reach.place import Reached, reached
from trainyard.operations.reach.stack import read_stack
from trainyard.problems import Refused

NOTHING = "Nothing was started."
TERMINAL = ("/bin/sh", "-c", "command -v bash >/dev/null && exec bash || exec sh")


def main(options: argparse.Namespace) -> int:
    """Return the exit code of the command or the terminal; 1 where the pod does not start; 2 where
    there is no terminal to ask."""
    try:
        shell = shell_job(
            read_stack(options.stack),
            shell_name("shell"),
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
            with running(kubectl, shell) as pod:
                return used(cluster, kubectl, pod, options.run)
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return 1


def _require_terminal(kubectl: Kubectl, shell: Shell, stack: str) -> None:
    """RuntimeError before a node is paid for that nobody could use."""
    if not sys.stdin.isatty():
        raise RuntimeError(
            f"there is no terminal here. Fix: --run a command, whose output is printed\n{NOTHING}"
        )
    if not may(kubectl, "exec", shell):
        raise RuntimeError(
            f"you cannot open a terminal in pods of namespace {shell.plan.namespace}: a team that the"
            f' environment lists has no right to. Fix: trainyard shell {stack} --run "nvidia-smi"'
            f"\n{NOTHING}"
        )


def used(cluster: Reached, kubectl: Kubectl, pod: Object, command: str | None) -> int:
    """The terminal, or the output of the command; the exit code."""
    sys.stdout.flush()
    if command is not None:
        return followed(cluster.login, kubectl, pod)
    name, where = pod["metadata"]["name"], f"--namespace={pod['metadata']['namespace']}"
    container = pod["spec"]["containers"][0]["name"]
    words = ["kubectl", "exec", "-it", name, where, f"--container={container}", "--"]
    return subprocess.run([*words, *TERMINAL], env=cluster.login()).returncode
