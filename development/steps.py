"""Steps of several commands: open the world, run an operation, run the engine, print a failure."""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from development import engine, progress
from development.engine import Stack
from development.programs import fetch_modules, wanted
from development.progress import Display, Stages
from rehearsal import paths, world
from rehearsal.commands import words
from rehearsal.terminal import FAILED
from trainyard.decide import plan_stack
from trainyard.operations.reach.pulumi import PATCH_FORCE
from trainyard.problems import InputError, few
from trainyard.reports.check import judged
from trainyard.reports.stack_file import errors_of
from trainyard.rules.principals import creations_in
from trainyard.settings.reading.reader import read_file

PROGRESS = re.compile(r", for \d+:\d\d$")
"""End of a line that a word prints while it waits."""
UNREPAIRED = "could not compare the state of the stack with the account"


def open_world(
    stack: Stack, display: Display, *, programs: Iterable[str] | None = None, **how: Any
) -> bool:
    """Start the world where it does not run; False where this machine cannot, and where the stack file has errors:
    nothing is built or started for them. `programs`: built before, by default all that the stack runs on. `how`: for
    world.start."""
    if problem := world.obstacle():
        print(problem, file=sys.stderr)
        return False
    if errors := refusals(stack):
        print(errors_of(stack.name, errors))
        return False
    section = stack.section("trainyard:environment")
    fetch_modules(section, display.reporter("toolchain"))
    build_programs(display, wanted(section) if programs is None else programs)
    if of_a_preview().exists():
        display.line("world", "clears away that of a preview which was killed: it has no cluster")
        world.stop()
    with display.waiting("world", "starts"):
        world_ = world.start(report=display.reporter("world"), **how)
    tell_images()
    display.line(
        "world", f"AWS is at {world_.account_url}, the API server will be at {world_.api_url}"
    )
    return True


def refusals(stack: Stack) -> Sequence[InputError]:
    """Errors of the stack file, which the engine would say minutes later."""
    reading = read_file(stack.name, engine.CHECKOUT)
    return judged(plan_stack(reading, engine.CHECKOUT), reading.lines).errors


def of_a_preview() -> Path:
    """A file that is there while the world runs for a preview alone, which has no part but the account."""
    return paths.STATE / "preview"


def build_programs(display: Display, programs: Iterable[str]) -> None:
    words.build_programs(programs, display.reporter("toolchain"))


def tell_images() -> None:
    """Write what the images of workloads/ contain, as its Dockerfile copies it: trainyard/torch-cpu is torch
    alone, the others are samples."""
    folder = engine.CHECKOUT / "workloads"
    samples = {
        f"trainyard/{script.parent.name}": {
            f"/workspace/{file.name}": str(file) for file in (folder / "checkpoints.py", script)
        }
        for script in sorted(folder.glob("*/train.py"))
    }
    told = {"images": {"trainyard/torch-cpu": {}, **samples}, "clones": str(folder)}
    (paths.STATE / "images.json").write_text(json.dumps(told))


def repair(stack: Stack, display: Display, why: str = "would be created twice") -> int:
    """Import the objects of a killed update; the exit status of the repair. `why`: what would become of them
    without it."""
    doing = f"makes sure that the state has all that the last update made: what it lacks {why}"
    if status := operate(stack, display, "repair", doing, stack.name, "--yes"):
        display.line("repair", UNREPAIRED)
    return status


def operate(stack: Stack, display: Display, operation: str, doing: str, *arguments: str) -> int:
    """Run a word of the tool on the stack and print its output; its exit status."""
    log = paths.LOGS / f"{operation}.log"
    with display.waiting(operation, doing), log.open("w") as output:
        status = subprocess.call(
            [sys.executable, "-m", "trainyard", operation, *arguments],
            cwd=engine.CHECKOUT,
            env=engine.complete(stack),
            stdout=output,
            stderr=output,
        )
    for line in filter(None, log.read_text().splitlines()):
        # What follows is ours to say, and progress is over.
        if not (line.startswith((f"stack {stack.name}: ", "next: ")) or PROGRESS.search(line)):
            display.line(operation, line)
    return status


def in_full(word: str, options: argparse.Namespace) -> list[str]:
    """The command of a word of the tool: as somebody has typed it, or about the stack alone."""
    typed = options.words or [word, "--stack", options.stack]
    return [sys.executable, "-m", "trainyard", *typed]


def option_of(stack: Stack) -> str:
    """Arguments that follow a word of the tool about this stack."""
    return "" if stack.name == "dev" else f" --stack {stack.name}"


def of_roles(stack: Stack, messages: Iterable[str]) -> list[tuple[str, str]]:
    """Commands, with their purpose, that make the roles which the messages miss."""
    commands = [*dict.fromkeys(it for message in messages for it in creations_in(message))]
    if not commands:
        return []
    return [shell_of(stack), *((command, "make the role") for command in commands)]


