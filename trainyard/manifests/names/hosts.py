"""Hosts at which the nodes of a job meet: names of its own pods, or of something that somebody else must
serve.

Sources: training-operator v1.8.1 (a Service of each pod: <job>-<replica>-<number>), JobSet v0.10.1 (pods
<job>-<replicated job>-<number>-<number>, in the subdomain <job>).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from trainyard.catalog.job_kinds import JOB_KINDS
from trainyard.derive.scripts import launches
from trainyard.manifests.context import ManifestContext
from trainyard.manifests.document import Path
from trainyard.manifests.names.around import Around
from trainyard.problems import At, InputWarning

VARIABLES = ("MASTER_ADDR", "PET_RDZV_ENDPOINT", "RDZV_ENDPOINT", "PET_MASTER_ADDR")
AT_HOME = re.compile(r"localhost|127\..*|0\.0\.0\.0|\[?::1?\]?|")
"""Hosts of which another rule speaks: trainyard/rules/one_node.py, trainyard/rules/jobs.py."""
OF_PROGRAMS = re.compile(r"--(?:dist[-_]url|init[-_]method)[= ][\"']?tcp://([^\s\"'/]+)")
"""Options by which programs hand an address to torch.distributed.init_process_group themselves."""
ELASTIC: Path = ("spec", "elasticPolicy", "rdzvHost")


def host_problems(contexts: Sequence[ManifestContext], around: Around) -> Iterator[InputWarning]:
    """The warning of each host that is no pod of the job."""
    for context in contexts:
        if not around.job or (context.nodes < 2 and not context.get("spec", "elasticPolicy")):
            continue
        for place, endpoint in _endpoints(context):
            host = re.sub(r":\d*$", "", re.sub(r"^\w+://", "", endpoint.strip("\"'")))
            if "$" in host or AT_HOME.fullmatch(host) or _is_own(context, host, around.job):
                continue
            yield place.warning(
                f"the nodes meet at {host}, which is no pod of the job: where nobody serves the name, none of"
                f" them starts; create it in namespace {around.namespace} before `pulumi up`, or"
                f" {_way(context, around.job)}"
            )


def _endpoints(context: ManifestContext) -> Iterator[tuple[At, str]]:
    if isinstance(host := context.get(*ELASTIC), str):
        yield context.workload.at(*ELASTIC), host
    for container in context.view.containers:
        for launch in launches(container.script):
            yield container.where("script"), launch.endpoint
        for found in OF_PROGRAMS.finditer(container.script):
            yield container.where("script"), found[1]
        for name in VARIABLES:
            yield from (
                (container.where(f"env.{name}"), host) for host in [container.env.get(name)] if host
            )


def _is_own(context: ManifestContext, host: str, job: str) -> bool:
    """True for the name of a pod, with or without its domain."""
    first = re.escape(job)
    kind = JOB_KINDS.get(context.workload.kind)
    if kind and kind.replicas:
        roles = "|".join(pod.role.lower() for pod in context.workload.pods)
        return bool(re.fullmatch(rf"{first}-({roles})-\d+(\..+)?", host))
    jobs = "|".join(re.escape(pod.role) for pod in context.runtime_pods) or r"[a-z0-9-]+"
    return bool(re.fullmatch(rf"{first}-({jobs})-\d+-\d+\.{first}(\..+)?", host))


def _way(context: ManifestContext, job: str) -> str:
    """Advice about the host, from a verb on."""
    if not JOB_KINDS.get(context.workload.kind, JOB_KINDS["TrainJob"]).has_runtime:
        roles = [pod.role for pod in context.workload.pods]
        first = "master" if "Master" in roles else "worker"
        return f"meet at {job}-{first}-0"
    return "leave it out: torchrun reads PET_MASTER_ADDR and PET_MASTER_PORT"
