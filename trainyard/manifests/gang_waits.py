"""The variable by which the nodes of a YAML job wait for each other (trainyard/objects/jobs/rendezvous.py): added where
the file does not set it. It came later than the identity of a run, and is no part of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from trainyard.catalog.job_kinds import JOB_KINDS, MORE_KINDS
from trainyard.manifests.context import ManifestContext
from trainyard.manifests.document import TRAINER, items, mapping
from trainyard.objects.jobs.pytorch import CONTAINER
from trainyard.objects.jobs.rendezvous import VARIABLE, conf
from trainyard.plans.jobs import Spec
from trainyard.problems import InputWarning
from trainyard.rules.gang_waits import too_short


def lacks_waiting(context: ManifestContext | None) -> bool:
    """True where pods of the job meet, and neither the job nor its runtime says how long they
    wait."""
    if context is None or context.nodes < 2:
        return False
    kind = JOB_KINDS[context.workload.kind]
    if context.workload.kind in MORE_KINDS:
        return False
    if kind.has_runtime and (context.policy("torch") is None or context.get(*TRAINER) is None):
        return False
    by_policy = context.get("spec", "elasticPolicy", "rdzvConf")
    return not by_policy and VARIABLE not in f"{context.workload.body} {context.runtime}"


def short_policy(context: ManifestContext) -> Iterator[InputWarning]:
    """Limits of a PyTorchJob's elasticPolicy, which reach torchrun as the variable."""
    policy = mapping(context.get("spec", "elasticPolicy"))
    said = {str(each.get("key")): str(each.get("value")) for each in items(policy.get("rdzvConf"))}
    backend = str(policy.get("rdzvBackend") or "c10d")
    if said and (text := too_short("rdzvConf", said, backend)):
        yield context.warning(("spec", "elasticPolicy", "rdzvConf"), text)


def waiting(kind: str, spec: Mapping[str, Any]) -> Spec:
    """The spec of the job, with the variable in each container that trains."""
    if JOB_KINDS[kind].has_runtime:
        return {**spec, "trainer": _told(spec["trainer"])}
    replicas = {role: _replica(each) for role, each in spec["pytorchReplicaSpecs"].items()}
    return {**spec, "pytorchReplicaSpecs": replicas}


def _replica(replica: Mapping[str, Any]) -> Spec:
    template = replica["template"]
    containers = [
        _told(each) if each.get("name") == CONTAINER else each
        for each in template["spec"]["containers"]
    ]
    pod = {**template["spec"], "containers": containers}
    return {**replica, "template": {**template, "spec": pod}}


def _told(container: Mapping[str, Any]) -> Spec:
    mine = {"name": VARIABLE, "value": conf()}
    return {**container, "env": [*(container.get("env") or []), mine]}
