"""`up`: create or update a stack, follow its jobs to their end, and print what there is."""

from __future__ import annotations

import argparse
import fcntl
import subprocess
import sys
import time
from collections.abc import Collection, Iterable, Iterator
from contextlib import closing
from http import HTTPStatus

from urllib3.exceptions import HTTPError

from development import engine, progress
from development.causes import Causes, Run, pods_of
from development.engine import Stack
from development.progress import Display, Stages
from development.releases import why_it_waits
from development.steps import failed, open_world, option_of, repair, update, warnings_in_full
from rehearsal import control_plane, paths
from rehearsal.kube import Api, ApiError
from rehearsal.terminal import FAILED, REFUSED
from trainyard.catalog.job_kinds import ENTRY_KINDS, SUCCEEDED, outcome
from trainyard.catalog.logs.cause import Cause
from trainyard.catalog.logs.known_failures import NO_LOG
from trainyard.catalog.logs.log_words import nothing_to_do
from trainyard.catalog.logs.waiting import phases, restarts
from trainyard.operations.nodes import nodes
from trainyard.operations.reach.kubectl import Environment, Login, logged_in
from trainyard.operations.reach.proxy import REQUEST_SECONDS, proxied
from trainyard.operations.reach.snapshot import FORBIDDEN, read
from trainyard.operations.reach.target import forget_command
from trainyard.operations.runs.again import sweep_with

POLL_SECONDS = 1
STOPPED = "stopped"
"""State of a job that is not on the cluster any more."""
RESTARTS = 10
"""Restarts of one container after which a job counts as a crash loop, which has no end of its own.
A runtime that restarts the whole gang creates new pods, whose containers have none."""


def up(options: argparse.Namespace) -> int:
    """Create or update the stack, and wait until its jobs have finished."""
    stack, display = engine.find(options.stack), Display()
    if not open_world(stack, display, speed=options.speed):
        return REFUSED
    engine.prepare(stack, display.reporter("engine"))
    if other := engine.with_the_cluster(stack):
        print(
            f"the rehearsal has room for one cluster, and stack {other.name} has it; nothing was changed."
            f" Fix: make down STACK={other.name}",
            file=sys.stderr,
        )
        return REFUSED
    if repair(stack, display) and engine.interrupted(stack):
        return FAILED
    stages, first = Stages(display, why_it_waits), not engine.resources(stack)
    if status := update(stack, stages, "up"):
        return failed(stack, stages, status)
    engine.write_kubeconfig(stack)
    changes = stages.changes()
    more = "; a preview counts components, too" if changes else ""
    display.line("engine", f"{changes} changes{more}")
    # Another team's update need not wait for the end of these jobs.
    fcntl.flock(options.lock, fcntl.LOCK_UN)
    try:
        return _finish(stack, stages, options.wait, first=first)
    except (OSError, HTTPError) as error:
        print(f"the jobs are not waited for any more: {error}", file=sys.stderr)
        return FAILED


def _finish(stack: Stack, stages: Stages, patience: float, *, first: bool) -> int:
    """Wait for the jobs, then print nodes, jobs and stages. `first`: it was the first update of the stack."""
    jobs = [
        Run(entry=entry, kind=job["kind"], namespace=job["namespace"], name=job["name"])
        for entry, job in (engine.outputs(stack).get("jobs") or {}).items()
    ]
    began = stages.display.now()
    api = control_plane.admin(paths.world(), outside=True)
    causes = Causes(api, engine.complete(stack), stack=stack.name)
    if any(_end(api, job) != STOPPED for job in jobs):
        stages.display.line("jobs", "waits for their end; ctrl-C ends the wait, and no job")
    with closing(causes):
        ends = _follow_jobs(api, jobs, stages.display, patience, causes)
    waited = stages.display.now() - began
    there = [job for job, end in zip(jobs, ends, strict=True) if end != STOPPED]
    rows = progress.stage_table(stages.stages, waited, first=first)
    _summary(stack, stages, there, rows, first=first)
    for job, end in zip(jobs, ends, strict=True):
        if end in SUCCEEDED and (idle := causes.nothing_done(job)):
            print(f"\njob {job.namespace}/{job.name} is {end}, and {nothing_to_do(idle)}")
        if end not in SUCCEEDED:
            advice = _advice(stack, job, end, causes.of(job) if end else causes.seen(job))
            print(f"\njob {job.namespace}/{job.name} is {advice}")
    return 0 if set(ends) <= {*SUCCEEDED, STOPPED} else FAILED


