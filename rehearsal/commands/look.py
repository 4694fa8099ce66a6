"""Commands that make no update, such as status, logs and preview."""

from __future__ import annotations

import argparse
import shlex
import subprocess
import sys

from rehearsal import engine, paths, progress, toolchain, world
from rehearsal.commands.steps import FAILED, REFUSED, build_programs, failure, in_full, open_world
from rehearsal.progress import Display
from trainyard import command_line

PACK = paths.CHECKOUT / "policy_pack"
CONFIG = PACK / "config.json"
POLICIES = ("--policy-pack", str(PACK), "--policy-pack-config", str(CONFIG))
"""Every preview is judged by the policies."""


def status(options: argparse.Namespace) -> int:
    """Print the processes of the rehearsal, then the nodes and jobs of the stack."""
    running = world.list_processes()
    if not running:
        print("no world runs: `make up` starts one; on an AWS account add --live")
        return 0
    print(
        "\n".join(
            [
                *progress.process_table(running),
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
    code = _tool("status", options)
    print("\n".join(["\nnot tried in the rehearsal", *(f"  {one}" for one in progress.NOT_RUN)]))
    return code


def preview(options: argparse.Namespace) -> int:
    """Run `pulumi preview` in the running world, or in an account that starts for it."""
    judge = [sys.executable, "-m", "policy_pack.configured", str(CONFIG)]
    if code := subprocess.call(judge, cwd=paths.CHECKOUT):  # the engine would say less, and later
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


def build(options: argparse.Namespace) -> int:
    """Build the programs that every stack runs, and the chart mirror, where this machine can run a
    world at all."""
    if problem := world.obstacle():
        print(f"{problem}\nTests that need a world are skipped.")
    else:
        build_programs(Display(), (*toolchain.DEFAULT, *options.also))
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


def processes(options: argparse.Namespace) -> int:
    """List the logs of the rehearsal's own processes, or print the end of those whose name contains
    PROCESS."""
    found = sorted({*paths.LOGS.rglob("*.log"), *paths.NODES.rglob("*.log")})
    chosen = [file for file in found if options.process in file.stem]
    if not options.process:
        print("\n".join(command_line.table((file.stem, file) for file in found)))
        return 0
    return subprocess.call(["tail", "-n", "100", *chosen]) if chosen else FAILED


def _run(options: argparse.Namespace, *command: str) -> int:
    sys.stdout.flush()
    return subprocess.call(
        command, cwd=paths.CHECKOUT, env=engine.environment(engine.find(options.stack))
    )
