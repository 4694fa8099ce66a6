"""python -m rehearsal build|up|down|status|preview|env|kubeconfig|logs|fault: the commands of `make`.

A command is a function below. What it uses is in world.py (processes), engine.py (Pulumi)
and progress.py (what it prints).
"""

from __future__ import annotations

import argparse
import fcntl
import json
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib import metadata
from typing import Any, NamedTuple

import command_line
from catalog.job_kinds import JOB_KINDS, SUCCEEDED, outcome
from catalog.prices import lustre_per_month
from operations.kubectl import Environment, logged_in
from rehearsal import charts, engine, paths, plane, progress, toolchain, world
from rehearsal.engine import EngineError, Stack
from rehearsal.kube import Api, ApiError, Object
from rehearsal.progress import Display, Stages
from rehearsal.toolchain import genuine
from rehearsal.toolchain.programs import wanted

REFUSED, FAILED = 2, 1
POLL_SECONDS = 1
GONE = ("deleted", "terminated")
"""States in which AWS still lists something for a while that costs nothing and blocks nothing."""


# ---- up
# --------------------------------------------------------------------------------------------------


def up(options: argparse.Namespace) -> int:
    """Create or update the stack, and wait until its jobs have finished."""
    stack, display = engine.find(options.stack), Display()
    if not _open_world(stack, display, speed=options.speed):
        return REFUSED
    engine.prepare(stack, display.reporter("engine"))
    _repair(stack, display)
    stages = Stages(display)
    if status := _update(stack, stages, "up"):
        return _failed(stack, stages, status)
    display.line("engine", f"{stages.changes()} changes")
    return _finish(stack, stages, options.wait)


def _open_world(stack: Stack, display: Display, **how: Any) -> bool:
    if problem := world.obstacle():
        print(problem, file=sys.stderr)
        return False
    _build(display, wanted(stack.section("trainyard:environment")))
    with display.waiting("world", "starts"):
        world_ = world.start(report=display.reporter("world"), **how)
    display.line(
        "world", f"AWS is at {world_.account_url}, the API server will be at {world_.api_url}"
    )
    return True


def _build(display: Display, programs: Iterable[str] = toolchain.DEFAULT) -> None:
    toolchain.ensure(programs=programs, report=display.reporter("toolchain"))
    genuine.download(metadata.version("pulumi-kubernetes"), display.reporter("toolchain"))
    charts.ensure(display.reporter("charts"))


def _repair(stack: Stack, display: Display) -> None:
    """Import the objects of a killed update, before the next update creates them twice."""
    doing = "compares the state of the stack with the account"
    if _operate(stack, display, "repair", doing, stack.name, "--yes"):
        display.line("repair", "could not compare the state of the stack with the account")


def _operate(stack: Stack, display: Display, operation: str, doing: str, *words: str) -> int:
    """Run a command of operations/ on the stack and print its output; its exit status."""
    log = paths.LOGS / f"{operation}.log"
    with display.waiting(operation, doing), log.open("w") as output:
        status = subprocess.call(
            [sys.executable, "-m", f"operations.{operation}", *words],
            cwd=paths.CHECKOUT,
            env=engine.environment(stack),
            stdout=output,
            stderr=output,
        )
    for line in filter(None, log.read_text().splitlines()):
        display.line(operation, line)
    return status


def _update(stack: Stack, stages: Stages, *words: str) -> int:
    return engine.update(
        stack,
        *words,
        "--yes",
        "--skip-preview",
        events=stages.consume,
        notice=stages.display.reporter("engine"),
    )


def _failed(stack: Stack, stages: Stages, status: int) -> int:
    """Print the errors, the path of the log, and the commands to type next."""
    causes = [f"  {resource}: {message}" for resource, message in stages.errors]
    end_of_log = [
        f"  {line}"
        for line in (
            *stack.log.read_text().splitlines()[-3:],
            f"pulumi ended with exit code {status}",
        )
    ]
    stages.display.section("failed", causes or end_of_log)
    refused = any("in the stack file" in message for _, message in stages.errors)
    word, purpose = (
        ("check", "list all errors of the stack file, in a second")
        if refused
        else ("status", "print the cause, if the cluster knows it")
    )
    stages.display.section(
        "next",
        progress.suggestions(
            [
                (f"make {word}{stack.chosen}", purpose),
                (f"less {stack.log}", "read the whole output of Pulumi"),
                (f"make up{stack.chosen}", "continue from here"),
                ("make down", "delete everything"),
            ]
        ),
    )
    return FAILED


