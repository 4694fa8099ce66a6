"""Amounts that the pods of an object of a YAML file request of their nodes, and their shared memory."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from trainyard.catalog.aws.node_disks import OF_SYSTEM, ON_NVME
from trainyard.catalog.quantities import amount
from trainyard.derive.job_view import (
    NODE_DISK,
    NODE_SYSTEM,
    PodRequest,
    SharedMemory,
    most_shared_memory,
)
from trainyard.manifests.document import TRAINER, Container, Path, Pod, Workload, items, look
from trainyard.objects.jobs.pod_template import GPU

IN_BYTES = ("memory", "ephemeral-storage")
MEANS_GPUS = re.compile(r"nvidia\.com/(?!gpu$)|^(?!nvidia).*gpu|neuron|tpu|gaudi")
"""Resource that stands for a GPU, or for a device in its place."""

TRAINS = "node"
"""Container of a runtime to which a TrainJob gives its resources (Trainer 2.1 and 2.3, pkg/constants)."""


def means_gpus(pods: Iterable[Pod]) -> bool:
    """True for pods that ask for GPUs by a name that no node has."""
    containers = [container for pod in pods for container in pod.containers]
    return any(MEANS_GPUS.search(name) for each in containers for name in each.requests())


def volume_kinds(spec: Mapping[str, Any]) -> dict[str, frozenset[str]]:
    """Volume of a pod → its kinds; none where two have one name."""
    volumes = items(spec.get("volumes"))
    names = [str(volume.get("name")) for volume in volumes]
    return {
        name: frozenset(_kinds(volume)) if names.count(name) == 1 else frozenset()
        for name, volume in zip(names, volumes, strict=True)
    }


def _kinds(volume: Mapping[str, Any]) -> Iterator[str]:
    """The kinds of a volume. A hostPath whose files end with the node has one of its own."""
    host = str(look(volume, "hostPath", "path") or "")
    for kind in {*volume} - {"name"}:
        of_node = (
            NODE_DISK if ON_NVME.search(host) else NODE_SYSTEM if OF_SYSTEM.match(host) else kind
        )
        yield of_node if kind == "hostPath" else str(kind)


def pod_requests(workload: Workload) -> Iterator[PodRequest]:
    """The request of each pod for each resource, GPUs apart. An init container runs before the others, and
    requests by itself."""
    for pod in workload.pods:
        for containers in (pod.containers, *([each] for each in pod.init_containers)):
            yield from _requests(workload, containers)


def _requests(workload: Workload, containers: Sequence[Container]) -> Iterator[PodRequest]:
    wanted: dict[str, list[tuple[Fraction, str, Path]]] = {}
    for container in containers:
        for resource, (text, path) in container.requests().items():
            if resource != GPU and (number := amount(text)):
                wanted.setdefault(resource, []).append((number, text, path))
    for resource, parts in wanted.items():
        yield _request(workload, resource, parts)


def _request(
    workload: Workload, resource: str, parts: Sequence[tuple[Fraction, str, Path]]
) -> PodRequest:
    """Largest request of a resource by the containers of a pod together."""
    unit, suffix = (2**30, "Gi") if resource in IN_BYTES else (1, "")
    total = sum(number for number, *_ in parts) / Fraction(unit)
    _, text, path = max(parts)
    return PodRequest(
        resource=resource,
        amount=total,
        text=text if len(parts) == 1 else f"{float(total):g}{suffix} in {len(parts)} containers",
        suffix=suffix,
        place=workload.at(*path),
    )


def shared_memory(workload: Workload, of_trainer: Any) -> Iterator[SharedMemory]:
    """The volumes in memory with a size, where each container that mounts one has a limit. `of_trainer`: resources
    that a TrainJob gives the container that trains, in the place of its runtime's."""
    for pod in workload.pods:
        for number, volume in enumerate(items(pod.spec.get("volumes"))):
            size = amount(look(volume, "emptyDir", "sizeLimit"))
            limit = _memory_limit(pod, str(volume.get("name")), of_trainer)
            if size and limit and look(volume, "emptyDir", "medium") == "Memory":
                most = most_shared_memory(float(limit) / 2**30)
                path = (*pod.path, "volumes", number, "emptyDir", "sizeLimit")
                yield SharedMemory(
                    gib=float(size / 2**30),
                    at_most_gib=most,
                    limit=f"as the container has {float(limit / 2**30):g} GiB",
                    fix=f"write {_half(float(limit))}, which leaves the ranks the other half",
                    place=workload.at(*path),
                )


def resources_of_trainer(workload: Workload, workloads: Sequence[Workload]) -> Any:
    """The resources of a TrainJob's trainer, which take the place of those of its runtime. A runtime gets those of the
    first job of the files that has some."""
    jobs = [workload]
    if workload.kind == "TrainingRuntime":
        jobs = [
            each for each in workloads if each.get("spec", "runtimeRef", "name") == workload.name
        ]
    given = [each.get(*TRAINER, "resourcesPerNode") for each in jobs]
    return next((each for each in given if each is not None), None)


def _memory_limit(pod: Pod, volume: str, of_trainer: Any) -> Fraction | None:
    """The largest memory limit of the containers that mount a volume; None where one has no limit. The kernel counts
    a page of tmpfs for the container that wrote it."""
    limits = [
        amount(
            look(
                of_trainer if _is_of_trainer(each, of_trainer) else each.body.get("resources"),
                "limits",
                "memory",
            )
        )
        for each in pod.containers
        if any(mount.get("name") == volume for mount in items(each.body.get("volumeMounts")))
    ]
    known = [limit for limit in limits if limit]
    return max(known) if known and len(known) == len(limits) else None


def _is_of_trainer(container: Container, of_trainer: Any) -> bool:
    return of_trainer is not None and container.body.get("name") == TRAINS


def _half(size: float) -> str:
    """Half of so many bytes, in whole GiB; in MiB where that is less than one."""
    gib = size / 2**31
    return f"{int(gib)}Gi" if gib >= 1 else f"{int(gib * 1024)}Mi"
