"""`trainyard tensorboard JOB`: TensorBoard over what a job has written to a store, in a pod without a GPU.

Its image is that of the job: what writes event files with torch or transformers has TensorBoard. So it is on the
job's nodes already, in the registry that the nodes can reach, and one that a team may use.
"""

from __future__ import annotations

import argparse
import posixpath

from trainyard.derive.loads import without_gpus
from trainyard.operations.nodes.look import Look, opened, words_of
from trainyard.operations.nodes.shell_job import STORES, ShellError, Wanted, pool_of
from trainyard.operations.reach.stack import Stack
from trainyard.problems import by_option
from trainyard.settings.job import JobConfig

PORT = 6006
AMOUNTS = {"cpus_per_node": 1, "memory_gib": 4}
"""Requests of its pod: beside a gang a tenth of the node is free."""


def main(options: argparse.Namespace) -> int:
    """Return 0 where ctrl-C ends it; 1 where there is nothing to show, it does not start or ends by itself; 2 where
    there is no terminal to ask."""

    def look_of(stack: Stack) -> tuple[Look, Wanted]:
        name = job_of(stack, options.job)
        job, (store, directory, what) = stack.jobs[name], shown(stack.jobs[name], name)
        folder = posixpath.join(STORES, store, directory).rstrip("/")
        look = Look(
            title="TensorBoard",
            port=PORT,
            command=("tensorboard", f"--logdir={folder}", "--host=127.0.0.1", f"--port={PORT}"),
            # Images for GPUs show all of a node's to a pod that has asked for none.
            variables={"CUDA_VISIBLE_DEVICES": ""},
            says=(f"TensorBoard of jobs.{name} over {what}: {store}/{directory}",),
        )
        pool = pool_of(stack, options.pool) if options.pool else cheapest_pool(stack, job.pool)
        wanted = Wanted(
            pool=pool,
            image=options.image or job.image,
            gpus=None,
            minutes=options.minutes,
            words=words_of(look, options.minutes),
            amounts=AMOUNTS,
        )
        return look, wanted

    return opened(options, look_of)


def job_of(stack: Stack, wanted: str | None) -> str:
    """The entry of this name; without a name the only one with something to show. Raises ShellError."""
    named = [name for name, job in stack.jobs.items() if job.tensorboard or job.checkpoints]
    if wanted is None and len(named) == 1:
        return named[0]
    if wanted is not None and wanted in stack.jobs:
        return wanted
    got = f"{stack.file} describes no job {wanted}" if wanted else "no job is named"
    raise ShellError(f"{got}. Fix: {by_option('--job', stack.jobs, 'a job')}")


def shown(job: JobConfig, name: str) -> tuple[str, str, str]:
    """Store, directory, and the setting that names them. Of a directory for each run, or for each run of a sweep,
    the one above, so that TensorBoard compares the runs. ShellError where the job names no directory."""
    setting = "tensorboard" if job.tensorboard else "checkpoints"
    at = job.tensorboard or job.checkpoints
    if at is None:
        raise ShellError(
            f"jobs.{name} writes to no store. Fix: add tensorboard: {{store: …, directory: events/{name}}}"
            " to the job, and write event files into $TENSORBOARD_DIR"
        )
    before, several, _ = at.directory.partition("{")
    above = posixpath.dirname(before)
    directory = above if several and (above or job.sweep) else job.in_run(at.directory)
    return at.store, directory, f"its {setting}"


def cheapest_pool(stack: Stack, otherwise: str) -> str:
    """The first pool without GPUs, else the other one."""
    pools = stack.environment.pools
    return next((name for name, pool in pools.items() if without_gpus(pool)), otherwise)