def _advice(stack: Stack, job: Run, end: str | None, cause: Cause | None = None) -> str:
    """Lines about a job that ended without success, and the command to type next."""
    if end == STOPPED:
        return f"{end}: {_begun_again(stack, job)}, then `make up{stack.chosen}`"
    status = f"`trainyard status{option_of(stack)}` prints"
    if cause:
        lines = [cause.sentence, *([f"Fix: {cause.do}"] if cause.do else [])]
        lines += [*(f"    {line}" for line in cause.shown), f"{status} what else is wrong"]
        return f"{end or 'not finished'}: " + "\n".join(lines)
    if end:
        return f"{end}, and no log tells why; {NO_LOG}. {status} what the cluster still knows"
    return (
        "not finished, and goes on: its pods have not changed for some minutes, so `make up` waits no longer."
        f" `trainyard watch{option_of(stack)}` follows it; {status} what it lacks, if anything"
    )


def _begun_again(stack: Stack, job: Run) -> str:
    """Words about how a job begins again that somebody has stopped."""
    sweep = sweep_with(stack.name, job.entry)
    if sweep is None:
        return f"`trainyard again {job.entry}{option_of(stack)}`"
    alone = forget_command(job.kind, job.entry, stack.name, live=False)
    return (
        f"a run of the sweep {sweep}: `{alone}` begins it alone again, or `trainyard again {sweep}"
        f"{option_of(stack)}` all of them"
    )


def begun(stack: Stack) -> list[str]:
    """Names of jobs that the stack has made and that have not ended; of an environment, also those of its teams and of
    whoever else. Where the API server does not answer, all that the stack has made."""
    made = engine.deployed_jobs(stack)
    runs = [Run(entry=entry, **job) for entry, job in made.items()]
    try:
        api = control_plane.admin(paths.world(), outside=True)
        own = [run.entry for run in runs if _end(api, run) is None]
        return own if stack.refers_to else [*own, *_others(api, runs)]
    except (ApiError, OSError, HTTPError):
        return [*made]


def _others(api: Api, runs: Collection[Run]) -> Iterator[str]:
    """Namespace and name of each job of the cluster that has not ended and is none of these."""
    known = {(run.kind, run.namespace, run.name) for run in runs}
    for kind, row in ENTRY_KINDS.items():
        try:
            there = api.request("GET", f"/apis/{row.api_version}/{kind.lower()}s").get("items", ())
        except ApiError:  # nobody serves the kind yet
            continue
        for meta in (job["metadata"] for job in there if not outcome(job)):
            if (kind, meta["namespace"], meta["name"]) not in known:
                yield f"{meta['namespace']}/{meta['name']}"


def _follow_jobs(
    api: Api, jobs: list[Run], display: Display, patience: float, causes: Causes
) -> list[str | None]:
    """Ends of the jobs, once all have ended, only crash loops are left, or no pod has changed for
    `patience` seconds. None: the job has not ended. `causes`: told what there is."""
    printed, changed = "", display.now()
    ends: list[str | None] = [None] * len(jobs)
    while True:
        before, ends = ends, [_end(api, job) for job in jobs]
        _print_ends(display, causes, zip(jobs, before, ends, strict=True))
        going = [job for job, end in zip(jobs, ends, strict=True) if not end]
        pods = [pods_of(api, job) for job in going]
        failed = [job for job, end in zip(jobs, ends, strict=True) if end == "Failed"]
        for line in causes.look(dict(zip(going, pods, strict=True)), failed):
            display.line("jobs", line)
        state = "; ".join(
            f"{job.namespace}/{job.name}: {phases(of_job)}"
            for job, of_job in zip(going, pods, strict=True)
        )
        unchanged = display.now() - changed
        looping = all(max(restarts(of_job), default=0) >= RESTARTS for of_job in pods)
        if looping or (state == printed and unchanged > patience):
            return ends
        if state != printed:
            display.line("jobs", state)
            printed, changed = state, display.now()
        elif display.silent_too_long():
            display.line("jobs", f"{state}, for {progress.clock(unchanged)}")
        time.sleep(POLL_SECONDS)