def _finish(stack: Stack, stages: Stages, patience: float) -> int:
    """Wait for the jobs, then print nodes, jobs and stages."""
    engine.write_kubeconfig(stack)
    jobs = [
        Run(**{field: job[field] for field in Run._fields})
        for job in (engine.outputs(stack).get("jobs") or {}).values()
    ]
    began = stages.display.now()
    ends = _follow_jobs(plane.admin(paths.world()), jobs, stages.display, patience)
    _summary(stack, stages, jobs, stages.display.now() - began)
    for job, end in zip(jobs, ends, strict=True):
        if end not in SUCCEEDED:
            print(
                f"\njob {job.namespace}/{job.name} is {end or 'not finished'}: `make"
                f" status{stack.chosen}` prints the cause"
            )
    return 0 if set(ends) <= set(SUCCEEDED) else FAILED


class Run(NamedTuple):
    """A job of the stack, from its outputs."""

    kind: str
    namespace: str
    name: str

    @property
    def selector(self) -> str:
        """Selects its pods."""
        return f"{JOB_KINDS[self.kind].pod_label}={self.name}"


def _follow_jobs(api: Api, jobs: list[Run], display: Display, patience: float) -> list[str | None]:
    """How the jobs ended, once all have ended or no pod has changed for `patience` seconds. None: the
    job has not ended."""
    printed, changed = "", display.now()
    while True:
        ends = [_end(api, job) for job in jobs]
        going = [job for job, end in zip(jobs, ends, strict=True) if not end]
        state = "; ".join(
            f"{job.namespace}/{job.name}: {progress.phases(_pods(api, job))}" for job in going
        )
        unchanged = display.now() - changed
        if not going or (state == printed and unchanged > patience):
            return ends
        if state != printed:
            display.line("jobs", state)
            printed, changed = state, display.now()
        elif display.silent_too_long():
            display.line("jobs", f"{state}, for {progress.clock(unchanged)}")
        time.sleep(POLL_SECONDS)


def _end(api: Api, job: Run) -> str | None:
    path = f"/apis/{JOB_KINDS[job.kind].api_version}/namespaces/{job.namespace}/{job.kind.lower()}s/{job.name}"
    return outcome(api.request("GET", path))


def _pods(api: Api, job: Run) -> list[Object]:
    selector = job.selector.replace("=", "%3D")
    return api.request("GET", f"/api/v1/namespaces/{job.namespace}/pods?labelSelector={selector}")[
        "items"
    ]


def _summary(stack: Stack, stages: Stages, jobs: list[Run], waited: float) -> None:
    display = stages.display
    with logged_in(engine.environment(stack)) as login:
        environment = login()
        display.section("nodes", _kubectl(environment, progress.NODES, "nodes"))
        for job in jobs:
            display.section(
                f"job {job.namespace}/{job.name}",
                [
                    *_kubectl(
                        environment, progress.JOB, job.kind.lower(), job.name, "-n", job.namespace
                    ),
                    *_kubectl(
                        environment, progress.PODS, "pods", "-n", job.namespace, "-l", job.selector
                    ),
                ],
            )
    if stages.stages:
        display.section("stages", progress.stage_table(stages.stages, waited))
    facts = {"speed": paths.world().speed, "state": paths.FILE_SYSTEMS}
    display.section("simulated", [f"  {line.format(**facts)}" for line in progress.SIMULATED])
    logs = [
        (
            (
                f"kubectl --kubeconfig $(make kubeconfig{stack.chosen}) logs -n {job.namespace} -l"
                f" {job.selector}"
            ),
            "print the logs of the ranks",
        )
        for job in jobs
    ]
    display.section(
        "next",
        progress.suggestions(
            [
                (
                    f"make status{stack.chosen}",
                    "print nodes and jobs, and what keeps a job from running",
                ),
                *logs,
                (
                    f'eval "$(make env{stack.chosen})"',
                    "use plain pulumi, kubectl, helm and aws in this shell",
                ),
                ("make down", "delete everything"),
            ]
        ),
    )


