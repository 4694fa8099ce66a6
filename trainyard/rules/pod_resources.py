"""Errors about requests of a job's pod: more vCPUs, memory or devices than a node has for pods.

The same rule holds for an entry of a stack file and for a YAML file. GPUs: gangs.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from trainyard.catalog.aws.instances import InstanceType
from trainyard.derive.job_view import JobView, PodRequest
from trainyard.derive.jobs import stores
from trainyard.derive.pod_resources import (
    NODE_PERCENT,
    node_amount,
    node_disk_gib,
    node_memory_gib,
    pods_per_node,
)
from trainyard.derive.pools import TYPES, job_type
from trainyard.objects.jobs.pod_template import EFA, GPU
from trainyard.problems import At, InputError, InputWarning
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.job import JobConfig
from trainyard.settings.pools import PoolConfig
from trainyard.stores.kinds import kinds_of

DISK = "ephemeral-storage"
HUGE_PAGES = "hugepages-"
INSTEAD = {
    HUGE_PAGES: "delete it: NCCL and EFA run without",
    "nvidia.com/": f"write {GPU}: 1 in its place: nodes have whole GPUs only",
    "rdma/": f"delete it: {EFA} takes its place",
    "openshift.io/": f"delete it: {EFA} takes its place",
}
"""Beginning of a resource that no node has → what to write instead."""


def request_problems(
    view: JobView, name: str, pool: PoolConfig, *, others_may_serve: bool = False
) -> Iterator[InputError | InputWarning]:
    """Every request that no node of the pool has room for. `name`: the pool's, whose types are known;
    `others_may_serve`: somebody else may install a device plugin on the nodes."""
    for request in view.requests:
        room = {
            TYPES[kind]: _most(TYPES[kind], request.resource, pool) for kind in pool.instance_types
        }
        smallest = min(room, key=lambda kind: room[kind])
        most = room[smallest]
        if request.amount <= most:
            continue
        if view.origin == "file" and _is_in_the_type(request, smallest):
            yield _over_the_estimate(request, smallest.name, int(most))
        elif not most and others_may_serve and not request.resource.startswith(HUGE_PAGES):
            yield _by_others(request, name)
        else:
            yield _too_much(request, name, smallest.name, int(most))


def _most(kind: InstanceType, resource: str, pool: PoolConfig) -> Fraction:
    """Most of a resource that pods may request on a node of the pool."""
    return node_disk_gib(kind, pool) if resource == DISK else node_amount(kind, resource)


def _is_in_the_type(request: PodRequest, kind: InstanceType) -> bool:
    """True where a node may have the memory, of which Karpenter estimates less before it has
    one."""
    return request.resource == "memory" and request.amount * 1024 < kind.memory_mib


def _over_the_estimate(request: PodRequest, kind: str, most: int) -> InputWarning:
    return request.place.warning(
        f"Karpenter expects at most {most}{request.suffix} for pods on a {kind} until it has seen"
        f" one, and launches none for {request.text}: request {most}{request.suffix} or less,"
        " or keep nodes (replicas)"
    )


def _by_others(request: PodRequest, pool: str) -> InputWarning:
    return request.place.warning(
        f"nothing of the stack gives nodes of pool {pool} the resource {request.resource}: pods stay Pending,"
        " unless somebody else installs its device plugin before `pulumi up`"
    )


def _too_much(request: PodRequest, pool: str, smallest: str, most: int) -> InputError:
    if not most:
        resource = request.resource
        ways = (way for start, way in INSTEAD.items() if resource.startswith(start))
        return request.place.must(
            f"not be requested: no node of pool {pool} has {resource}",
            got=request.text,
            fix=next(ways, "delete it"),
        )
    limit = f"{most}{request.suffix}"
    return request.place.must(
        f"be at most {limit}, which {smallest} of pool {pool} has for pods beside its DaemonSets",
        got=request.text,
        fix=f"write {limit} or less",
        write=None if request.suffix else most,
    )


def mount_memory_warnings(
    path: str, job: JobConfig, environment: EnvironmentConfig
) -> Iterator[InputWarning]:
    """A warning about `memory_gib` that leaves a node too little for what mounts the stores of a job. By
    default a job leaves a tenth of each node."""
    kind, needed = job_type(job, environment), _mounts_gib(job, environment)
    if not kind or not job.memory_gib or not needed:
        return
    whole = node_memory_gib(kind)
    left = whole - max(1, pods_per_node(job, kind)) * job.memory_gib
    if left < needed:
        yield At(f"{path}.memory_gib").warning(
            f"it leaves {max(0, left)} GiB of a {kind.name} for what mounts S3 stores, which was seen to take"
            f" {needed} GiB under load. Where the kernel ends that program, every read fails with"
            " `Transport endpoint is not connected`. Request less, or delete memory_gib: a job requests"
            f" {NODE_PERCENT} % of a node by default"
        )


def _mounts_gib(job: JobConfig, environment: EnvironmentConfig) -> int:
    found = [environment.storage[name] for name in stores(job) if name in environment.storage]
    return sum(kind.mount_gib for store in found for kind, _ in kinds_of(store))
