"""`up`: create or update a stack, follow its jobs to their end, and print what there is."""

from __future__ import annotations

import argparse
import subprocess
import time
from typing import NamedTuple

from catalog.job_kinds import JOB_KINDS, SUCCEEDED, outcome
from operations.kubectl import Environment, logged_in
from rehearsal import control_plane, engine, paths, progress
from rehearsal.commands.steps import FAILED, REFUSED, failed, open_world, repair, update
from rehearsal.engine import Stack
from rehearsal.kube import Api, Object
from rehearsal.progress import Display, Stages

POLL_SECONDS = 1


def up(options: argparse.Namespace) -> int:
    """Create or update the stack, and wait until its jobs have finished."""
    stack, display = engine.find(options.stack), Display()
    if not open_world(stack, display, speed=options.speed):
        return REFUSED
    engine.prepare(stack, display.reporter("engine"))
    repair(stack, display)
    stages = Stages(display)
    if status := update(stack, stages, "up"):
        return failed(stack, stages, status)
    display.line("engine", f"{stages.changes()} changes")
    return _finish(stack, stages, options.wait)


def _finish(stack: Stack, stages: Stages, patience: float) -> int:
    """Wait for the jobs, then print nodes, jobs and stages."""
    engine.write_kubeconfig(stack)
    jobs = [
        Run(**{field: job[field] for field in Run._fields})
        for job in (engine.outputs(stack).get("jobs") or {}).values()
    ]
    began = stages.display.now()
    ends = _follow_jobs(
        control_plane.admin(paths.world(), outside=True), jobs, stages.display, patience
    )
    _summary(stack, stages, jobs, stages.display.now() - began)
    for job, end in zip(jobs, ends, strict=True):
        if end not in SUCCEEDED:
            print(
                f"\njob {job.namespace}/{job.name} is {end or 'not finished'}: `make"
                f" status{stack.chosen}` prints the cause"
            )
    return 0 if set(ends) <= set(SUCCEEDED) else FAILED


class Run(NamedTuple):
    """A job of the stack, from its outputs."""

    kind: str
    namespace: str
    name: str

    @property
    def selector(self) -> str:
        """Selects its pods."""
        return f"{JOB_KINDS[self.kind].pod_label}={self.name}"


def _follow_jobs(api: Api, jobs: list[Run], display: Display, patience: float) -> list[str | None]:
    """How the jobs ended, once all have ended or no pod has changed for `patience` seconds. None: the
    job has not ended."""
    printed, changed = "", display.now()
    while True:
        ends = [_end(api, job) for job in jobs]
        going = [job for job, end in zip(jobs, ends, strict=True) if not end]
        state = "; ".join(
            f"{job.namespace}/{job.name}: {progress.phases(_pods(api, job))}" for job in going
        )
        unchanged = display.now() - changed
        if not going or (state == printed and unchanged > patience):
            return ends
        if state != printed:
            display.line("jobs", state)
            printed, changed = state, display.now()
        elif display.silent_too_long():
            display.line("jobs", f"{state}, for {progress.clock(unchanged)}")
        time.sleep(POLL_SECONDS)


def _end(api: Api, job: Run) -> str | None:
    path = f"/apis/{JOB_KINDS[job.kind].api_version}/namespaces/{job.namespace}/{job.kind.lower()}s/{job.name}"
    return outcome(api.request("GET", path))


def _pods(api: Api, job: Run) -> list[Object]:
    selector = job.selector.replace("=", "%3D")
    return api.request("GET", f"/api/v1/namespaces/{job.namespace}/pods?labelSelector={selector}")[
        "items"
    ]


def _summary(stack: Stack, stages: Stages, jobs: list[Run], waited: float) -> None:
    display = stages.display
    with logged_in(engine.environment(stack)) as login:
        environment = login()
        display.section("nodes", _kubectl(environment, progress.NODES, "nodes"))
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
    if stages.stages:
        display.section("stages", progress.stage_table(stages.stages, waited))
    facts = {"speed": paths.world().speed, "state": paths.FILE_SYSTEMS}
    display.section("simulated", [f"  {line.format(**facts)}" for line in progress.SIMULATED])
    logs = [
        (
            (
                f"kubectl --kubeconfig $(make kubeconfig{stack.chosen}) logs -n {job.namespace} -l"
                f" {job.selector}"
            ),
            "print the logs of the ranks",
        )
        for job in jobs
    ]
    display.section(
        "next",
        progress.suggestions(
            [
                (
                    f"make status{stack.chosen}",
                    "print nodes and jobs, and what keeps a job from running",
                ),
                *logs,
                (
                    f'eval "$(make env{stack.chosen})"',
                    "use plain pulumi, kubectl, helm and aws in this shell",
                ),
                ("make down", "delete everything"),
            ]
        ),
    )


def _kubectl(environment: Environment, columns: str, *words: str) -> list[str]:
    done = subprocess.run(
        ["kubectl", "get", *words, f"--output=custom-columns={columns}"],
        capture_output=True,
        text=True,
        env=environment,
    )
    return [f"  {line}" for line in (done.stdout or done.stderr).splitlines()]