def _print_ends(
    display: Display, causes: Causes, jobs: Iterable[tuple[Run, str | None, str | None]]
) -> None:
    """A line about each job that has ended since the last look. `jobs`: with its end then, and now."""
    for job, before, end in jobs:
        if end and not before:
            step = causes.last_step(job) if end in SUCCEEDED else None
            last = f"; its last step: {step}" if step else ""
            display.line("jobs", f"{job.namespace}/{job.name} is {end}{last}")


def _end(api: Api, job: Run) -> str | None:
    """The condition with which the job ended; STOPPED where somebody has deleted it."""
    path = f"{job.api}/namespaces/{job.namespace}/{job.kind.lower()}s/{job.name}"
    try:
        return outcome(api.request("GET", path))
    except ApiError as error:
        if error.code == HTTPStatus.NOT_FOUND:
            return STOPPED
        raise


def _summary(
    stack: Stack, stages: Stages, jobs: list[Run], rows: list[str], *, first: bool
) -> None:
    """Print nodes, `jobs`, which are in the cluster, and `rows`, those of the stages. `first`: it was the first update
    of the stack, which also lists what is simulated."""
    display = stages.display
    with logged_in(engine.complete(stack)) as login:
        environment = login()
        display.section("nodes", _nodes(login))
        for job in jobs:
            display.section(
                f"job {job.namespace}/{job.name}",
                [
                    *_kubectl(
                        environment, progress.JOB, job.kind.lower(), job.name, "-n", job.namespace
                    ),
                    *_kubectl(
                        environment, progress.PODS, "pods", "-n", job.namespace, "-l", job.selector
                    ),
                ],
            )
    if rows:
        display.section("stages", rows)
    display.section("simulated", _simulated(first=first))
    if jobs:
        display.section("not tried here", [f"  {line}" for line in progress.NOT_RUN])
    if stages.warnings:
        display.section(*progress.shown_warnings(stages.warnings))
    logs = [
        (f"trainyard logs {job.entry}{option_of(stack)}", "print the logs of all ranks")
        for job in jobs
    ]
    display.section(
        "next",
        progress.suggestions(
            [
                (
                    f"trainyard status{option_of(stack)}",
                    "print nodes and jobs, and what keeps a job from running",
                ),
                *logs,
                *([warnings_in_full(stack)] if stages.warnings else []),
                (
                    f"trainyard spent{option_of(stack)}",
                    "print what each finished run took and cost",
                ),
                (
                    f'eval "$(make env{stack.chosen})"',
                    "use plain pulumi, kubectl, helm and aws in this shell",
                ),
                (f"make down{stack.chosen}", "delete everything of this stack"),
            ]
        ),
    )


def _simulated(*, first: bool) -> list[str]:
    """Lines about what is not real: all at the first update, and where they are written at later ones."""
    if not first:
        return ["  AWS, GPUs and storage, as rehearsal/README.md lists"]
    facts = {"speed": paths.world().speed, "state": paths.FILE_SYSTEMS}
    return [f"  {line.format(**facts)}" for line in progress.SIMULATED]


def _nodes(login: Login) -> list[str]:
    """The nodes, as `trainyard nodes` prints them."""
    try:
        with proxied(login, REQUEST_SECONDS) as kubectl:
            found = read(kubectl, logs=False)
    except RuntimeError as error:
        if FORBIDDEN in str(error):
            return ["  not shown: this stack's identity cannot read nodes"]
        return [f"  {error}"]
    return [f"  {line}".rstrip() for line in nodes.text([*nodes.nodes_of(found)])]


def _kubectl(environment: Environment, columns: str, *words: str) -> list[str]:
    done = subprocess.run(
        ["kubectl", "get", *words, f"--output=custom-columns={columns}"],
        capture_output=True,
        text=True,
        env=environment,
    )
    if done.returncode and "forbidden" in done.stderr:
        return [f"  not shown: this stack's identity cannot read {words[0]}"]
    return [f"  {line}" for line in (done.stdout or done.stderr).splitlines()]
