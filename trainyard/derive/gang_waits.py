"""The variables by which the nodes of a gang wait for each other and meet: trainyard/objects/jobs/rendezvous.py
has their values and the port."""

from __future__ import annotations

from trainyard.objects.jobs.rendezvous import JOIN, OWN_STORE, VARIABLE, WHOLE, conf
from trainyard.settings.environment import OwnRuntimeConfig
from trainyard.settings.job import JobConfig


def waits(job: JobConfig, own: OwnRuntimeConfig | None) -> dict[str, str]:
    """The variables, for a job that meets others; what the job or its own runtime says wins."""
    said = {*job.env, *job.secrets, *(own.env if own else ())}
    if job.nodes == 1 and job.elastic is None:
        return {}
    in_etcd = job.torchrun is not None and job.torchrun.rendezvous is not None
    wanted = {VARIABLE: conf(JOIN, WHOLE) if in_etcd else conf()}
    wanted |= {OWN_STORE: "1"} if job.elastic else {}
    return {name: value for name, value in wanted.items() if name not in said}
