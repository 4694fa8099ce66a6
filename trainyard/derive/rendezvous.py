"""How the nodes of a job meet: the address of the first one, and the variable by which they wait for
each other."""

from __future__ import annotations

from trainyard.objects.jobs.rendezvous import JOIN, VARIABLE, WHOLE, conf
from trainyard.settings.environment import OwnRuntimeConfig
from trainyard.settings.job import JobConfig

_ADDRESS = "$(PET_MASTER_ADDR)"
MASTER = f"{_ADDRESS}:$(PET_MASTER_PORT)"
"""Where a gang meets, in the words of Kubernetes."""


def with_whole_name(command: tuple[str, ...], namespace: str) -> tuple[str, ...]:
    """The command of a TrainJob's torchrun with the whole name of the first pod, which that pod has in
    its /etc/hosts. By the short name it knows itself only once DNS does: torch asks once, and a first
    node that is not sure waits for itself (torch: rendezvous/utils.py, _matches_machine_hostname)."""
    short = f"--rdzv_endpoint={MASTER}"
    whole = short.replace(_ADDRESS, f"{_ADDRESS}.{namespace}.svc.cluster.local")
    return tuple(whole if word == short else word for word in command)


def waits(job: JobConfig, own: OwnRuntimeConfig | None) -> dict[str, str]:
    """The variable, for a job that meets others; what the job or its own runtime says wins."""
    said = {*job.env, *job.secrets, *(own.env if own else ())}
    if VARIABLE in said or (job.nodes == 1 and job.elastic is None):
        return {}
    in_etcd = job.torchrun is not None and job.torchrun.rendezvous is not None
    return {VARIABLE: conf(JOIN, WHOLE) if in_etcd else conf()}
