"""Jobs that ask for nodes which an update takes away: of a pool that leaves, or of an instance type that its pool
loses. Their pods select both, and Karpenter launches no such node any more."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trainyard.objects.jobs.pod_template import POOL
from trainyard.plan import EnvironmentPlan
from trainyard.problems import At, InputError, few
from trainyard.replacing.deployed import SHOWN, Deployed, Object, Show, going
from trainyard.replacing.immutable import NODE_POOL

TYPES = frozenset({NODE_POOL})
"""Types of resources that the rule looks at."""
TYPE = "node.kubernetes.io/instance-type"


def pin_errors(plan: EnvironmentPlan, deployed: Deployed, show: Show) -> Iterator[InputError]:
    """Jobs that have not ended and ask for what their pool has no more. Those of the stack file itself get another
    run, which asks for what is there. `show`: what is in the cluster."""
    lost = {pool: types - _types(plan, pool) for pool, types in _deployed_types(deployed).items()}
    kubeconfig = deployed.kubeconfig
    if kubeconfig is None or not any(lost.values()):
        return
    own = {(job.namespace, job.name) for job in plan.jobs.values()}
    jobs = [
        (f"{kind} {meta['namespace']}/{meta['name']}", job)
        for kind, job in going(show, kubeconfig, None)
        if ((meta := job["metadata"])["namespace"], meta["name"]) not in own
    ]
    for pool, types in lost.items():
        stays = pool in plan.pools
        asking = [name for name, job in jobs if any(_asks(job, pool, types, any_type=not stays))]
        if types and asking:
            yield _error(plan, pool, asking) if stays else _leaves(pool, asking)


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
    for name in deployed.names(NODE_POOL):
        template = deployed.output(NODE_POOL, name, "spec.template") or {}
        pool = ((template.get("metadata") or {}).get("labels") or {}).get(POOL)
        for each in (template.get("spec") or {}).get("requirements") or ():
            if pool and each.get("key") == TYPE:
                found.setdefault(pool, set()).update(each.get("values") or ())
    return found


def _asks(value: Object | Any, pool: str, types: set[str], *, any_type: bool) -> Iterator[bool]:
    """True for each node selector below a value that names the pool, and of it one of the types or, where
    `any_type`, whatever it names."""
    if isinstance(value, Mapping):
        if value.get(POOL) == pool and (any_type or value.get(TYPE) in types):
            yield True
        value = [*value.values()]
    if isinstance(value, list):
        for each in value:
            yield from _asks(each, pool, types, any_type=any_type)
