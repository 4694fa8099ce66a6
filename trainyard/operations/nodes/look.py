"""A program in a pod that somebody looks at: TensorBoard (`trainyard tensorboard`), JupyterLab (`trainyard notebook`).

The pod is that of a job of one node (shell_job.py). Its program runs for as long as this tool is connected
(trainyard/in_cluster/while_watched), so a tool that is killed leaves a pod for some minutes. Both programs listen
on the pod's own loopback: `kubectl port-forward` reaches them, and no other pod does.
"""

from __future__ import annotations

import argparse
import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field

from trainyard.catalog.logs.first_end import container_statuses
from trainyard.operations.nodes.one_pod import described, may, running
from trainyard.operations.nodes.shell_job import Shell, Wanted, pod_job, shell_name
from trainyard.operations.reach.consent import ask
from trainyard.operations.reach.kubectl import Kubectl, Login, Object, kubectl_with
from trainyard.operations.reach.place import Reached, reached
from trainyard.operations.reach.stack import Stack, read_stack
from trainyard.parts.programs import program_files
from trainyard.problems import Refused

NOTHING = "Nothing was started."
LOOPBACK = "127.0.0.1"
DOOR = 6007
"""Port of the pod's loopback at which this tool says that it is there."""
SAY_SECONDS, ALONE_SECONDS = 15.0, 300
"""Seconds between two bytes to the door, and seconds of silence after which the program ends."""
AGAIN_SECONDS = 1.0
PROGRAM = "while_watched"
ENDS_WITH_US = '"$@" & exec >&- 2>&-; read -r _; kill $!'
"""Shell that ends a command when this tool has ended, however it ended: its standard input is then closed."""


class Lost(RuntimeError):
    """The connection to the pod is gone, or there was none; the message says why, where kubectl did."""


@dataclass(frozen=True, kw_only=True)
class Look:
    """A program that somebody looks at."""

    title: str
    command: tuple[str, ...]
    port: int
    """Port of the pod's loopback where the command listens, and of this machine where that is free."""
    path: str = "/"
    """Path of the address that is printed."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Variables of the command that nobody else may read. They are in no spec and in no log."""
    says: tuple[str, ...] = ()
    """Lines about it, before the question."""


def words_of(look: Look, minutes: int) -> tuple[str, ...]:
    """The pod's command."""
    settings = {
        "command": look.command,
        "port": look.port,
        "door": DOOR,
        "seconds": minutes * 60,
        "alone_seconds": ALONE_SECONDS,
    }
    return ("python3", "-c", program_files(PROGRAM)[f"{PROGRAM}.py"], json.dumps(settings))


def opened(options: argparse.Namespace, look_of: Callable[[Stack], tuple[Look, Wanted]]) -> int:
    """The exit code of a word: price, ask, start, and print the address until ctrl-C. `look_of` raises
    ShellError."""
    try:
        stack = read_stack(options.stack)
        look, wanted = look_of(stack)
        shell = pod_job(stack, shell_name(options.word), wanted)
    except (FileNotFoundError, Refused, RuntimeError) as error:
        print(f"{error}\n{NOTHING}", file=sys.stderr)
        return 1
    try:
        with reached(options.stack, to=sys.stderr) as cluster:
            kubectl = kubectl_with(cluster.login, "--request-timeout=150s")
            _require_ports(kubectl, shell)
            print("\n".join([*look.says, *described(shell, options.minutes)]), file=sys.stderr)
            if code := ask("Start it?", yes=options.yes, otherwise=NOTHING):
                return code
            return _until_it_ends(cluster, kubectl, shell, look)
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return 1


def _require_ports(kubectl: Kubectl, shell: Shell) -> None:
    """RuntimeError before a node is paid for that nobody could reach."""
    if not may(kubectl, "portforward", shell):
        raise RuntimeError(
            f"you cannot connect to pods of namespace {shell.plan.namespace}: that needs `create` on"
            " pods/portforward, which deployers and members of a team have. Fix: let whoever runs the"
            f" environment add your role to members of the team\n{NOTHING}"
        )


def _until_it_ends(cluster: Reached, kubectl: Kubectl, shell: Shell, look: Look) -> int:
    """Start the pod and hold a connection to it; 0 where ctrl-C ends it, 1 where it ends before."""
    try:
        with running(kubectl, shell) as pod:
            print(held(cluster.login, kubectl, pod, look), file=sys.stderr)
            return 1
    except KeyboardInterrupt:
        return 0


def held(login: Login, kubectl: Kubectl, pod: Object, look: Look) -> str:
    """Hold a connection to the pod, a new one where one is lost; when its program has ended, how it ended."""
    local = _free(look.port)
    print(f"waits: for {look.title} to listen", file=sys.stderr, flush=True)

    def say() -> None:
        print(f"{look.title}: http://{LOOPBACK}:{local}{look.path}", flush=True)
        print("ctrl-C ends it and its pod", file=sys.stderr, flush=True)

    said = [say]
    while not (end := _end(kubectl, pod)):
        door = _free(0)
        try:
            with _forwarded(login, pod, {local: look.port, door: DOOR}):
                _held(door, look.variables, said)
        except (Lost, OSError) as error:
            if not said:
                print(f"the connection was lost, and is made again {error}", file=sys.stderr)
        time.sleep(AGAIN_SECONDS)
    return end


def _held(door: int, variables: Mapping[str, str], said: list[Callable[[], None]]) -> None:
    """Say at the door that this tool is there, until the door closes. Once, when the program listens, call what
    `said` has."""
    with closing(socket.create_connection((LOOPBACK, door), SAY_SECONDS)) as talk:
        talk.sendall(json.dumps(dict(variables)).encode() + b"\n")
        while True:
            try:
                heard = talk.recv(64)
            except TimeoutError:
                talk.sendall(b".")
                continue
            if not heard:
                raise Lost
            while said:
                said.pop()()


@contextmanager
def _forwarded(login: Login, pod: Object, ports: Mapping[int, int]) -> Iterator[None]:
    """Ports of this machine's loopback lead to ports of the pod's. Raises Lost."""
    meta = pod["metadata"]
    words = ["kubectl", "port-forward", f"pod/{meta['name']}", f"--namespace={meta['namespace']}"]
    words += [f"--address={LOOPBACK}", *(f"{here}:{there}" for here, there in ports.items())]
    with subprocess.Popen(
        ["/bin/sh", "-c", ENDS_WITH_US, "sh", *words],
        env=login(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as forwards:
        assert forwards.stdin and forwards.stdout
        try:
            for _ in ports:
                if not (line := forwards.stdout.readline()).startswith("Forwarding from"):
                    raise Lost(line.strip())
            yield
        finally:
            forwards.stdin.close()


def _end(kubectl: Kubectl, pod: Object) -> str:
    """The last line of the log of a pod that has ended, which says how; empty while it runs."""
    meta = pod["metadata"]
    where = f"--namespace={meta['namespace']}"
    try:
        now = json.loads(kubectl("get", "pod", meta["name"], where, "--output=json"))
        if any("running" in status.get("state", {}) for status in container_statuses(now)):
            return ""
        log = kubectl("logs", meta["name"], where, "--tail=5").strip()
    except RuntimeError as error:
        return f"its pod is gone: {error}" if "not found" in str(error) else ""
    return log or "its pod has ended and has written nothing"


def _free(port: int) -> int:
    """The port where nothing listens on this machine's loopback, else another one."""
    for wanted in (port, 0):
        with closing(socket.socket()) as one:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                one.bind((LOOPBACK, wanted))
            except OSError:
                continue
            return one.getsockname()[1]
    raise Lost("this machine has no free port")
