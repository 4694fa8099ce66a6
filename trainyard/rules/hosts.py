"""Hosts at which the nodes of a job meet: names of its own pods, or of something that somebody else must
serve.

Sources: training-operator v1.8.1 (a Service of each pod: <job>-<replica>-<number>), JobSet v0.10.1 (pods
<job>-<replicated job>-<number>-<number>, in the subdomain <job>).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from trainyard.derive.job_view import ContainerView, JobView
from trainyard.derive.scripts import launches
from trainyard.problems import At, InputWarning
from trainyard.settings.job import JobConfig

VARIABLES = ("MASTER_ADDR", "PET_RDZV_ENDPOINT", "RDZV_ENDPOINT", "PET_MASTER_ADDR")
AT_HOME = re.compile(r"localhost|127\..*|0\.0\.0\.0|\[?::1?\]?|")
"""Hosts of which another rule speaks: one_node.py, jobs.py."""
OF_PROGRAMS = re.compile(r"--(?:dist[-_]url|init[-_]method)[= ][\"']?tcp://([^\s\"'/]+)")
"""Options by which programs hand an address to torch.distributed.init_process_group themselves."""
BY_TRAINER = "leave it out: torchrun reads PET_MASTER_ADDR and PET_MASTER_PORT"


def entry_host_warnings(view: JobView, name: str, job: JobConfig) -> Iterator[InputWarning]:
    """The warning of each host of an entry that is no pod of its job. The etcd of `torchrun` is a setting."""
    if job.torchrun or (view.nodes < 2 and not view.elastic):
        return
    roles = ("worker",) if job.elastic else ("master", "worker")
    pods = of_operator(name, roles) if job.pytorch_job else of_jobset(name, ("node", "launcher"))
    way = f"meet at {name}-{roles[0]}-0" if job.pytorch_job else BY_TRAINER
    for container in view.containers:
        for place, endpoint in endpoints(container):
            yield from host_warnings(
                place, endpoint, pods, f"create it before `pulumi up`, or {way}"
            )


def endpoints(container: ContainerView) -> Iterator[tuple[At, str]]:
    """Addresses of a container at which its nodes meet, each with its place."""
    for launch in launches(container.script):
        yield container.where("script"), launch.endpoint
    for found in OF_PROGRAMS.finditer(container.script):
        yield container.where("script"), found[1]
    for name in VARIABLES:
        if host := container.env.get(name):
            yield container.where(f"env.{name}"), host


def host_warnings(place: At, endpoint: str, pods: str, ways: str) -> Iterator[InputWarning]:
    """The warning of an address whose host is no pod of the job. `pods`: pattern of their names."""
    host = re.sub(r":\d*$", "", re.sub(r"^\w+://", "", endpoint.strip("\"'")))
    if not ("$" in host or AT_HOME.fullmatch(host) or re.fullmatch(rf"{pods}(\..+)?", host)):
        yield place.warning(
            f"the nodes meet at {host}, which is no pod of the job: where nobody serves the name, none of them"
            f" starts; {ways}"
        )


def of_operator(job: str, roles: Iterable[str]) -> str:
    """Pattern of the names of a job's pods by the training-operator, without their domain."""
    return rf"{re.escape(job)}-({'|'.join(roles)})-\d+"


def of_jobset(job: str, jobs: Iterable[str]) -> str:
    """Pattern of the names of a job's pods by JobSet, without their domain. `jobs`: patterns of its replicated jobs."""
    first = re.escape(job)
    return rf"{first}-({'|'.join(jobs)})-\d+-\d+\.{first}"
