"""Drives the real Pulumi engine against the world, one command at a time.

Nothing of it touches a tracked file: the engine reads copies of the stack files in STATE/config,
which differ from the tracked ones by where charts come from. What the engine is told through its
environment is in variables().
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from development import signals, stack_copy
from rehearsal import environment, paths, processes, world
from trainyard.catalog.scalars import as_file
from trainyard.operations.reach.cluster import kubeconfig_in
from trainyard.operations.reach.made import made_jobs

CHECKOUT = Path(__file__).resolve().parent.parent
TICK_SECONDS = 0.2
CLUSTER = "aws:eks/cluster:Cluster"
SWITCHES = "PULUMI_K8S_"
"""Begin of variables that change how the Kubernetes plugin works, and lead to no cluster."""
LOCK_SECONDS = 60
"""Seconds that an engine that is still cancelling may take before we give up on it."""

Event = dict[str, Any]


class EngineError(RuntimeError):
    """Pulumi could not do what was asked; the message says where to look."""


@dataclass(frozen=True, kw_only=True)
class Stack:
    """One stack file and its copy."""

    name: str

    @property
    def tracked(self) -> Path:
        return CHECKOUT / f"Pulumi.{self.name}.yaml"

    @property
    def copy(self) -> Path:
        return environment.CONFIG / f"Pulumi.{self.name}.yaml"

    @property
    def chosen(self) -> str:
        """Arguments that follow a word of `make` about this stack."""
        return "" if self.name == "dev" else f" STACK={self.name}"

    @property
    def settings(self) -> dict[str, Any]:
        return _document(self.tracked if self.tracked.exists() else self.copy)["config"]

    @property
    def refers_to(self) -> str | None:
        """The environment stack of a team stack."""
        return self.section("trainyard:team").get("environment")

    def section(self, key: str) -> dict[str, Any]:
        """Settings of ours; none where they are something else, which the program refuses."""
        found = self.settings.get(key)
        return found if isinstance(found, dict) else {}

    @property
    def kubeconfig(self) -> Path:
        """Its kubeconfig, of its own: a word about a team leaves the shell of the environment alone."""
        return paths.STATE / f"kubeconfig-{self.name}"

    @property
    def log(self) -> Path:
        return paths.LOGS / f"pulumi-{self.name}.log"


def _document(file: Path) -> dict[str, Any]:
    """A stack file; EngineError where it is none. What its settings may say is for the program to
    judge."""
    try:
        found = stack_copy.read(file.read_text())
    except yaml.YAMLError as error:
        raise EngineError(f"{file.name} is not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(found, dict) or not isinstance(found.get("config"), dict):
        raise EngineError(
            f"{file.name} is no stack file: it wants a mapping `config` with settings in it"
        )
    return found


def find(name: str) -> Stack:
    """The stack of that name; EngineError where there is no file of it."""
    stack = Stack(name=name)
    if not stack.tracked.exists():
        known = ", ".join(
            sorted(file.name.split(".")[1] for file in CHECKOUT.glob("Pulumi.*.yaml"))
        )
        raise EngineError(f"{stack.tracked.name} does not exist: the stacks are {known}")
    return stack


# ---- what programs are told


def variables(stack: Stack) -> dict[str, str]:
    """The environment in which pulumi, kubectl, helm and aws work against the rehearsal, without
    PATH."""
    return {
        **environment.variables(_region(stack)),
        "KUBECONFIG": str(stack.kubeconfig),
        "PULUMI_STACK": stack.name,
        "PULUMI_OPTION_CONFIG_FILE": str(stack.copy),
    }


def _region(stack: Stack) -> str:
    return stack.settings.get("aws:region", environment.REGION)


def own_pulumi() -> Path:
    """The rehearsal's own programs, and a pulumi that takes the stack file as it is now and reads our
    copy: that of the stack which --stack names, else of the one that `make env` was asked for."""
    folder = environment.own_programs()
    fresh = "import sys; from development import engine; print(engine.fresh_copy(sys.argv[1:]))"
    program = shlex.quote(str(paths.BIN / "pulumi"))
    here = f"cd {shlex.quote(str(CHECKOUT))} && {environment.ours()}"
    environment.program(
        folder / "pulumi",
        f'copy=$({here} -c {shlex.quote(fresh)} "$@") || exit\n'
        f'PULUMI_OPTION_CONFIG_FILE=$copy exec {program} "$@"\n',
    )
    return folder


def fresh_copy(arguments: Sequence[str]) -> Path:
    """Our copy of the stack file that a pulumi with these arguments reads, made anew. SystemExit with the
    reason where that is no stack file. Without it `pulumi up --stack team-vision` in the shell of another stack would
    make that one's objects a second time."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--stack", "-s", default=os.environ["PULUMI_STACK"])
    named = parser.parse_known_args([*arguments])[0].stack
    stack = Stack(name=named.rpartition("/")[2])  # <organization>/<project>/<stack>
    try:
        refresh_copy(stack)
    except EngineError as error:
        raise SystemExit(str(error)) from None
    return stack.copy


