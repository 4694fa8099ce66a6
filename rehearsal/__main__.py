"""python -m rehearsal up|down|env|status|…: the words for a world; --help lists all of them."""

from __future__ import annotations

import argparse
import fcntl
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any

from rehearsal import environment, paths, terminal, toolchain, world
from rehearsal.commands.faults import BREAKS, FAULT_FIELDS, FAULTS, NOTICES, fault
from rehearsal.commands.words import build, down, env, inventory, processes, status, up

ALSO: dict[str, Any] = {
    "action": "append",
    "choices": sorted({*toolchain.BY_NAME} - {*toolchain.NEEDED}),
    "default": [],
    "help": "build also this program, which only some worlds run (may be given again)",
}
OPTIONS: dict[Callable[..., int], dict[str, dict[str, Any]]] = {
    build: {"--also": ALSO},
    up: {
        "--also": ALSO,
        "--speed": {
            "type": float,
            "default": 60,
            "help": "divide AWS's durations by this (%(default)s by default)",
        },
    },
    down: {"--force": {"action": "store_true", "help": "end it with all that is in its account"}},
    env: {
        "--region": {
            "default": environment.REGION,
            "help": "the AWS region of who names none (%(default)s by default)",
        }
    },
    inventory: {"--json": {"action": "store_true", "help": "print it as JSON, for programs"}},
    status: {},
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


def parser() -> argparse.ArgumentParser:
    """Every word and its options."""
    root = terminal.parser(
        "rehearsal", "Run programs for AWS and EKS against an embedded account and cluster."
    )
    commands = root.add_subparsers(required=True, metavar="command")
    for act, options in OPTIONS.items():
        command = commands.add_parser(
            act.__name__, help=act.__doc__, description=act.__doc__, allow_abbrev=False
        )
        command.set_defaults(act=act)
        for flag, settings in options.items():
            command.add_argument(flag, **settings)
    return root


@contextmanager
def alone() -> Iterator[IO[str]]:
    """Hold the lock of words that change the world; WorldError where another one has it."""
    paths.make_state()
    with (paths.STATE / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise world.WorldError(
                "another `up`, `down` or `preview` runs in this checkout: wait for it, or stop it"
            ) from None
        yield file


def main(arguments: list[str]) -> int:
    """Run one word; the exit status."""
    options = parser().parse_args(arguments)
    try:
        if options.act in (up, down):
            with alone():
                return options.act(options)
        return options.act(options)
    except (world.WorldError, toolchain.ToolchainError) as error:
        print(error, file=sys.stderr)
    except FileNotFoundError as error:
        if error.filename != str(paths.STATE / "world.json"):
            raise
        print("no world runs: `python -m rehearsal up` starts one", file=sys.stderr)
    return terminal.FAILED


if __name__ == "__main__":
    terminal.run(main)
