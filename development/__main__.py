"""python -m development up|down|status|…: what `make` does with a stack of this checkout in the
rehearsal; --help lists all commands.

They call the engine (engine.py) and trainyard/operations/ with the variables that the rehearsal needs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from development.down import down
from development.engine import EngineError
from development.look import (
    accept,
    drain,
    env,
    image,
    kubeconfig,
    logs,
    preview,
    repair,
    runs,
    shell,
    spent,
    status,
    stop,
    watch,
)
from development.mirror import mirror
from development.up import up
from rehearsal import paths, toolchain, world
from rehearsal.__main__ import alone
from rehearsal.kube import ApiError
from rehearsal.terminal import FAILED
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
JOB: dict[str, Any] = {"help": "the job (may be left out where there is only one)"}
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
    status: {"--stack": STACK},
    spent: {
        "--stack": STACK,
        "--json": {"action": "store_true", "help": "print it as JSON, for programs"},
    },
    runs: {
        "--stack": STACK,
        "--json": {"action": "store_true", "help": "print it as JSON, for programs"},
    },
    watch: {
        "--stack": STACK,
        "--once": {"action": "store_true", "help": "print one frame, and end"},
        "--json": {"action": "store_true", "help": "one look as JSON, for programs"},
        "--svg": {"metavar": "FILE", "help": "write one frame as a picture into this file"},
    },
    shell: {
        "--stack": STACK,
        "--pool": {"help": "the pool (may be left out where there is only one)"},
        "--image": {"help": "the image (that of a job of the stack file by default)"},
        "--gpus": {"type": int, "help": "GPUs of the pod on a GPU pool (1 by default)"},
        "--minutes": {"type": int, "help": "the pod ends after this time (60 by default)"},
        "--run": {"metavar": "COMMAND", "help": "run this, print its output, and end"},
        "--yes": {"action": "store_true", "help": "start it without a question"},
    },
    accept: {
        "--stack": STACK,
        "--pool": {"help": "the pool (may be left out where only one can be meant)"},
        "--nodes": {"type": int, "help": "of a new entry: how many nodes (all of the pool)"},
        "--image": {"help": "of a new entry: an image with torch (that of a job there)"},
        "--yes": {"action": "store_true", "help": "write the entry without a question"},
        "--json": {"action": "store_true", "help": "print it as JSON, for programs"},
    },
    image: {
        "--stack": STACK,
        "--job": {"help": "the entry of the job"},
        "--from": {"dest": "folder", "help": "the folder, with a Dockerfile"},
        "--registry": {"help": "of `registries` (may be left out where there is one)"},
        "--yes": {"action": "store_true", "help": "do it without a question"},
    },
    mirror: {
        "--stack": STACK,
        "--speed": SPEED,
        "--json": {"action": "store_true", "help": "print it as JSON, for programs"},
        "--yes": {"action": "store_true", "help": "copy without a question"},
    },
    preview: {"--stack": STACK},
    env: {"--stack": STACK},
    kubeconfig: {"--stack": STACK},
    drain: {"--stack": STACK},
    repair: {"--stack": STACK},
    logs: {
        "--stack": STACK,
        "--job": JOB,
        "--rank": {"type": int, "help": "print only the node of this number (all by default)"},
        "--follow": {"action": "store_true", "help": "go on printing until the job has ended"},
        "--past": {"action": "store_true", "help": "print what is kept of pods that are gone, too"},
    },
    stop: {
        "--stack": STACK,
        "--job": JOB,
        "--yes": {"action": "store_true", "help": "end the job without a question"},
    },
}
EXCLUSIVE = (up, down, mirror, preview, drain, repair)
"""Commands that change the world. Only one of them can run at a time."""


def parser() -> argparse.ArgumentParser:
    """Every command and its options."""
    root = command_line.parser(
        "development", "Run this checkout's stacks against an embedded AWS account and cluster."
    )
    commands = root.add_subparsers(required=True, metavar="command")
    for act in (
        up,
        down,
        status,
        spent,
        runs,
        watch,
        shell,
        accept,
        image,
        mirror,
        preview,
        env,
        kubeconfig,
        drain,
        repair,
        logs,
        stop,
    ):
        command = commands.add_parser(
            act.__name__, help=act.__doc__, description=act.__doc__, allow_abbrev=False
        )
        command.set_defaults(act=act)
        for flag, settings in OPTIONS.get(act, {}).items():
            command.add_argument(flag, **settings)
    return root


def main(arguments: list[str]) -> int:
    """Run one command; the exit status."""
    options = parser().parse_args(arguments)
    try:
        with alone() if options.act in EXCLUSIVE else nullcontext():
            return options.act(options)
    except (EngineError, world.WorldError, toolchain.ToolchainError, ApiError) as error:
        print(error, file=sys.stderr)
        return FAILED
    except FileNotFoundError as error:
        if error.filename != str(paths.STATE / "world.json"):
            raise
        print("no world runs: `make up` starts one; on an AWS account add LIVE=1", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        print(
            "\nstopped; running processes keep running: `make up` continues, `make down` deletes everything",
            file=sys.stderr,
        )
        return command_line.INTERRUPTED


if __name__ == "__main__":
    command_line.run(main)
