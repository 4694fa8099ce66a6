"""`trainyard checkpoint JOB`: the newest checkpoint of a job that is whole, looked for in a pod without a GPU.

Stores can be reached from pods only. The pod has the image of the job, which has Python, and runs workloads/whole.py,
which reads no tensor: terabytes take seconds. It changes nothing.
"""

from __future__ import annotations

import argparse
import base64
import posixpath
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path

from trainyard import HOME
from trainyard.decide import plan_stack
from trainyard.operations.nodes.one_pod import described, running
from trainyard.operations.nodes.shell import NOTHING, used
from trainyard.operations.nodes.shell_job import (
    STORES,
    Shell,
    ShellError,
    Wanted,
    pod_job,
    pool_of,
    runs,
    shell_name,
)
from trainyard.operations.nodes.tensorboard import AMOUNTS, cheapest_pool
from trainyard.operations.reach.consent import ask
from trainyard.operations.reach.kubectl import kubectl_with
from trainyard.operations.reach.place import reached
from trainyard.operations.reach.stack import Stack, read_stack
from trainyard.plans.jobs import JobPlan
from trainyard.problems import Refused, by_option
from trainyard.settings.job import SCHEDULED_TIME

PROGRAM = "workloads/whole.py"


def main(options: argparse.Namespace) -> int:
    """Return 0 where a checkpoint is whole, whose path is printed; 1 where none is, or the pod does not start; 2
    where there is no terminal to ask."""
    try:
        shell = pod_of(read_stack(options.stack), options)
    except (FileNotFoundError, Refused, RuntimeError) as error:
        print(f"{error}\n{NOTHING}", file=sys.stderr)
        return 1
    try:
        with reached(options.stack, to=sys.stderr) as cluster:
            kubectl = kubectl_with(cluster.login, "--request-timeout=150s")
            print("\n".join(described(shell, options.minutes)), file=sys.stderr)
            if code := ask("Start it?", yes=options.yes, otherwise=NOTHING):
                return code
            with running(kubectl, shell) as pod:
                return used(cluster, kubectl, pod, PROGRAM)
    except RuntimeError as error:
        print(error, file=sys.stderr)
        return 1


def pod_of(stack: Stack, options: argparse.Namespace) -> Shell:
    """The pod that looks. ShellError where the stack file describes no job with checkpoints of this name."""
    job, place = place_of(plan_jobs(stack), options.job)
    folder = posixpath.join(STORES, place)
    return pod_job(
        stack,
        shell_name("checkpoint"),
        Wanted(
            pool=pool_of(stack, options.pool) if options.pool else cheapest_pool(stack, job.pool),
            image=options.image or job.image,
            gpus=None,
            minutes=options.minutes,
            words=runs(command(HOME, folder), options.minutes),
            amounts=AMOUNTS,
        ),
    )


def plan_jobs(stack: Stack) -> Mapping[str, JobPlan]:
    """The jobs of a stack as they are planned, the runs of sweeps among them."""
    return plan_stack(stack.reading, Path(".")).accepted().jobs


def place_of(jobs: Mapping[str, JobPlan], wanted: str | None) -> tuple[JobPlan, str]:
    """The job of this name, and where it saves, as store/directory; without a name the only one that saves. A run
    of a schedule has the name of its entry and its time. Raises ShellError."""
    saving = {name: job for name, job in jobs.items() if job.checkpoints and job.stores}
    name = next(iter(saving)) if wanted is None and len(saving) == 1 else wanted or ""
    entry = name if name in saving else _schedule_of(saving, name)
    if entry is None:
        got = f"no job {wanted} saves to a store" if wanted else "no job is named"
        raise ShellError(f"{got}. Fix: {by_option('--job', saving, 'a job with checkpoints')}")
    place = saving[entry].checkpoints or ""
    if entry == name and SCHEDULED_TIME in place:
        raise ShellError(
            f"{name} saves in a directory for each run. Fix: --job {name}-<time>, as `trainyard runs` lists"
            " its runs"
        )
    return saving[entry], place.replace(SCHEDULED_TIME, name.removeprefix(f"{entry}-"))


def _schedule_of(jobs: Mapping[str, JobPlan], run: str) -> str | None:
    """The entry whose schedule has made a run of this name."""
    found = [name for name, job in jobs.items() if job.schedule and run.startswith(f"{name}-")]
    return max(found, key=len, default=None)


def command(home: Path, folder: str) -> str:
    """Command that looks into a folder. The program comes with the command: no image has it."""
    program = base64.b64encode((home / PROGRAM).read_bytes()).decode()
    return f"echo {program} | base64 -d | python3 - {shlex.quote(folder)}"
