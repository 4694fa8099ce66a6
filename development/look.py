"""Commands that make no update, such as status, logs and preview."""

from __future__ import annotations

import argparse
import subprocess
import sys

from development import engine, progress
from development.programs import LOOKING, to_build
from development.progress import Display
from development.steps import failure, in_full, open_world
from rehearsal import world
from rehearsal.__main__ import alone
from rehearsal.commands import words
from rehearsal.processes import Process
from rehearsal.terminal import REFUSED

PACK = engine.CHECKOUT / "policy_pack"
CONFIG = PACK / "config.json"
POLICIES = ("--policy-pack", str(PACK), "--policy-pack-config", str(CONFIG))
"""Every preview is judged by the policies."""


def status(options: argparse.Namespace) -> int:
    """Print the nodes and jobs of the stack, then the processes of the rehearsal."""
    running = world.list_processes()
    if not running:
        print("no world runs: `make up` starts one; on an AWS account add --live")
        return 0
    code = _of_stack(options, running)
    lines = [*words.process_table(running), *(f"  {one}" for one in world.incidents())]
    print("\n".join(["\nprocesses of the rehearsal", *lines]))
    return code


def _of_stack(options: argparse.Namespace, running: list[Process]) -> int:
    """Print the nodes and jobs of the stack; the exit code of `status`."""
    stack, busy = engine.find(options.stack), _busy()
    if busy:
        print(
            "`make up`, `make down` or `make preview` runs in this checkout, and prints what it does"
        )
    elif failure(stack).exists():
        print(f"the last update of {stack.name} failed; `make up{stack.chosen}` goes on from there")
        print(f"{failure(stack).read_text()}\n")
    if not any(process.name.startswith("kube-apiserver") for process in running):
        print("no cluster runs yet" if busy else "no cluster runs: `make up` creates one")
        return 0
    code = _tool("status", options)
    print("\n".join(["\nnot tried in the rehearsal", *(f"  {one}" for one in progress.NOT_RUN)]))
    return code


def _busy() -> bool:
    """True while a word that changes the world runs."""
    try:
        with alone():
            return False
    except world.WorldError:
        return True


def preview(options: argparse.Namespace) -> int:
    """Run `pulumi preview` in the running world, or in an account that starts for it; nothing that `up` builds
    is built."""
    judge = [sys.executable, "-m", "policy_pack.configured", str(CONFIG)]
    if code := subprocess.call(judge, cwd=engine.CHECKOUT):  # the engine would say less, and later
        return code
    stack, display, began = engine.find(options.stack), Display(), not world.running()
    parts = world.PARTS[:1] if began else None
    if not open_world(stack, display, programs=LOOKING, parts=parts):
        return REFUSED
    try:
        engine.prepare(stack, display.reporter("engine"), only_preview=True)
        return _run(options, "pulumi", "preview", "--diff", "--non-interactive", *POLICIES)
    finally:
        needs(options)
        if began:
            world.stop()


def needs(options: argparse.Namespace) -> int:
    """Print what `make up` of the stack builds before it begins, and for how long; nothing where all is built."""
    stack = engine.find(options.stack)
    if missing := to_build(stack.section("trainyard:environment")):
        line = f"`make up{stack.chosen}` builds first, once from pinned sources: {missing}"
        print(line, flush=True)
    return 0


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


def prove(options: argparse.Namespace) -> int:
    """Run `trainyard prove` in a world that starts for it. The word changes the stack file from step to step,
    so its pulumi takes a new copy each time."""
    stack, display = engine.find(options.stack), Display()
    if not open_world(stack, display, speed=options.speed):
        return REFUSED
    engine.prepare(stack, display.reporter("engine"))
    variables = engine.complete(stack)
    variables["PATH"] = f"{engine.own_pulumi()}:{variables['PATH']}"
    sys.stdout.flush()
    return subprocess.call(in_full("prove", options), cwd=engine.CHECKOUT, env=variables)


def drain(options: argparse.Namespace) -> int:
    """List the training jobs on the cluster, ask, and delete them."""
    return _tool("drain", options)


def repair(options: argparse.Namespace) -> int:
    """After a killed update, list the objects that the stack's state lacks, ask, and import them."""
    engine.release_lock(engine.find(options.stack), print)
    return _tool("repair", options)


def run(options: argparse.Namespace) -> int:
    """Run a word of the tool in the environment of the rehearsal."""
    return _run(options, *in_full("--help", options))


def _tool(word: str, options: argparse.Namespace) -> int:
    return _run(options, *in_full(word, options))


def _run(options: argparse.Namespace, *command: str) -> int:
    sys.stdout.flush()
    return subprocess.call(
        command, cwd=engine.CHECKOUT, env=engine.complete(engine.find(options.stack))
    )