def shell_of(stack: Stack) -> tuple[str, str]:
    """The command, with its purpose, after which a shell works in the rehearsal."""
    return f'eval "$(make env{stack.chosen})"', "let aws and pulumi work in the rehearsal"


def warnings_in_full(stack: Stack) -> tuple[str, str]:
    """The command, with its purpose, that prints warnings without a cut."""
    return f"trainyard check{option_of(stack)}", "print the warnings of the stack file in full"


def failure(stack: Stack) -> Path:
    """The errors of the last update; no such file where it succeeded."""
    return paths.LOGS / f"failure-{stack.name}.log"


def update(stack: Stack, stages: Stages, *how: str) -> int:
    """Run `pulumi up` or another operation on the stack; its exit status."""
    failure(stack).unlink(missing_ok=True)
    try:
        return engine.update(
            stack,
            *how,
            "--yes",
            "--skip-preview",
            events=stages.consume,
            notice=stages.display.reporter("engine"),
        )
    except KeyboardInterrupt:
        failure(stack).write_text("  it was stopped by ctrl-C before its end")
        raise


WAITED = re.compile(r"Job \S+ is (Failed|.+ after \S+ minutes)|is not on the cluster any more")
"""Errors of a wait for a run, which stops no update: components/jobs/wait_for_job.py."""
DELETES = "this update deletes"
"""Words of each warning of trainyard/replacing/ending.py, and of teams that leave."""


def failed(stack: Stack, stages: Stages, status: int, *, destroys: bool = False) -> int:
    """Print the errors, which `status` repeats, the path of the log, and the commands to type
    next. `destroys`: the stack was being deleted, and only that goes on."""
    causes = [f"  {resource}: {message}" for resource, message in stages.errors]
    end_of_log = [
        f"  {line}"
        for line in (
            *stack.log.read_text().splitlines()[-3:],
            f"pulumi ended with exit code {status}",
        )
    ]
    failure(stack).write_text("\n".join(causes or end_of_log))
    if stages.warnings:
        stages.display.section(*progress.shown_warnings(stages.warnings))
    stages.display.section("failed", causes or end_of_log)
    messages = [message for _, message in stages.errors]
    stopped = any(not WAITED.search(message) for message in messages)
    if not destroys and stopped and any(DELETES in warning for warning in stages.warnings):
        # Pulumi deletes at the end, and only where each object before it went well.
        stages.display.line(
            "engine", "has deleted nothing yet that the stack file does not have any more"
        )
    end = "continue from here" if destroys else "delete everything of this stack"
    following = [
        *_ways_out(stack, messages),
        (f"less {stack.log}", "read the whole output of Pulumi"),
        *([] if destroys else _goes_on(stack, messages)),
        (f"make down{stack.chosen}", end),
    ]
    stages.display.section("next", progress.suggestions(following))
    return FAILED


def _goes_on(stack: Stack, errors: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Commands, with their purpose, that go on with a failed update."""
    up = f"make up{stack.chosen}"
    if any("field conflict" in message for message in errors):
        yield f"{PATCH_FORCE}=true {up}", "take back what somebody has changed in the cluster"
    for job in _jobs_of(stack):
        if any(f"/{job} is Failed" in message for message in errors):
            again = f"trainyard again {job}{option_of(stack)}"
            yield again, "count its run up, once the cause is mended outside of its entry"
    yield up, "continue from here"


def _jobs_of(stack: Stack) -> list[str]:
    """The entries of jobs in the stack file."""
    return [
        job
        for kind in ("environment", "team")
        for job in stack.section(f"trainyard:{kind}").get("jobs") or ()
    ]


def _ways_out(stack: Stack, errors: Sequence[str]) -> list[tuple[str, str]]:
    """Commands, with their purpose, that tell more about these errors of an update, or mend them. The job that an
    error names comes first."""
    if roles := of_roles(stack, errors):
        return roles
    if any("in the stack file" in message for message in errors):
        # Where the check passes, the refusal is about what is deployed.
        if check_passes(stack):
            again = f"once {stack.tracked.name} is changed: ask again, and change nothing"
            return [(f"make preview{stack.chosen}", again)]
        return [(f"trainyard check{option_of(stack)}", "list all errors of the stack file")]
    jobs = _jobs_of(stack)
    jobs.sort(key=lambda job: not any(f"/{job} " in message for message in errors))
    one = f"print the logs of a job: {few(jobs)}" if len(jobs) > 1 else "print the job's logs"
    return [
        (f"trainyard status{option_of(stack)}", "print the cause, if the cluster knows it"),
        *((f"trainyard logs {job}{option_of(stack)}", one) for job in jobs[:1]),
    ]


def check_passes(stack: Stack) -> bool:
    """True where `trainyard check` finds no error in the stack file."""
    command = [sys.executable, "-m", "trainyard", "check", stack.name]
    done = subprocess.run(
        command, cwd=engine.CHECKOUT, env=engine.complete(stack), capture_output=True
    )
    return done.returncode == 0
