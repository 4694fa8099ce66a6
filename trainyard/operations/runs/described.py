"""Image, number and command of a run, as its job describes them."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from itertools import dropwhile
from typing import Any

from trainyard.catalog.job_kinds import JOB_KINDS
from trainyard.manifests.document import words
from trainyard.objects.iam.secrets import RUNS_THE_REST
from trainyard.objects.jobs.pytorch_coordinator import COORDINATOR, worker
from trainyard.operations.runs.node_time import Run
from trainyard.plans.jobs import run_number

LONGEST = 160
"""Characters of a command that a line shows."""


def image_of(run: Run) -> str:
    """Image of the container that trains; empty where the runtime of the job has it."""
    return _container(run).get("image", "")


def number_of(run: Run) -> int | None:
    """The number of a run, which `run` of its entry says; None for a job that no stack owns."""
    number = run_number(run.identity)
    return int(number) if number.isdecimal() else None


def command_of(run: Run) -> str:
    """The command of the container that trains, on one line: of a script its last line, of torchrun not its own
    options, which the stack writes. Empty where the runtime or the image has the command."""
    container = _container(run)
    command = _begun([*words(container.get("command")), *words(container.get("args"))])
    if command[1:2] == ["-c"]:
        lines = command[-1].replace("\\\n", " ").splitlines()
        told = [" ".join(line.split()) for line in lines]
        said = next((line for line in reversed(told) if line and not line.startswith("#")), "")
    elif command[:1] == ["torchrun"]:
        said = shlex.join(["torchrun", *dropwhile(lambda word: word[:1] == "-", command[1:])])
    else:
        said = shlex.join(command)
    return said if len(said) <= LONGEST else f"{said[:LONGEST]}…"


def _begun(command: Sequence[str]) -> list[str]:
    """The command without a program of ours in front of it, which waits or reads secrets and then begins it."""
    if [*command[:3]] == worker(()):
        return _begun(command[3:])
    if command[1:2] == ["-c"] and command[2].endswith(RUNS_THE_REST):
        return _begun(command[4:])
    return [*command]


def _container(run: Run) -> Mapping[str, Any]:
    """The trainer of a TrainJob; of another job the first container of its first role, which is none of ours."""
    spec = run.job.body["spec"]
    if "trainer" in spec:
        return spec["trainer"]
    replicas = spec.get(JOB_KINDS[run.job.kind].replicas, {}).values()
    containers = (each["template"]["spec"]["containers"][0] for each in replicas)
    return next((each for each in containers if each.get("command") != COORDINATOR), {})