def _kubectl(environment: Environment, columns: str, *words: str) -> list[str]:
    done = subprocess.run(
        ["kubectl", "get", *words, f"--output=custom-columns={columns}"],
        capture_output=True,
        text=True,
        env=environment,
    )
    return [f"  {line}" for line in (done.stdout or done.stderr).splitlines()]


# ---- down
# --------------------------------------------------------------------------------------------------


def down(options: argparse.Namespace) -> int:
    """Destroy the stacks, compare the account with them, and end the world."""
    display = Display()
    if options.force or world.lost() or not world.running():
        print(
            "no world runs"
            if not world.census()
            else "ends the world without destroying its stacks"
        )
        world.stop()
        return 0
    kept: list[Object] = []
    for stack in engine.stacks():
        if options.stack in (None, stack.name, stack.refers_to):
            if status := _destroy(stack, display):
                return status
            kept += [r for r in engine.resources(stack) if r.get("custom")]
    if options.stack and any(
        engine.resources(stack) for stack in engine.stacks() if stack.name != options.stack
    ):
        display.line("world", "keeps running: other stacks are up")
        return 0
    return _end_world(kept, display)


def _destroy(stack: Stack, display: Display) -> int:
    engine.prepare(stack, display.reporter("engine"))
    if not engine.resources(stack):
        return 0
    display.line("engine", f"destroys stack {stack.name}")
    _repair(stack, display)
    if stack.refers_to is None and engine.outputs(stack).get("kubeconfig"):
        # jobs that no stack owns would keep their runtime and their nodes
        _operate(stack, display, "drain", "deletes jobs that no stack owns", stack.name, "--yes")
    stages = Stages(display)
    status = _update(stack, stages, "destroy", "--exclude-protected")
    return _failed(stack, stages, status) if status else 0


def _end_world(kept: list[Object], display: Display) -> int:
    """Only objects that a stack keeps (`data: keep`) may exist: anything else would cost money
    unnoticed."""
    kept_ids = {resource["id"] for resource in kept if resource.get("id")}
    left = [
        thing
        for thing in world.ask("GET", "inventory")
        if thing["state"] not in GONE and not _is_of(thing, kept_ids)
    ]
    data = [resource for resource in kept if resource.get("protect")]
    for resource in data:
        display.line(
            "kept", f"{progress.resource(resource['urn'])} {resource['id']}, {_price(resource)}"
        )
    if left:
        display.section(
            "still in the account, and in no stack",
            command_line.table(
                (thing["type"], thing["id"], thing["name"], thing["state"]) for thing in left
            ),
        )
        print(
            "\nthe world keeps running, so that you can inspect it; `python -m rehearsal down --force`"
            " ends it"
        )
        return FAILED
    if data:
        print(
            "\nthe account keeps running, so that the next `make up` uses this data again;"
            " `python -m rehearsal down --force` deletes the data and ends the account"
        )
        return 0
    world.stop()
    display.line("world", "account empty, everything stopped")
    return 0


def _is_of(thing: Object, ids: set[str]) -> bool:
    """Whether the object has one of the ids, or is the interface of such an object, which its
    description names."""
    owners = (
        {word.strip("()") for word in thing["name"].split()}
        if thing["type"] == "network-interface"
        else set()
    )
    return bool({thing["id"], thing["name"], *owners} & ids)


def _price(resource: Object) -> str:
    """What it costs to keep the object, where that is known."""
    inputs, region = (
        resource.get("inputs") or {},
        (resource.get("outputs") or {}).get("region", "this region"),
    )
    if "storageCapacity" not in inputs:
        return "billed by the data in it"
    monthly = lustre_per_month(
        region,
        inputs.get("deploymentType", ""),
        inputs.get("perUnitStorageThroughput"),
        inputs["storageCapacity"],
    )
    return f"about ${monthly:,.0f}/month" if monthly is not None else f"no price known for {region}"


# ---- looking
# --------------------------------------------------------------------------------------------------


