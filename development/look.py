"""Commands that make no update, such as status, logs and preview."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from development import engine, progress
from development.changes import changes, figures
from development.engine import Stack
from development.programs import LOOKING, to_build
from development.progress import Display
from development.steps import (
    failure,
    in_full,
    of_a_preview,
    of_roles,
    open_world,
    option_of,
    shell_of,
    warnings_in_full,
)
from rehearsal import paths, world
from rehearsal.__main__ import alone
from rehearsal.commands import words
from rehearsal.processes import Process
from rehearsal.terminal import REFUSED
from trainyard.operations.recovery import kept as keeping
from trainyard.operations.recovery.reservations import reservations

PACK = engine.CHECKOUT / "policy_pack"
CONFIG = PACK / "config.json"
POLICIES = ("--policy-pack", str(PACK), "--policy-pack-config", str(CONFIG))
"""Every preview is judged by the policies."""
PROCESSES = ".venv/bin/python -m rehearsal status"
STAYS = (
    ".venv/bin/python -m rehearsal up",
    "start a world that stays: what you make in it, such as roles, `make up` finds",
)


def status(options: argparse.Namespace) -> int:
    """Print the nodes and jobs of the stack, then that the rehearsal runs, and what its keeper had to notice."""
    running = world.list_processes()
    if not running:
        print("no world runs: `make up` starts one; on an AWS account add --live")
        return 0
    code = _of_stack(options, running)
    mib = sum(process.rss_mib for process in running)
    print(
        f"\nthe rehearsal runs: {len(running)} processes with {mib / 1024:.1f} GiB, which `{PROCESSES}` lists"
    )
    for incident in world.incidents():
        print(f"  {incident}")
    return code


def _of_stack(options: argparse.Namespace, running: list[Process]) -> int:
    """Print the nodes and jobs of the stack; the exit code of `status`."""
    stack, busy = engine.find(options.stack), _busy()
    if busy:
        print(
            "`make up`, `make down` or `make preview` runs in this checkout, and prints what it does"
        )
    elif failure(stack).exists():
        print(f"errors of the last update of {stack.name}\n{failure(stack).read_text()}\n")
    if not any(process.name.startswith("kube-apiserver") for process in running):
        print("no cluster runs yet" if busy else "no cluster runs: `make up` creates one")
        for line in () if busy else _kept(stack):
            print(line)
        return 0
    code = _tool("status", options)
    print("\n".join(["\nnot tried in the rehearsal", *(f"  {one}" for one in progress.NOT_RUN)]))
    return code


def _kept(stack: Stack) -> list[str]:
    """Lines about what a destroy of the stack has kept, and about reservations, which no destroy ends."""
    try:
        there = engine.resources(stack)
    except engine.EngineError:
        there = []
    destroy = f"make down{stack.chosen}"
    kept = keeping.listed(there, destroy=destroy, shell=[shell_of(stack)])
    return [*kept, *reservations(stack.name, engine.CHECKOUT)]


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
    stack, display = engine.find(options.stack), Display()
    began = not world.running() or of_a_preview().exists()
    parts = world.PARTS[:1] if began else None
    if not open_world(stack, display, programs=LOOKING, parts=parts):
        return REFUSED
    if began:
        of_a_preview().touch()
        display.line(
            "world", "runs for this preview alone: what you make in it, such as roles, ends with it"
        )
    try:
        engine.prepare(stack, display.reporter("engine"), only_preview=True)
        events = paths.STATE / "preview-events.json"
        events.unlink(missing_ok=True)
        # With --diff and outputs, two numbers that grow are 400 lines.
        shown = ("--non-interactive", "--suppress-outputs", "--event-log", str(events))
        code = _run(options, "pulumi", "preview", *shown, *POLICIES)
        if not code and not engine.resources(stack):
            display.section("figures", figures(stack.name))
        elif not code and (lines := changes(stack.name, events)):
            display.section("changes", lines)
        needs(options)
        _summary(stack, display, [] if code else _warnings(events), passes=began)
        return code
    finally:
        if began:
            world.stop()


def _warnings(events: Path) -> list[str]:
    """Each warning in a log of the engine's events; none where there is no log."""
    lines = events.read_text().splitlines() if events.exists() else []
    return progress.warnings_in(map(json.loads, lines))


def _summary(stack: Stack, display: Display, warnings: list[str], *, passes: bool) -> None:
    """Print the warnings of a preview once more, since they stand above all that it creates, and the commands to
    type next. `passes`: the world ends with the preview."""
    made = words.inventory_table(words.things()) if passes else []
    if made:
        display.section(
            "made in this world, and gone with it: it runs for this preview alone", made
        )
    if warnings:
        display.section(*progress.shown_warnings(warnings))
    if not warnings and not made:
        return
    roles = of_roles(stack, warnings)
    up = (f"make up{stack.chosen}", "create or update the stack")
    stays = [STAYS] if passes and (roles or made) else []
    display.section(
        "next", progress.suggestions([*stays, *(roles or [warnings_in_full(stack)]), up])
    )


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
    for note in _notes(stack):
        print(note, file=sys.stderr)
    return 0


def _notes(stack: Stack) -> Iterator[str]:
    """Sentences about what the exports name and that is not there, or will not stay."""
    if of_a_preview().exists():
        yield (
            "this world ends with `make preview`, and what you make in it, such as roles, with it; after the"
            f" preview `{STAYS[0]}` starts one that stays"
        )
    if not stack.kubeconfig.exists():
        try:
            engine.write_kubeconfig(stack)
        except engine.EngineError:
            yield (
                f"KUBECONFIG names {stack.kubeconfig}, which is not there before the stack has a cluster; then"
                f" `trainyard kubeconfig{option_of(stack)}` or the end of `make up{stack.chosen}` writes it"
            )


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