def complete(stack: Stack) -> dict[str, str]:
    """Everything a program that works against the rehearsal gets, with the caller's switches of the Kubernetes
    plugin, such as PULUMI_K8S_ENABLE_PATCH_FORCE."""
    switches = {name: said for name, said in os.environ.items() if name.startswith(SWITCHES)}
    return environment.complete(variables(stack)) | switches | {"PULUMI_DEBUG_COMMANDS": "true"}


# ---- before a command


def prepare(stack: Stack, report: Callable[[str], None], *, only_preview: bool = False) -> None:
    """Whatever an earlier run left: a backend with the stack, its copied file, plugins, no stale
    lock.

    A preview of a team does without its environment, but for a stack of that name, which may be
    empty.
    """
    if stack.refers_to and Stack(name=stack.refers_to) not in stacks():
        if only_preview:
            prepare(find(stack.refers_to), report)
            return prepare(stack, report)
        raise EngineError(
            f"stack {stack.name} stands on {stack.refers_to}, which is not up: "
            f"`make up STACK={stack.refers_to}` (`trainyard check {stack.name}` needs nothing)"
        )
    environment.prepare()
    shutil.copyfile(CHECKOUT / "Pulumi.yaml", environment.CONFIG / "Pulumi.yaml")
    refresh_copy(stack)
    if not (paths.BACKEND / f".pulumi/stacks/{_project()}/{stack.name}.json").exists():
        # in CONFIG: `stack init` writes its salt into the stack file beside Pulumi.yaml, whatever
        # --config-file says
        call(stack, "stack", "init", stack.name, "--no-select", folder=environment.CONFIG)
    release_lock(stack, report)


def refresh_copy(stack: Stack) -> None:
    """The tracked stack file with our charts merged in, and the salt that the engine keeps
    there."""
    if not stack.tracked.exists():
        return
    profile = _document(stack.tracked)["config"].get("aws:profile", environment.PROFILE)
    before = stack_copy.read(stack.copy.read_text()) if stack.copy.exists() else {}
    salt = {key: before[key] for key in ("encryptionsalt",) if key in before}
    text = stack_copy.copied(stack.tracked.read_text(), str(paths.CHARTS), salt)
    if stack_copy.read(text) != before:
        stack.copy.write_text(text)
    environment.write_profile(profile)


def release_lock(stack: Stack, report: Callable[[str], None]) -> None:
    """Wait for an engine that is still at work on the stack; take the lock of a dead one away."""
    owners = _lock_owners(stack)
    if living := [pid for pid in owners if _is_engine(pid)]:
        report(f"waiting for the engine of an earlier run (process {living[0]}) to finish")
        if not processes.wait(lambda: not any(map(_is_engine, living)), LOCK_SECONDS):
            raise EngineError(
                f"process {living[0]} still works on stack {stack.name}: wait for it, or end it"
                f" with `kill {living[0]}`"
            )
    world.end_orphans()
    if _lock_owners(stack):
        call(stack, "cancel", "--yes")
        report(
            f"the lock of stack {stack.name} was taken away: the engine that had left it was killed (process"
            f" {owners[0]})"
        )


def _lock_owners(stack: Stack) -> list[int]:
    locks = paths.BACKEND / f".pulumi/locks/organization/{_project()}/{stack.name}"
    return [json.loads(file.read_text() or '{"pid": 0}')["pid"] for file in locks.glob("*.json")]


def _is_engine(pid: int) -> bool:
    return processes.started(pid) is not None and processes.look(pid).name == "pulumi"


def _project() -> str:
    return yaml.safe_load((CHECKOUT / "Pulumi.yaml").read_text())["name"]


# ---- one command


