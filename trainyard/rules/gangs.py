"""Errors about what a training job asks of its pool: its nodes must come up at once, alike, in one
zone.

The same rules hold for an entry of a stack file and for a YAML file.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainyard.catalog.aws.instances import InstanceType
from trainyard.catalog.job_kinds import JOB_KINDS
from trainyard.derive.job_view import JobView
from trainyard.derive.pools import TYPES, largest_gang
from trainyard.problems import At, InputError, InputWarning
from trainyard.settings.pools import PoolConfig

OF_RUNTIMES = "name a runtime of environment.trainer.own_runtimes that has max_restarts"
"""The way to restarts where they are no setting of the job."""


def gang_errors(view: JobView, name: str, pool: PoolConfig) -> Iterator[InputError]:
    """Every error of a job on a pool whose types are known. `name`: the pool's."""
    yield from _size(view, name, pool)
    if view.nodes > 1:
        yield from _one_node_only(view, name, pool)
    yield from () if view.gpus_elsewhere else gpu_errors(view, name, pool)


def switched_off(at: At, name: str, pool: PoolConfig) -> Iterator[InputWarning]:
    """Warning about a job on a static pool without nodes, whose pods wait. Karpenter launches none for them
    (karpenter 1.14.1 and 1.15.2, pkg/controllers/static: it keeps as many nodes as replicas says)."""
    if pool.replicas == 0:
        yield at.warning(
            f"the nodes of pool {name} are switched off (replicas: 0), so the job waits until you write more"
            " replicas and run `pulumi up`"
        )


def _size(view: JobView, name: str, pool: PoolConfig) -> Iterator[InputError]:
    most = largest_gang(pool)
    if view.nodes > pool.max_nodes:
        yield view.where("nodes").must(
            f"be at most {pool.max_nodes}, the max_nodes of pool {name}",
            got=view.nodes,
            fix=f"write {most}, or raise pools.{name}.max_nodes to {view.nodes}",
        )
    elif view.nodes > most:
        why = (
            f"replicas of pool {name}, which launches no others"
            if pool.replicas
            else f"nodes that pool {name} has reserved"
        )
        more = f"write replicas: {view.nodes} under environment.pools.{name}"
        yield view.where("nodes").must(
            f"be at most {most}, the {why}",
            got=view.nodes,
            fix=f"write {most}, or {more if pool.replicas else 'name another pool'}",
        )
    if view.most_nodes > max(most, view.nodes):
        yield view.where("elastic.max_nodes").must(
            f"be at most the {most} nodes of pool {name}",
            got=view.most_nodes,
            fix=f"write {most} or less"
            + f", or raise pools.{name}.max_nodes to {view.most_nodes}" * (most == pool.max_nodes),
        )


def _one_node_only(view: JobView, name: str, pool: PoolConfig) -> Iterator[InputError]:
    """Errors about a pool that takes no job of several nodes."""
    reasons = []
    if len(pool.instance_types) > 1:
        one = f"write instance_types: [{pool.instance_types[0]}] under environment.pools.{name}"
        only = f"{one}, or name a pool of one type"
        reasons.append(("has several types: ranks must not mix them", only))
    if pool.fallback_zones:
        only = f"delete environment.pools.{name}.fallback_zones, or name a pool without it"
        reasons.append(("has fallback zones: EFA does not cross zones", only))
    if pool.capacity == "spot" and not view.resumes:
        lacks = "checkpoints" if view.restarts else "restarts"
        kind = JOB_KINDS.get(view.kind)
        of_runtime = lacks == "restarts" and kind and kind.has_runtime
        add = OF_RUNTIMES if of_runtime else f"add {lacks}"
        only = f"{add}, or write capacity: on_demand under environment.pools.{name}"
        why = f"is spot: one reclaimed node ends the work of all, and the job has no {lacks}"
        reasons.append((why, only))
    for reason, fix in reasons:
        yield view.where("nodes").must(
            f"be 1 on pool {name}, which {reason}", got=view.nodes, fix=fix
        )


def _more_gpus(view: JobView, kind: InstanceType) -> str:
    """The way to the GPUs that a job asks for where a node of this type has fewer."""
    if view.gpus > max(each.gpus for each in TYPES.values()):
        return f"write {kind.gpus}; raise the number of nodes for more GPUs, as no instance type has {view.gpus}"
    return f"write {kind.gpus}, or name a pool whose nodes have {view.gpus} GPUs"


def gpu_errors(view: JobView, name: str, pool: PoolConfig) -> Iterator[InputError]:
    """GPUs that no node of the pool has."""
    smallest = min((TYPES[kind] for kind in pool.instance_types), key=lambda kind: kind.gpus)
    if view.gpus > smallest.gpus > 0 or (view.gpus and not smallest.gpus):
        yield view.where("gpus").must(
            f"be at most {smallest.gpus}, the GPUs of a {smallest.name} of pool {name}"
            if smallest.gpus
            else f"not be set: {smallest.name} of pool {name} has no GPUs",
            got=view.gpus,
            fix=_more_gpus(view, smallest)
            if smallest.gpus
            else "delete it, or name a pool with GPUs",
        )
