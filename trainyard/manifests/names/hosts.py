"""Hosts at which the nodes of a file's job meet: trainyard/rules/hosts.py says which are its own pods."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from trainyard.catalog.job_kinds import JOB_KINDS
from trainyard.manifests.context import ManifestContext
from trainyard.manifests.document import Path
from trainyard.manifests.names.around import Around
from trainyard.problems import At, InputWarning
from trainyard.rules.hosts import BY_TRAINER, endpoints, host_warnings, of_jobset, of_operator

ELASTIC: Path = ("spec", "elasticPolicy", "rdzvHost")


def host_problems(contexts: Sequence[ManifestContext], around: Around) -> Iterator[InputWarning]:
    """The warning of each host that is no pod of the job."""
    for context in contexts:
        if not around.job or (context.nodes < 2 and not context.get("spec", "elasticPolicy")):
            continue
        pods, way = _pods(context, around.job), _way(context, around.job)
        ways = f"create it in namespace {around.namespace} before `pulumi up`, or {way}"
        for place, endpoint in _endpoints(context):
            yield from host_warnings(place, endpoint, pods, ways)


def _endpoints(context: ManifestContext) -> Iterator[tuple[At, str]]:
    if isinstance(host := context.get(*ELASTIC), str):
        yield context.workload.at(*ELASTIC), host
    for container in context.view.containers:
        yield from endpoints(container)


def _pods(context: ManifestContext, job: str) -> str:
    """Pattern of the names of its pods."""
    kind = JOB_KINDS.get(context.workload.kind)
    if kind and kind.replicas:
        return of_operator(job, (pod.role.lower() for pod in context.workload.pods))
    return of_jobset(job, [re.escape(pod.role) for pod in context.runtime_pods] or ["[a-z0-9-]+"])


def _way(context: ManifestContext, job: str) -> str:
    """Advice about the host, from a verb on."""
    if not JOB_KINDS.get(context.workload.kind, JOB_KINDS["TrainJob"]).has_runtime:
        roles = [pod.role for pod in context.workload.pods]
        first = "master" if "Master" in roles else "worker"
        return f"meet at {job}-{first}-0"
    return BY_TRAINER
