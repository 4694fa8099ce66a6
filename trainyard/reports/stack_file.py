"""Reading of the stack file that a command line reports on."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from difflib import get_close_matches
from pathlib import Path

from trainyard.decide import plan_stack
from trainyard.plan import EnvironmentPlan, Planned, TeamPlan
from trainyard.problems import InputError, counted, listed
from trainyard.settings.reading.reader import Reading, read_file, stack_files

NO_FILE, HAS_ERRORS = 2, 1
"""Exit statuses."""
PROJECT = (
    "project file (Pulumi.yaml); go to the folder of Pulumi.yaml, or write one here with the lines"
    " `name: trainyard` and `runtime: python`"
)
"""The file that names the Pulumi project and is missing, with the fix."""


def planned_file(stack: str) -> tuple[Reading, Planned] | None:
    """Settings of Pulumi.<stack>.yaml in this folder, and its plan or errors. Where that file or
    Pulumi.yaml is missing, a sentence is printed."""
    try:
        reading = read_file(stack)
        return reading, plan_stack(reading)
    except FileNotFoundError as error:
        missing = PROJECT
        if error.filename != "Pulumi.yaml" and Path("Pulumi.yaml").exists():
            missing = f"stack file ({error.filename}); {_way_to_one(stack)}"
        print(f"{stack}: no {missing}")
        return None


def _way_to_one(stack: str) -> str:
    """Fix for a stack that has no file: the stack that is meant, or the word that writes a file."""
    there = stack_files(Path())
    if of := next((each for each in there if stack in _jobs_of(each)), None):
        return f"{stack} is a job of stack {of}: write {of}"
    near = get_close_matches(stack, there, n=1)
    others = f"the stacks here are {', '.join(there)}; " if there and not near else ""
    kind = "team" if stack.startswith("team-") else "environment"
    new = f"trainyard new {kind} --name {stack.removeprefix('team-')} writes one"
    return f"did you mean {near[0]}? Otherwise {new}" if near else others + new


def _jobs_of(stack: str) -> Collection[str]:
    """Names of the jobs in a stack file; none where it has errors that hide them."""
    config = read_file(stack).config
    wanted = config and (config.environment or config.team)
    return wanted.jobs if wanted else ()


def errors_of(stack: str, errors: Sequence[InputError]) -> str:
    """All errors and their number, for a person."""
    return "\n".join([*listed(errors), f"{stack}: {counted(errors)}"])


def report_on(
    stack: str,
    report: Callable[[Reading, EnvironmentPlan | TeamPlan], int],
    refused: Callable[[str, Sequence[InputError]], str] = errors_of,
) -> int:
    """The exit status of `report`, or NO_FILE; HAS_ERRORS where the stack file has errors, which are
    printed as `refused` writes them."""
    found = planned_file(stack)
    if found is None:
        return NO_FILE
    reading, planned = found
    if planned.plan is None:
        print(refused(stack, planned.errors))
        return HAS_ERRORS
    return report(reading, planned.plan)
