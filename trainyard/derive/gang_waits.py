"""The variable by which the nodes of a gang wait for each other: trainyard/objects/jobs/rendezvous.py has
its value and the port."""

from __future__ import annotations

from trainyard.objects.jobs.rendezvous import JOIN, VARIABLE, WHOLE, conf
from trainyard.settings.environment import OwnRuntimeConfig
from trainyard.settings.job import JobConfig


def waits(job: JobConfig, own: OwnRuntimeConfig | None) -> dict[str, str]:
    """The variable, for a job that meets others; what the job or its own runtime says wins."""
    said = {*job.env, *job.secrets, *(own.env if own else ())}
    if VARIABLE in said or (job.nodes == 1 and job.elastic is None):
        return {}
    in_etcd = job.torchrun is not None and job.torchrun.rendezvous is not None
    return {VARIABLE: conf(JOIN, WHOLE) if in_etcd else conf()}
