"""python -m development up|down|status|…: what `make` does with a stack of this checkout in the
rehearsal; --help lists all commands.

They call the engine (engine.py) and the tool (trainyard/cli/) with the variables that the rehearsal needs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from development.down import down
from development.engine import EngineError, Stack
from development.look import drain, env, kubeconfig, needs, preview, prove, repair, run, status
from development.mirror import mirror
from development.steps import failure, option_of
from development.up import begun, up
from rehearsal import paths, toolchain, world
from rehearsal.__main__ import alone
from rehearsal.kube import ApiError
from rehearsal.terminal import FAILED
from trainyard import command_line
from trainyard.problems import few

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
    status: {"--stack": STACK, "words": WORDS},
    mirror: {"--stack": STACK, "--speed": SPEED, "words": WORDS},
    preview: {"--stack": STACK},
    needs: {"--stack": STACK},
    env: {"--stack": STACK},
    kubeconfig: {"--stack": STACK, "words": WORDS},
    drain: {"--stack": STACK, "words": WORDS},
    repair: {"--stack": STACK, "words": WORDS},
    prove: {"--stack": STACK, "--speed": SPEED, "words": WORDS},
    run: {"--stack": STACK, "words": WORDS},
}
NAMED = 10
"""Jobs that a stopped word names."""
EXCLUSIVE = (up, down, mirror, preview, drain, repair, prove)
"""Commands that change the world. Only one of them can run at a time."""


def parser() -> argparse.ArgumentParser:
    """Every command and its options."""
    root = command_line.parser(
        "development", "Run this checkout's stacks against an embedded AWS account and cluster."
    )
    commands = root.add_subparsers(required=True, metavar="command")
    for act, settings_of in OPTIONS.items():
        command = commands.add_parser(
            act.__name__, help=act.__doc__, description=act.__doc__, allow_abbrev=False
        )
        command.set_defaults(act=act)
        for flag, settings in settings_of.items():
            command.add_argument(flag, **settings)
    return root


def main(arguments: list[str]) -> int:
    """Run one command; the exit status."""
    options = parser().parse_args(arguments)
    try:
        with alone() if options.act in EXCLUSIVE else nullcontext() as options.lock:
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
        stack = Stack(name=getattr(options, "stack", None) or "dev")
        chosen, named = stack.chosen, option_of(stack)
        more = f"`make up{chosen}` continues, `make down{chosen}` deletes everything"
        how = "stopped before the end of the update" if failure(stack).exists() else "stopped"
        if jobs := begun(stack):
            print(
                f"\n{how}. Not ended, and on AWS they go on and cost money: {few(jobs, NAMED)}."
                f" `trainyard watch{named}` shows it, `trainyard stop <job>{named}` ends one; {more}",
                file=sys.stderr,
            )
        else:
            print(f"\n{how}: no run of this stack goes on; {more}", file=sys.stderr)
        return command_line.INTERRUPTED


if __name__ == "__main__":
    command_line.run(main)
