"""`down`: destroy stacks, compare the account with them, and end the world."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence

from development import engine, progress
from development.engine import Stack
from development.progress import Display, Stages
from development.steps import failed, operate, repair, shell_of, update
from rehearsal import world
from rehearsal.kube import Object
from rehearsal.terminal import FAILED
from trainyard import command_line
from trainyard.operations.recovery import kept as keeping
from trainyard.operations.recovery.drain import PROTECTED
from trainyard.operations.recovery.reservations import reservations
from trainyard.replacing.urn import stack_of

RUNS_SECONDS = 60
"""Most seconds for the question which jobs run."""
PAUSE_SECONDS = 5
"""For somebody who reads that jobs run, and did not know it."""
GONE = ("deleted", "terminated")
"""States in which AWS still lists something for a while that costs nothing and blocks nothing."""


def down(options: argparse.Namespace) -> int:
    """Destroy the stacks, compare the account with them, and end the world."""
    display = Display()
    if options.force or world.lost() or not world.running():
        print(
            "no world runs"
            if not world.list_processes()
            else "ends the world without destroying its stacks"
        )
        world.stop()
        return 0
    kept: list[Object] = []
    going = [it for it in engine.stacks() if options.stack in (None, it.name, it.refers_to)]
    for stack in going:
        engine.prepare(stack, display.reporter("engine"))
    if protected := [it for it in going if engine.outputs(it).get("deletion_protection")]:
        for stack in protected:
            up = f"make up{stack.chosen}"
            print(PROTECTED.format(stack=stack.name, up=up), file=sys.stderr)
        print("Nothing was deleted.", file=sys.stderr)
        return FAILED
    _announce(going, display)
    for stack in going:
        if status := _destroy(stack, display):
            return status
        kept += [r for r in engine.resources(stack) if r.get("custom")]
    if options.stack and any(
        engine.resources(stack) for stack in engine.stacks() if stack.name != options.stack
    ):
        display.line("world", "keeps running: other stacks are up")
        _show_kept(kept, display)
        return 0
    return _end_world(kept, display)


def _destroy(stack: Stack, display: Display) -> int:
    there = engine.resources(stack)
    if not there:
        return 0
    if _is_done(stack, there):
        display.line("engine", f"stack {stack.name} has nothing to delete: what is left is kept")
        return 0
    display.line("engine", f"destroys stack {stack.name}")
    if (
        stack.refers_to is None
        and engine.is_in_a_cluster(stack)
        and engine.outputs(stack).get("kubeconfig")
    ):
        # jobs that no stack owns would keep their runtime and their nodes
        operate(stack, display, "drain", "deletes the jobs that are left", stack.name, "--yes")
    # A NodePool that a killed destroy deletes waits for those jobs, and the repair waits for the NodePool.
    repair(stack, display, "would stay in the account: only what the state has is deleted")
    stages = Stages(display)
    status = update(stack, stages, "destroy", "--exclude-protected")
    return failed(stack, stages, status, destroys=True) if status else 0


def _is_done(stack: Stack, there: list[Object]) -> bool:
    """True where all that the stack still has is kept. `there`: its resources."""
    return keeping.nothing_else(there) and not engine.interrupted(stack)


def _announce(stacks: Sequence[Stack], display: Display) -> None:
    """Say of all stacks what ends, what is lost and what is kept, before the first one is touched, and wait for a
    ctrl-C."""
    known = {stack.name for stack in stacks}
    lines = [
        each for stack in stacks for each in _ending(stack, alone=stack.refers_to not in known)
    ]
    for what, line in lines:
        display.line(what, line)
    if lines:
        display.line("engine", f"ctrl-C in the next {PAUSE_SECONDS} seconds leaves all as it is")
        time.sleep(PAUSE_SECONDS)


def _ending(stack: Stack, *, alone: bool) -> Iterator[tuple[str, str]]:
    """Lines about one stack, each with what it is about. `alone`: its environment stays; otherwise that one names the
    jobs of the team."""
    there = engine.resources(stack)
    if not there or _is_done(stack, there):
        return
    up = there if engine.is_in_a_cluster(stack) else []
    said = {
        "jobs": running(stack) if alone else [],
        "stores": keeping.lost(up),
        "history": keeping.forgotten(up, stack.name),
        "kept": keeping.before(up, stack.name, up=f"make up{stack.chosen}"),
        "reserved": reservations(stack.name, engine.CHECKOUT) if up else [],
    }
    yield from ((what, line) for what, lines in said.items() for line in lines)


def running(stack: Stack) -> list[str]:
    """A line for each run that goes on and ends with the stack: since when, on how many nodes, dollars so far. The
    environment is asked about a team's: a team cannot read nodes, and so knows no dollars."""
    outputs = engine.outputs(stack)
    if not outputs.get("kubeconfig") or not engine.is_in_a_cluster(stack):
        return []
    asked = Stack(name=stack.refers_to or stack.name)
    space = outputs.get("namespace") if stack.refers_to else None
    try:
        told = subprocess.run(
            [sys.executable, "-m", "trainyard", "runs", asked.name, "--json"],
            cwd=engine.CHECKOUT,
            env=engine.complete(asked),
            check=True,
            capture_output=True,
            timeout=RUNS_SECONDS,
        ).stdout
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        return ["the cluster does not say which jobs run"]
    return [
        f"deletes {run['namespace']}/{run['job']}: {run['outcome']}, created {run['created'][:16]} UTC, on"
        f" {run['nodes']} node{'s' * (run['nodes'] != 1)}, {_dollars(run)}"
        for run in json.loads(told)["runs"]
        if run["ended"] is None and space in (None, run["namespace"])
    ]