def call(stack: Stack, *words: str, folder: Path = CHECKOUT) -> str:
    """A short command's output; EngineError with its complaint where it fails."""
    done = subprocess.run(
        [paths.BIN / "pulumi", *words, "--non-interactive"],
        cwd=folder,
        env=complete(stack),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise EngineError(f"pulumi {' '.join(words)}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def update(
    stack: Stack, *words: str, events: Callable[[list[Event]], None], notice: Callable[[str], None]
) -> int:
    """`pulumi up` or `destroy`, its events handed over as they come; the exit status.

    The first ctrl-C asks the engine to finish what it is doing, the second kills it;
    KeyboardInterrupt when it is gone.
    """
    event_log = paths.STATE / "events.json"
    event_log.write_text("")
    command = [
        paths.BIN / "pulumi",
        *words,
        "--non-interactive",
        "--color",
        "never",
        "--event-log",
        event_log,
    ]
    with stack.log.open("w") as log:
        # a session of its own: the terminal's ctrl-C is ours to hand on, once
        process = subprocess.Popen(
            command,
            cwd=CHECKOUT,
            env=complete(stack),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            preexec_fn=signals.cancel_with_parent,
        )
    (paths.STATE / "engine").write_text(str(process.pid))
    with signals.go_to(process, notice) as received:
        status = _follow(process, event_log, events)
    world.end_orphans()
    if received:
        raise KeyboardInterrupt
    return status


def _follow(
    process: subprocess.Popen[bytes], event_log: Path, events: Callable[[list[Event]], None]
) -> int:
    """Hand over what is appended, line by line, until the engine has ended; its exit status."""
    rest = ""
    with event_log.open() as stream:
        while True:
            status = process.poll()
            *lines, rest = (rest + stream.read()).split("\n")
            events([json.loads(line) for line in lines if line])
            if status is not None:
                return status
            time.sleep(TICK_SECONDS)


# ---- what a stack holds


def stacks() -> list[Stack]:
    """The stacks of the backend, those that refer to another one first: the order to destroy them
    in."""
    files = (paths.BACKEND / f".pulumi/stacks/{_project()}").glob("*.json")
    return sorted(
        (Stack(name=file.stem) for file in files),
        key=lambda stack: (stack.refers_to is None, stack.name),
    )


def resources(stack: Stack) -> list[dict[str, Any]]:
    """Resources that the engine believes to exist."""
    return _deployment(stack).get("resources") or []


def is_in_a_cluster(stack: Stack) -> bool:
    """True where a cluster is in the state, or objects in one. The outputs of a stack outlive its destroy where data
    is kept."""
    types = [it.get("type", "") for it in resources(stack)]
    return any(it == CLUSTER or it.startswith("kubernetes:") for it in types)


def with_the_cluster(stack: Stack) -> Stack | None:
    """Another stack whose cluster the account has, where this one would make a second: the rehearsal has room for
    one."""
    wanted = stack.section("trainyard:environment")
    cluster = wanted.get("cluster")
    if not wanted or (isinstance(cluster, dict) and cluster.get("name")):
        return None
    others = (each for each in stacks() if each.name != stack.name and each.refers_to is None)
    return next(
        (each for each in others if any(it.get("type") == CLUSTER for it in resources(each))), None
    )


def deployed_jobs(stack: Stack) -> dict[str, dict[str, str]]:
    """Entry of each job in the state → its kind, namespace and name; none where there is no state yet."""
    try:
        return made_jobs({"deployment": {"resources": resources(stack)}})
    except (EngineError, FileNotFoundError):
        return {}


def interrupted(stack: Stack) -> bool:
    """True where an engine was killed in operations whose end the state does not know."""
    return bool(_deployment(stack).get("pending_operations"))


def _deployment(stack: Stack) -> dict[str, Any]:
    return json.loads(call(stack, "stack", "export", "--stack", stack.name))["deployment"]


def outputs(stack: Stack) -> dict[str, Any]:
    """Outputs of the program."""
    return json.loads(
        call(stack, "stack", "output", "--json", "--show-secrets", "--stack", stack.name)
    )


def write_kubeconfig(stack: Stack) -> Path:
    """The stack's own kubeconfig, with what its credential plugin needs to ask the rehearsal's
    account. It is there as soon as the cluster is, while the first update still runs."""
    exported = outputs(stack).get("kubeconfig") or kubeconfig_in({"deployment": _deployment(stack)})
    if not exported:
        raise EngineError(f"stack {stack.name} has no cluster yet: `make up STACK={stack.name}`")
    config = yaml.safe_load(exported) if isinstance(exported, str) else exported
    for user in config["users"]:
        user["user"]["exec"] |= {
            "command": str(environment.VENV / "aws"),
            "env": [
                {"name": name, "value": value}
                for name, value in environment.account_variables(_region(stack)).items()
            ],
        }
    stack.kubeconfig.touch(mode=0o600)
    stack.kubeconfig.write_text(as_file(config))
    return stack.kubeconfig
