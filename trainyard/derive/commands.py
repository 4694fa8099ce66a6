"""The command of a job's container: that of its settings `torchrun`, `script` or `command`."""

from __future__ import annotations

from dataclasses import replace

from trainyard.objects.jobs.pod_template import Training
from trainyard.objects.jobs.rendezvous import MASTER
from trainyard.settings.job import JobConfig, TorchrunConfig

MAX_RESTARTS = "--max_restarts"
"""Argument of torchrun. It wins over PET_MAX_RESTARTS, which the operator sets from elasticPolicy."""
RUN_ID = "--rdzv_id=$(PET_MASTER_ADDR)"
"""Argument of torchrun where runs may share an etcd. It came later than the run's identity."""


def command_of(job: JobConfig) -> tuple[str, ...]:
    """Words of the command; none where the runtime or the image has it."""
    if job.torchrun:
        return _torchrun(job.torchrun)
    if job.script is None:
        return job.command
    # A failed clone or pip must fail the pod, not end in a torchrun without its script.
    return ("/bin/bash", "-c", f"set -euo pipefail\n{job.script}")


def _torchrun(wanted: TorchrunConfig) -> tuple[str, ...]:
    """torchrun, which reads PET_NNODES, PET_NPROC_PER_NODE and PET_NODE_RANK by itself. Runs that share
    an etcd meet under an id each: torchrun's default is the same for all."""
    meet = wanted.rendezvous
    return (
        "torchrun",
        f"{MAX_RESTARTS}={wanted.max_restarts}",
        f"--rdzv_backend={'etcd-v2' if meet else 'c10d'}",
        f"--rdzv_endpoint={meet.etcd if meet else MASTER}",
        *([RUN_ID] if meet else []),
        wanted.script,
        *wanted.arguments,
    )


def lasting(job: JobConfig, training: Training) -> Training:
    """The training with as many restarts of torchrun as an elastic job may have. torchrun takes one on each
    node that stays whenever a node leaves; without one it fails, and closes the rendezvous for all others. The
    run's identity has the command without this: it came later."""
    if not job.elastic or not job.pytorch_job or not job.torchrun:
        return training
    written = f"{MAX_RESTARTS}={job.torchrun.max_restarts}"
    most = f"{MAX_RESTARTS}={max(job.torchrun.max_restarts, job.pytorch_job.restarts)}"
    command = tuple(most if word == written else word for word in training.command)
    return replace(training, command=command)
