"""Commands that make no update, such as status, logs and preview."""

from __future__ import annotations

import argparse
import subprocess
import sys

from development import engine, progress
from development.progress import Display
from development.steps import failure, module_of, open_world
from rehearsal import world
from rehearsal.commands import words
from rehearsal.terminal import REFUSED

PACK = engine.CHECKOUT / "policy_pack"
CONFIG = PACK / "config.json"
POLICIES = ("--policy-pack", str(PACK), "--policy-pack-config", str(CONFIG))
"""Every preview is judged by the policies."""


def status(options: argparse.Namespace) -> int:
    """Print the processes of the rehearsal, then the nodes and jobs of the stack."""
    running = world.list_processes()
    if not running:
        print("no world runs: `make up` starts one; on an AWS account add LIVE=1")
        return 0
    print(
        "\n".join(
            [
                *words.process_table(running),
                *(f"  {incident}" for incident in world.incidents()),
                "",
            ]
        )
    )
    stack = engine.find(options.stack)
    if failure(stack).exists():
        print(f"the last update of {stack.name} failed; `make up{stack.chosen}` goes on from there")
        print(f"{failure(stack).read_text()}\n")
    if not any(process.name.startswith("kube-apiserver") for process in running):
        print("no cluster runs: `make up` creates one")
        return 0
    engine.write_kubeconfig(stack)
    whose = "--stack" if stack.refers_to else "--entries"
    code = _run(options, *_operation("status"), whose, stack.name)
    print("\n".join(["\nnot tried in the rehearsal", *(f"  {one}" for one in progress.NOT_RUN)]))
    return code


def preview(options: argparse.Namespace) -> int:
    """Run `pulumi preview` in the running world, or in an account that starts for it."""
    judge = [sys.executable, "-m", "policy_pack.configured", str(CONFIG)]
    if code := subprocess.call(judge, cwd=engine.CHECKOUT):  # the engine would say less, and later
        return code
    stack, display, began = engine.find(options.stack), Display(), not world.running()
    if not open_world(stack, display, parts=world.PARTS[:1] if began else None):
        return REFUSED
    try:
        engine.prepare(stack, display.reporter("engine"), only_preview=True)
        return _run(options, "pulumi", "preview", "--diff", "--non-interactive", *POLICIES)
    finally:
        if began:
            world.stop()


def env(options: argparse.Namespace) -> int:
    """Print exports for `eval` that make pulumi, kubectl, helm and aws use the rehearsal."""
    stack = engine.find(options.stack)
    engine.own_pulumi()
    print("\n".join(words.exports(engine.variables(stack))))
    return 0


def kubeconfig(options: argparse.Namespace) -> int:
    """Write a kubeconfig that needs no exports, and print its path."""
    print(engine.write_kubeconfig(engine.find(options.stack)))
    return 0


def drain(options: argparse.Namespace) -> int:
    """List the training jobs on the cluster, ask, and delete them."""
    return _run(options, sys.executable, "-m", "trainyard.operations.recovery.drain", options.stack)


def repair(options: argparse.Namespace) -> int:
    """After a killed update, list the objects that the stack's state lacks, ask, and import them."""
    engine.release_lock(engine.find(options.stack), print)
    return _run(
        options, sys.executable, "-m", "trainyard.operations.recovery.repair", options.stack
    )


def spent(options: argparse.Namespace) -> int:
    """Print the GPU hours and the dollars of each finished run."""
    form = ["--json"] if options.json else []
    return _run(
        options, sys.executable, "-m", "trainyard.operations.runs.spent", options.stack, *form
    )


def runs(options: argparse.Namespace) -> int:
    """Print every run: who, what, when, how long, for how much, and how it ended."""
    form = ["--json"] if options.json else []
    return _run(options, *_operation("history"), options.stack, *form)


def watch(options: argparse.Namespace) -> int:
    """Show nodes, runs with their ranks, queue and dollars, anew every few seconds."""
    given = [f"--{name}" for name in ("once", "json") if getattr(options, name)]
    given += ["--svg", options.svg] if options.svg else []
    return _run(options, *_operation("watch"), options.stack, *given)


def shell(options: argparse.Namespace) -> int:
    """Open a terminal, or run one command, in a pod on a pool; delete the pod at the end."""
    given = [
        word
        for name in ("pool", "image", "gpus", "minutes", "run")
        if (value := getattr(options, name)) is not None
        for word in (f"--{name}", str(value))
    ]
    yes = ["--yes"] if options.yes else []
    return _run(options, *_operation("shell"), options.stack, *given, *yes)


def accept(options: argparse.Namespace) -> int:
    """Judge what the nodes of a pool have reached, line by line; or write the job that measures it."""
    given = [
        word
        for name in ("pool", "nodes", "image")
        if (value := getattr(options, name)) is not None
        for word in (f"--{name}", str(value))
    ]
    flags = [f"--{name}" for name in ("yes", "json") if getattr(options, name)]
    return _run(options, *_operation("accept"), options.stack, *given, *flags)


def image(options: argparse.Namespace) -> int:
    """Build the image of a folder, push it to the account's ECR, and write its digest into a job."""
    folder = ["--from", options.folder] if options.folder else []
    which = ["--registry", options.registry] if options.registry else []
    yes = ["--yes"] if options.yes else []
    given = [*_job(options), *folder, *which, *yes]
    return _run(options, *_operation("image"), options.stack, *given)


def logs(options: argparse.Namespace) -> int:
    """Print the logs of a job, each line behind the name of its pod."""
    rank = [] if options.rank is None else ["--rank", str(options.rank)]
    flags = [f"--{name}" for name in ("follow", "past") if getattr(options, name)]
    return _run(options, *_operation("logs"), options.stack, *_job(options), *rank, *flags)


def stop(options: argparse.Namespace) -> int:
    """Name one job, ask, and end it on the cluster."""
    yes = ["--yes"] if options.yes else []
    return _run(options, *_operation("stop"), options.stack, *_job(options), *yes)


def _operation(name: str) -> tuple[str, ...]:
    return sys.executable, "-m", module_of(name)


def _job(options: argparse.Namespace) -> list[str]:
    return ["--job", options.job] if options.job else []


def _run(options: argparse.Namespace, *command: str) -> int:
    sys.stdout.flush()
    return subprocess.call(
        command, cwd=engine.CHECKOUT, env=engine.complete(engine.find(options.stack))
    )