def status(options: argparse.Namespace) -> int:
    """Print the processes of the rehearsal, then the nodes and jobs of the stack."""
    census = world.census()
    if not census:
        print("no world runs: `make up` starts one")
        return 0
    print(
        "\n".join(
            [
                *progress.process_table(census),
                *(f"  {incident}" for incident in world.incidents()),
                "",
            ]
        )
    )
    if not any(process.name == "kube-apiserver" for process in census):
        print("no cluster runs: `make up` creates one")
        return 0
    engine.write_kubeconfig(engine.find(options.stack))
    return _run(options, sys.executable, "-m", "operations.status")


def preview(options: argparse.Namespace) -> int:
    """Run `pulumi preview` in the running world, or in an account that starts for it."""
    stack, display, began = engine.find(options.stack), Display(), not world.running()
    if not _open_world(stack, display, parts=world.PARTS[:1] if began else None):
        return REFUSED
    try:
        engine.prepare(stack, display.reporter("engine"), only_preview=True)
        return _run(options, "pulumi", "preview", "--diff", "--non-interactive")
    finally:
        if began:
            world.stop()


def build(options: argparse.Namespace) -> int:
    """Build the whole toolchain and the chart mirror, if this machine can hold a world at all."""
    if problem := world.obstacle():
        print(f"{problem}\nTests that need a world are skipped.")
    else:
        _build(Display())
    return 0


def env(options: argparse.Namespace) -> int:
    """Print exports for `eval` that make pulumi, kubectl, helm and aws use the rehearsal."""
    for name, value in engine.variables(engine.find(options.stack)).items():
        print(f"export {name}={shlex.quote(value)}")
    print("unset AWS_PROFILE AWS_SESSION_TOKEN")
    print(f'export PATH={shlex.quote(f"{engine.own_pulumi()}:{engine.search_path()}")}:"$PATH"')
    return 0


def kubeconfig(options: argparse.Namespace) -> int:
    """Write a kubeconfig that needs no exports, and print its path."""
    print(engine.write_kubeconfig(engine.find(options.stack)))
    return 0


def logs(options: argparse.Namespace) -> int:
    """List the logs, or print the end of those whose name contains PROCESS."""
    found = sorted({*paths.LOGS.rglob("*.log"), *paths.NODES.rglob("*.log")})
    chosen = [file for file in found if options.process in file.stem]
    if not options.process:
        print("\n".join(command_line.table((file.stem, file) for file in found)))
        return 0
    return subprocess.call(["tail", "-n", "100", *chosen]) if chosen else FAILED


def fault(options: argparse.Namespace) -> int:
    """List the faults of the account, add one, clear all, or make an instance vanish."""
    options_of_fault = {
        name: value
        for name in (*FAULT_FIELDS, "block", "instance")
        if (value := getattr(options, name)) is not None
    }
    fits = {
        "vanish": {"instance"} == options_of_fault.keys(),
        "clear": not options_of_fault,
        None: not options_of_fault,
    }
    if not fits.get(options.kind, "instance" not in options_of_fault):
        print(
            "`vanish` must have --instance and no other option; `clear` and `fault` alone must have none",
            file=sys.stderr,
        )
        return REFUSED
    if options.kind == "vanish":
        world.ask("POST", f"instances/{options.instance}/vanish", {})
    elif options.kind == "clear":
        world.ask("DELETE", "faults")
    elif options.kind:
        world.ask("POST", "faults", {"kind": options.kind, **options_of_fault})
    print(json.dumps(world.ask("GET", "faults"), indent=1))
    return 0


def _run(options: argparse.Namespace, *command: str) -> int:
    sys.stdout.flush()
    return subprocess.call(
        command, cwd=paths.CHECKOUT, env=engine.environment(engine.find(options.stack))
    )


# ---- the command line
# --------------------------------------------------------------------------------------------------