def _dollars(run: Object) -> str:
    return (
        "dollars so far are not known"
        if run["usd"] is None
        else f"{float(run['usd']):,.2f} USD so far"
    )


def _end_world(kept: list[Object], display: Display) -> int:
    """Only objects that a stack keeps (`data: keep`) may exist: anything else would cost money
    unnoticed."""
    kept_ids = {resource["id"] for resource in kept if resource.get("id")}
    left = [
        thing
        for thing in world.ask("GET", "inventory")
        if thing["state"] not in GONE and not _is_of(thing, kept_ids)
    ]
    if left:
        display.section(
            "still in the account, and in no stack",
            command_line.table(
                (thing["type"], thing["id"], thing["name"], thing["state"]) for thing in left
            ),
        )
        print(
            "\nno stack has made these, such as a role that you made for a team. Fix: delete each with"
            ' `aws` after `eval "$(make env)"`, and type make down again; or end the world with all of'
            " them: .venv/bin/python -m rehearsal down --force"
        )
    if _show_kept(kept, display):
        print(
            "\nthe account keeps running, so that the next `make up` uses this data again."
            " `.venv/bin/python -m rehearsal down --force` deletes it at once, and ends the account"
        )
    elif not left:
        world.stop()
        display.line("world", "account empty, everything stopped")
    return FAILED if left else 0


def _show_kept(resources: list[Object], display: Display) -> bool:
    """List data that was kept, with its price and the commands that delete it. False where there is none. `resources`:
    all that the state still has."""
    found = keeping.kept(resources)
    for each in found:
        display.line("kept", keeping.line(each))
    if found:
        stack = Stack(name=stack_of(found[0]["urn"]))
        ways = keeping.ways(found, destroy=f"make down{stack.chosen}")
        display.section(keeping.HEADING, progress.suggestions([shell_of(stack), *ways]))
        for line in reservations(stack.name, engine.CHECKOUT):
            print(f"\n{line}")
    return bool(found)


def _is_of(thing: Object, ids: set[str]) -> bool:
    """True where the object has one of the ids, or is the interface of such an object, which its
    description names."""
    owners = (
        {word.strip("()") for word in thing["name"].split()}
        if thing["type"] == "network-interface"
        else set()
    )
    return bool({thing["id"], thing["name"], *owners} & ids)
