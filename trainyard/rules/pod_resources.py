"""Errors about requests of a job's pod: more vCPUs, memory or devices than a node has for pods.

The same rule holds for an entry of a stack file and for a YAML file. GPUs: gangs.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainyard.catalog.aws.instances import InstanceType
from trainyard.derive.job_view import JobView, PodRequest
from trainyard.derive.pod_resources import node_amount
from trainyard.derive.pools import TYPES
from trainyard.problems import InputError, InputWarning
from trainyard.settings.pools import PoolConfig


def request_problems(
    view: JobView, name: str, pool: PoolConfig
) -> Iterator[InputError | InputWarning]:
    """Every request that no node of the pool has room for. `name`: the pool's, whose types are
    known."""
    for request in view.requests:
        smallest = min(
            (TYPES[kind] for kind in pool.instance_types),
            key=lambda kind: node_amount(kind, request.resource),
        )
        most = node_amount(smallest, request.resource)
        if request.amount <= most:
            continue
        if view.origin == "file" and _is_in_the_type(request, smallest):
            yield _over_the_estimate(request, smallest.name, int(most))
        else:
            yield _too_much(request, name, smallest.name, int(most))


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


def _too_much(request: PodRequest, pool: str, smallest: str, most: int) -> InputError:
    if not most:
        more = ": NCCL and EFA run without" if "hugepages" in request.resource else ""
        return request.place.must(
            f"not be requested: no node of pool {pool} has {request.resource}",
            got=request.text,
            fix=f"delete it{more}",
        )
    limit = f"{most}{request.suffix}"
    return request.place.must(
        f"be at most {limit}, which {smallest} of pool {pool} has for pods beside its DaemonSets",
        got=request.text,
        fix=f"write {limit} or less",
        write=None if request.suffix else most,
    )