FAULTS = (
    "throttle",
    "lose-answer",
    "error",
    "no-capacity",
    "delay",
    "reserve",
    "quota",
    "vanish",
    "clear",
)
FAULT_FIELDS: dict[str, tuple[Any, str]] = {
    "service": (str, "only calls to this service, such as ec2"),
    "action": (str, "only this call, such as RunInstances"),
    "zone": (str, "only in this zone, such as ap-northeast-2a"),
    "instance_type": (str, "only for this instance type, such as g6e.48xlarge"),
    "count": (int, "how often it happens (once by default); -1: until `clear`"),
    "seconds": (float, "delay: how long each call takes"),
    "available": (int, "no-capacity: how many instances AWS can still launch"),
    "id": (str, "reserve: id of the reservation"),
    "starts": (str, "reserve: when it starts, such as 2027-01-04T11:30:00Z"),
    "ends": (str, "reserve: when it ends"),
    "placement_group": (str, "reserve: ARN of its placement group"),
    "code": (str, "error: AWS's code; quota: code of the quota, such as L-DB2E81BA"),
    "instances": (int, "reserve: how many instances"),
    "value": (float, "quota: its new value"),
}
"""Field of a fault → its type and its help text. The last six are for `reserve`, which creates a
capacity reservation or a Capacity Block, and for `quota`."""
STACK: dict[str, Any] = {
    "default": "dev",
    "help": "read Pulumi.STACK.yaml (%(default)s by default)",
}
OPTIONS: dict[Callable[..., int], dict[str, dict[str, Any]]] = {
    up: {
        "--stack": STACK,
        "--speed": {
            "type": float,
            "default": 60,
            "help": "divide AWS's durations by this (%(default)s by default)",
        },
        "--wait": {
            "type": float,
            "default": 300,
            "metavar": "SECONDS",
            "help": "stop when no pod of a job has changed for so long (%(default)s by default)",
        },
    },
    down: {
        "--stack": {"help": "delete only this stack and the teams on it (all stacks by default)"},
        "--force": {"action": "store_true", "help": "end the world without destroying its stacks"},
    },
    status: {"--stack": STACK},
    preview: {"--stack": STACK},
    env: {"--stack": STACK},
    kubeconfig: {"--stack": STACK},
    logs: {
        "process": {
            "nargs": "?",
            "default": "",
            "metavar": "PROCESS",
            "help": "part of the name of a log",
        }
    },
    fault: {
        "kind": {
            "nargs": "?",
            "choices": FAULTS,
            "help": "the fault to add (without it, faults are listed)",
        },
        "--instance": {"help": "vanish: id of the instance"},
        **{
            f"--{name.replace('_', '-')}": {"type": kind, "help": what}
            for name, (kind, what) in FAULT_FIELDS.items()
        },
        "--block": {
            "action": "store_true",
            "default": None,
            "help": "reserve: a Capacity Block instead of an on-demand reservation",
        },
    },
}
EXCLUSIVE = (up, down, preview)
"""Commands that change the world. Only one of them can run at a time."""


def parser() -> argparse.ArgumentParser:
    """Every command and its options."""
    root = command_line.parser(
        "rehearsal", "Run this checkout's stacks against an embedded AWS account and cluster."
    )
    commands = root.add_subparsers(required=True, metavar="command")
    for act in (build, up, down, status, preview, env, kubeconfig, logs, fault):
        command = commands.add_parser(
            act.__name__, help=act.__doc__, description=act.__doc__, allow_abbrev=False
        )
        command.set_defaults(act=act)
        for flag, settings in OPTIONS.get(act, {}).items():
            command.add_argument(flag, **settings)
    return root


@contextmanager
def _alone(act: Callable[..., int]) -> Iterator[None]:
    """Hold the lock of commands that change the world."""
    if act not in EXCLUSIVE:
        yield
        return
    paths.STATE.mkdir(parents=True, exist_ok=True)
    with (paths.STATE / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise EngineError(
                "another `up`, `down` or `preview` runs in this checkout: wait for it, or stop it"
            ) from None
        yield


def main(arguments: list[str]) -> int:
    """Run one command; the exit status."""
    options = parser().parse_args(arguments)
    try:
        with _alone(options.act):
            return options.act(options)
    except (EngineError, world.WorldError, toolchain.ToolchainError, ApiError) as error:
        print(error, file=sys.stderr)
        return FAILED
    except FileNotFoundError as error:
        if error.filename != str(paths.STATE / "world.json"):
            raise
        print("no world runs: `make up` starts one", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        print(
            "\nstopped; running processes keep running: `make up` continues, `make down` deletes everything",
            file=sys.stderr,
        )
        return command_line.INTERRUPTED


if __name__ == "__main__":
    command_line.run(main)
