"""Errors about what the webhook of a Trainer refuses in a TrainJob beside its pods: initializers,
and the managers of patches; and what that of the training-operator refuses: roles, and containers
without their name. Labels that the API server refuses in any object.

Sources: Kubeflow Trainer at v2.1.0 and v2.3.0 (trainjob_webhook.go, and the plugin jobset's Validate),
training-operator v1.8.1 (pkg/webhooks; for MPIJobs, which have no webhook, mpi_validation.go).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from trainyard.catalog.job_kinds import job_kind
from trainyard.manifests.context import ManifestContext
from trainyard.manifests.document import items, look, mapping
from trainyard.problems import InputError
from trainyard.rules.pods import label_errors

STRICT_FROM = (2, 3)
"""Minor release from which an initializer needs its mount, a storageUri its scheme, and a manager its
domain."""


def initializer(context: ManifestContext) -> Iterator[InputError]:
    """A data set or a model that no job of the runtime fetches."""
    if not context.runtime_pods:
        return
    for part in mapping(context.get("spec", "initializer")):
        name = f"{part}-initializer"
        containers = [
            container.body
            for pod in context.runtime_pods
            for container in pod.containers
            if pod.role == name == container.body.get("name")
        ]
        mounts = [mount.get("name") for it in containers for mount in items(it.get("volumeMounts"))]
        path = ("spec", "initializer", str(part))
        if not containers:
            jobs = ", ".join(pod.role for pod in context.runtime_pods)
            must = f"have a job {name} in its runtime, with a container of that name"
            yield context.error(path, must, f"a runtime with {jobs}", "delete it, or add the job")
        elif context.trainer_minor >= STRICT_FROM and "initializer" not in mounts:
            must = f"have a mount of `initializer` in the container {name} of its runtime"
            fix = "add volumeMounts: [{name: initializer, mountPath: /workspace}] in the runtime"
            yield context.error(path, must, ", ".join(map(str, mounts)) or "no mount", fix)


def storage_uri(context: ManifestContext) -> Iterator[InputError]:
    """A place without a scheme."""
    for part in mapping(context.get("spec", "initializer")):
        path = ("spec", "initializer", str(part), "storageUri")
        uri = context.get(*path)
        is_old = context.trainer_minor < STRICT_FROM
        if uri and not is_old and not re.match(r"[A-Za-z][\w+.-]*://", str(uri)):
            yield context.error(
                path, "be a URI with a scheme", uri, f"write hf://{uri}, or s3://{uri}"
            )


def patch_manager(context: ManifestContext) -> Iterator[InputError]:
    """A patch of somebody without a domain."""
    for path in context.workload.find("spec runtimePatches * manager"):
        manager = str(look(context.workload.body, *path))
        has_domain = re.fullmatch(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?/\S+", manager)
        if context.trainer_minor >= STRICT_FROM and not has_domain:
            must = "be a domain and a path"
            yield context.error(path, must, manager, f"write example.com/{manager}")


def override_containers(context: ManifestContext) -> Iterator[InputError]:
    """A container of an override that no pod of the runtime has."""
    for pod in context.workload.pods:
        base = [each for each in context.runtime_pods if each.role in pod.jobs]
        if pod.role != "override" or not base:
            continue
        names = {str(container.body.get("name")) for each in base for container in each.containers}
        for container in pod.containers:
            if (name := container.body.get("name")) and name not in names:
                known = ", ".join(sorted(names))
                must = f"be a container of the runtime's pods: {known}"
                yield context.error(container.at("name"), must, name, f"write {known}")


def labels(context: ManifestContext) -> Iterator[InputError]:
    """Labels of an object and of its pods."""
    for path in context.workload.lines:
        if path[-3:-1] == ("metadata", "labels") and (len(path) == 3 or path[-4] == "template"):
            at, value = context.workload.at(*path), context.get(*path)
            yield from label_errors(at, str(path[-1]), str(value))


def named_container(context: ManifestContext) -> Iterator[InputError]:
    """Pods of the training-operator without the container that it looks for."""
    wanted = job_kind(context.workload.kind).container
    for pod in context.workload.pods:
        names = [container.body.get("name") for container in pod.containers]
        if wanted and names and wanted not in names:
            must = f"have a container with the name {wanted}"
            fix = f"write name: {wanted}"
            yield context.error((*pod.path, "containers"), must, names, fix)


def replicas(context: ManifestContext) -> Iterator[InputError]:
    """Replicas that the training-operator refuses or never starts."""
    yield from named_container(context)
    yield from roles(context)


def _role_fix(role: str, known: Sequence[str], replicas: Collection[str]) -> str:
    """Fix of a role that is none of `known`; empty for one whose first letter is small and that nothing else
    stands for."""
    meant = role.capitalize()
    if meant in known:
        return f"delete it: {meant} is there" if meant in replicas else ""
    if {*known} <= {*replicas}:
        return f"delete it: {' and '.join(known)} are there"
    return "write one of them, or delete it"


def roles(context: ManifestContext) -> Iterator[InputError]:
    """Roles of pods that the training-operator refuses or never starts. It writes their first letter large itself
    (training-operator v1.8.1, defaults.go), unless that role is there, too."""
    kind = job_kind(context.workload.kind)
    replicas, at = mapping(context.get("spec", kind.replicas)), ("spec", kind.replicas)
    for role in map(str, replicas):
        if role not in kind.roles and (fix := _role_fix(role, kind.roles, replicas)):
            yield context.error((*at, role), f"be one of {', '.join(kind.roles)}", role, fix)
    leader = kind.needed_role
    if leader and replicas and leader not in replicas:
        must = f"have a {leader}, with whose end the job ends"
        yield context.error(at, must, ", ".join(map(str, replicas)), f"add a {leader}")
    count = look(replicas, leader, "replicas") if leader else None
    if count not in (None, 1):
        yield context.error((*at, leader, "replicas"), "be 1", count, "write 1")
