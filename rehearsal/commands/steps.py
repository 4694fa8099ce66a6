"""What several commands do: open the world, run an operation, run the engine, print a failure."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Any

from rehearsal import charts, engine, paths, progress, toolchain, world
from rehearsal.engine import Stack
from rehearsal.progress import Display, Stages
from rehearsal.toolchain import genuine
from rehearsal.toolchain.programs import wanted

REFUSED, FAILED = 2, 1
"""Exit codes: the machine or the words do not allow the command; the command did not succeed."""
UNREPAIRED = "could not compare the state of the stack with the account"


def open_world(stack: Stack, display: Display, **how: Any) -> bool:
    if problem := world.obstacle():
        print(problem, file=sys.stderr)
        return False
    build_programs(display, wanted(stack.section("trainyard:environment")))
    with display.waiting("world", "starts"):
        world_ = world.start(report=display.reporter("world"), **how)
    display.line(
        "world", f"AWS is at {world_.account_url}, the API server will be at {world_.api_url}"
    )
    return True


def build_programs(display: Display, programs: Iterable[str] = toolchain.DEFAULT) -> None:
    toolchain.ensure(programs=programs, report=display.reporter("toolchain"))
    for name in genuine.RELEASED:
        genuine.download(name, metadata.version(f"pulumi-{name}"), display.reporter("toolchain"))
    charts.ensure(display.reporter("charts"))


def repair(stack: Stack, display: Display) -> int:
    """Import the objects of a killed update, before the next update creates them twice; the exit
    status of the repair."""
    doing = "compares the state of the stack with the account"
    if status := operate(stack, display, "repair", doing, stack.name, "--yes"):
        display.line("repair", UNREPAIRED)
    return status


def operate(stack: Stack, display: Display, operation: str, doing: str, *words: str) -> int:
    """Run a command of trainyard/operations/ on the stack and print its output; its exit status."""
    log = paths.LOGS / f"{operation}.log"
    with display.waiting(operation, doing), log.open("w") as output:
        status = subprocess.call(
            [sys.executable, "-m", "trainyard", operation, *words],
            cwd=paths.CHECKOUT,
            env=engine.environment(stack),
            stdout=output,
            stderr=output,
        )
    for line in filter(None, log.read_text().splitlines()):
        display.line(operation, line)
    return status


def in_full(word: str, options: argparse.Namespace) -> list[str]:
    """The command of a word of the tool: as somebody has typed it, or about the stack alone."""
    words = options.words or [word, "--stack", options.stack]
    return [sys.executable, "-m", "trainyard", *words]


def option_of(stack: Stack) -> str:
    """What follows a word of the tool that is about this stack."""
    return "" if stack.name == "dev" else f" --stack {stack.name}"


def failure(stack: Stack) -> Path:
    """The errors of the last update; no such file where it succeeded."""
    return paths.LOGS / f"failure-{stack.name}.log"


def update(stack: Stack, stages: Stages, *words: str) -> int:
    """Run `pulumi up` or another operation on the stack; its exit status."""
    failure(stack).unlink(missing_ok=True)
    return engine.update(
        stack,
        *words,
        "--yes",
        "--skip-preview",
        events=stages.consume,
        notice=stages.display.reporter("engine"),
    )


def failed(stack: Stack, stages: Stages, status: int) -> int:
    """Print the errors, which `status` repeats, the path of the log, and the commands to type
    next."""
    causes = [f"  {resource}: {message}" for resource, message in stages.errors]
    end_of_log = [
        f"  {line}"
        for line in (
            *stack.log.read_text().splitlines()[-3:],
            f"pulumi ended with exit code {status}",
        )
    ]
    failure(stack).write_text("\n".join(causes or end_of_log))
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
                (f"trainyard {word}{option_of(stack)}", purpose),
                *(
                    []
                    if refused
                    else [(f"trainyard logs <job>{option_of(stack)}", "print a job's logs")]
                ),
                (f"less {stack.log}", "read the whole output of Pulumi"),
                (f"make up{stack.chosen}", "continue from here"),
                (f"make down{stack.chosen}", "delete everything of this stack"),
            ]
        ),
    )
    return FAILED
