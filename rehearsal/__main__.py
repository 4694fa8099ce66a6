"""python -m rehearsal up|down|status|…: the command line; --help lists all commands.

The commands are in rehearsal/commands/. What they use is in world.py (processes), engine.py (Pulumi)
and progress.py (what is printed).
"""

from __future__ import annotations

import argparse
import fcntl
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rehearsal import paths, toolchain, world
from rehearsal.commands.down import down
from rehearsal.commands.faults import BREAKS, FAULT_FIELDS, FAULTS, NOTICES, fault
from rehearsal.commands.look import (
    build,
    drain,
    env,
    kubeconfig,
    preview,
    processes,
    repair,
    run,
    status,
)
from rehearsal.commands.mirror import mirror
from rehearsal.commands.steps import FAILED
from rehearsal.commands.up import up
from rehearsal.engine import EngineError
from rehearsal.kube import ApiError
from trainyard import command_line

STACK: dict[str, Any] = {
    "default": "dev",
    "help": "read Pulumi.STACK.yaml (%(default)s by default)",
}
SPEED: dict[str, Any] = {
    "type": float,
    "default": 60,
    "help": "divide AWS's durations by this (%(default)s by default)",
}
WORDS: dict[str, Any] = {"nargs": "*", "help": "behind --: a word of the tool, with its options"}
OPTIONS: dict[Callable[..., int], dict[str, dict[str, Any]]] = {
    build: {
        "--also": {
            "action": "append",
            "choices": sorted(set(toolchain.BY_NAME) - set(toolchain.DEFAULT)),
            "default": [],
            "help": "build also this program, which only some stacks run (may be given again)",
        },
    },
    up: {
        "--stack": STACK,
        "--speed": SPEED,
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
    run: {"--stack": STACK, "words": WORDS},
    status: {"--stack": STACK, "words": WORDS},
    mirror: {"--stack": STACK, "--speed": SPEED, "words": WORDS},
    preview: {"--stack": STACK},
    env: {"--stack": STACK},
    kubeconfig: {"--stack": STACK, "words": WORDS},
    drain: {"--stack": STACK, "words": WORDS},
    repair: {"--stack": STACK, "words": WORDS},
    processes: {
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
        "--instance": {"help": "vanish, notice and break: id of the instance"},
        "--notice": {"choices": NOTICES, "help": "notice: what AWS announces"},
        "--what": {"choices": BREAKS, "help": "break: what breaks on the machine"},
        "--xid": {"type": int, "help": "break: number of the Xid, such as 79"},
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
EXCLUSIVE = (up, down, mirror, preview, drain, repair)
"""Commands that change the world. Only one of them can run at a time."""


def parser() -> argparse.ArgumentParser:
    """Every command and its options."""
    root = command_line.parser(
        "rehearsal", "Run this checkout's stacks against an embedded AWS account and cluster."
    )
    commands = root.add_subparsers(required=True, metavar="command")
    for act in (
        build,
        up,
        down,
        status,
        mirror,
        preview,
        env,
        kubeconfig,
        drain,
        repair,
        run,
        processes,
        fault,
    ):
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
    paths.make_state()
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
        print("no world runs: `make up` starts one; on an AWS account add --live", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        print(
            "\nstopped; running processes keep running: `make up` continues, `make down` deletes everything",
            file=sys.stderr,
        )
        return command_line.INTERRUPTED


if __name__ == "__main__":
    command_line.run(main)
