"""Jobs that ask for nodes which an update takes away: of a pool that leaves or becomes smaller, or of an instance type
that its pool loses. Their pods select pool and type, and Karpenter launches no such node any more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trainyard.catalog.job_kinds import JOB_KINDS
from trainyard.objects.jobs.pod_template import GPU, POOL
from trainyard.plan import EnvironmentPlan
from trainyard.plans.jobs import maps_in
from trainyard.problems import At, InputError, InputWarning, few
from trainyard.replacing.deployed import SHOWN, Deployed, Object, Show, going_of_others
from trainyard.replacing.immutable import NODE_POOL

TYPES = frozenset({NODE_POOL})
"""Types of resources that the rule looks at."""
TYPE = "node.kubernetes.io/instance-type"


def pin_errors(plan: EnvironmentPlan, deployed: Deployed, show: Show) -> Iterator[InputError]:
    """Jobs that have not ended and ask for what their pool has no more. Those of the stack file itself get another
    run, which asks for what is there. `show`: what is in the cluster."""
    lost = {pool: types - _types(plan, pool) for pool, types in _deployed_types(deployed).items()}
    if not any(lost.values()):
        return
    jobs = going_of_others(plan, deployed, show)
    for pool, types in lost.items():
        stays = pool in plan.pools
        asking = [name for name, _, job in jobs if _asks(job, pool, types if stays else None)]
        if types and asking:
            yield _error(plan, pool, asking) if stays else _leaves(pool, asking)


def fewer_warnings(plan: EnvironmentPlan, deployed: Deployed, show: Show) -> Iterator[InputWarning]:
    """Pools that get fewer nodes than a job asks for that has not ended. `show`: what is in the cluster."""
    smaller = {
        pool: plan.pools[pool].max_nodes
        for pool, nodes in _deployed_nodes(deployed).items()
        if pool in plan.pools and plan.pools[pool].max_nodes < nodes
    }
    if not smaller:
        return
    jobs = going_of_others(plan, deployed, show)
    for pool, nodes in smaller.items():
        gpus = max(kind.gpus for kind in plan.pools[pool].types)
        asking = [
            name for name, kind, job in jobs if _asks(job, pool) and _nodes(kind, job, gpus) > nodes
        ]
        if asking:
            yield At(f"environment.pools.{pool}.max_nodes").warning(
                f"with {nodes} nodes the pool is too small for {few(asking, SHOWN)}, which has not ended: a job that"
                " waits never starts, and one that runs never starts again"
            )


def _nodes(kind: str, job: Object, gpus: int) -> int:
    """Nodes that the pods of a job fill. `gpus`: of a node."""
    spec, roles = job["spec"], JOB_KINDS[kind].replicas
    pods = (
        sum(each.get("replicas", 1) for each in (spec.get(roles) or {}).values())
        if roles
        else (spec.get("trainer") or {}).get("numNodes") or 1
    )
    asked = [str(each.get(GPU, "")) for each in maps_in(spec)]
    of_pod = max((int(each) for each in asked if each.isdecimal()), default=gpus)
    return -(-pods * of_pod // gpus) if gpus else pods


def _error(plan: EnvironmentPlan, pool: str, asking: Sequence[str]) -> InputError:
    return At(f"environment.pools.{pool}.instance_types").must(
        "keep the type that jobs ask for which have not ended: a pod of theirs that has no node, or loses it, never"
        " gets another one",
        got=f"{', '.join(sorted(_types(plan, pool)))} beside {few(asking, SHOWN)}",
        fix="let them end before; or give the new type a pool of its own, and delete this one when they have ended",
    )


def _leaves(pool: str, asking: Sequence[str]) -> InputError:
    return At(f"environment.pools.{pool}").must(
        "stay while jobs that have not ended ask for its nodes, which go with it",
        got=f"no entry beside {few(asking, SHOWN)}",
        fix="write the entry again, and delete it when they have ended",
    )


def _types(plan: EnvironmentPlan, pool: str) -> set[str]:
    found = plan.pools.get(pool)
    return {kind.instance_type for kind in found.types} if found else set()


def _deployed_types(deployed: Deployed) -> dict[str, set[str]]:
    """Pool → the instance types of its NodePools."""
    found = dict[str, set[str]]()
    for pool, _, template in _node_pools(deployed):
        for each in (template.get("spec") or {}).get("requirements") or ():
            if each.get("key") == TYPE:
                found.setdefault(pool, set()).update(each.get("values") or ())
    return found


def _deployed_nodes(deployed: Deployed) -> dict[str, int]:
    """Pool → the most nodes that its NodePools may have."""
    found = dict[str, int]()
    for pool, name, _ in _node_pools(deployed):
        if nodes := (deployed.output(NODE_POOL, name, "spec.limits") or {}).get("nodes"):
            found[pool] = max(int(nodes), found.get(pool, 0))
    return found


def _node_pools(deployed: Deployed) -> Iterator[tuple[str, str, Object]]:
    """Pool, name and template of each NodePool that is deployed."""
    for name in deployed.names(NODE_POOL):
        template = deployed.output(NODE_POOL, name, "spec.template") or {}
        if pool := ((template.get("metadata") or {}).get("labels") or {}).get(POOL):
            yield pool, name, template


def _asks(job: Object, pool: str, types: set[str] | None = None) -> bool:
    """True where a node selector of a job names the pool and one of its types; None: whatever it names."""
    return any(
        each.get(POOL) == pool and (types is None or each.get(TYPE) in types)
        for each in maps_in(job)
    )
