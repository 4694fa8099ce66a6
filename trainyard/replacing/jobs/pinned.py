"""Jobs that ask for nodes which an update takes away: of a pool that leaves or becomes smaller, or of an instance type
or a zone that its pool loses. Their pods select pool, type and zone, and Karpenter launches no such node any more.

A pool of several types has a NodePool for each, numbered by its place (trainyard/settings/pools.py). With fewer types
the last NodePool goes, and with it its nodes, also where their type stays. Karpenter evicts their pods, or where a pod
has karpenter.sh/do-not-disrupt waits for its end (1.14.1, pkg/utils/pod/scheduling.go, IsEvictable and IsDrainable), so
that `pulumi up` fails, and a pod that starts again does not come back to such a node.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from trainyard.catalog.aws.node_price import TYPE, ZONE
from trainyard.catalog.job_kinds import JOB_KINDS, true_conditions
from trainyard.objects.jobs.pod_template import GPU, POOL
from trainyard.plan import EnvironmentPlan
from trainyard.plans.jobs import maps_in
from trainyard.problems import At, InputError, InputWarning, few
from trainyard.replacing.deployed import SHOWN, Deployed, Object, Show, ends_one, going_of_others
from trainyard.replacing.immutable import NODE_POOL
from trainyard.replacing.jobs.runtimes import runtime_of
from trainyard.replacing.replacing import RUNTIME

TYPES = frozenset({NODE_POOL, RUNTIME})
"""Types of resources that the rule looks at."""
NODE_CLAIMS, OF_NODE_POOL = "nodeclaims.karpenter.sh", "karpenter.sh/nodepool"
"""Karpenter's objects of nodes, as kubectl calls them, and their label with the name of a NodePool."""
NODE_CLASSES, LOOKED = "ec2nodeclasses.karpenter.k8s.aws", "CapacityReservationsReady"
"""Karpenter's objects that know reservations, one of the name of each NodePool, and their condition once it has asked
EC2. It then lists those that are active, and says nothing of others (karpenter-provider-aws 1.14,
pkg/controllers/nodeclass/capacityreservation.go, pkg/providers/capacityreservation/types.go)."""


@dataclass(frozen=True, kw_only=True)
class _NodePool:
    """A NodePool that is deployed."""

    name: str
    requirements: Mapping[str, Sequence[str]]
    """Label of its nodes → values that it may have."""
    nodes: int
    """Most nodes that it may have; 0 where it does not say."""


def pin_errors(plan: EnvironmentPlan, deployed: Deployed, show: Show) -> Iterator[InputError]:
    """Jobs that have not ended and ask for what their pool has no more. Those of the stack file itself get another
    run, which asks for what is there. `show`: what is in the cluster."""
    changed = {pool: made for pool, made in _deployed(deployed).items() if _loses(plan, pool, made)}
    jobs = _jobs(plan, deployed, show) if changed else ()
    for pool, made in changed.items():
        asking = [(name, job) for name, _, job in jobs if _asks(job, pool)]
        if asking and pool in plan.pools:
            yield from _types_errors(plan, pool, made, asking)
            yield from _node_pool_errors(plan, pool, made, asking, deployed, show)
        elif asking and not _is_over(made, deployed, show):
            yield _leaves(pool, [name for name, _ in asking])
    yield from _zone_errors(plan, changed, jobs)


def _loses(plan: EnvironmentPlan, pool: str, made: Sequence[_NodePool]) -> bool:
    """True for a pool that leaves, or of which something leaves that jobs can ask for."""
    lost = _lost_types(plan, pool, made), _lost_zones(plan, pool, made), _gone(plan, pool, made)
    return any(lost)


def _lost_types(plan: EnvironmentPlan, pool: str, made: Sequence[_NodePool]) -> set[str]:
    """Instance types that a pool has no more."""
    return {it for each in made for it in each.requirements.get(TYPE, ())} - _types(plan, pool)


def _lost_zones(plan: EnvironmentPlan, pool: str, made: Sequence[_NodePool]) -> set[str]:
    """Zones that a pool which stays has no more."""
    stays = plan.pools.get(pool)
    had = {it for each in made for it in each.requirements.get(ZONE, ())}
    return had - {*stays.zones} if stays else set()


def _gone(plan: EnvironmentPlan, pool: str, made: Sequence[_NodePool]) -> list[_NodePool]:
    """NodePools that a pool has no more."""
    stays = plan.pools.get(pool)
    names = {kind.name for kind in stays.types} if stays else set[str]()
    return [each for each in made if each.name not in names]


def over_warnings(plan: EnvironmentPlan, deployed: Deployed, show: Show) -> Iterator[InputWarning]:
    """Pools that leave without a node, because no reservation of theirs is active: such as a Capacity Block that has
    ended under a job, which then never ends by itself. `show`: what is in the cluster."""
    gone = {pool: made for pool, made in _deployed(deployed).items() if pool not in plan.pools}
    jobs = _jobs(plan, deployed, show) if gone else ()
    for pool, made in gone.items():
        asking = [name for name, _, job in jobs if _asks(job, pool)]
        if asking and _is_over(made, deployed, show):
            yield At(f"environment.pools.{pool}").warning(
                f"this update deletes the pool, which has no node, as its reservation is not active."
                f" {few(asking, SHOWN)} never starts without it: end each job that waits for it, and hand it in"
                f" again for another pool; {ends_one()}"
            )


def fewer_warnings(plan: EnvironmentPlan, deployed: Deployed, show: Show) -> Iterator[InputWarning]:
    """Pools that get fewer nodes than a job asks for that has not ended. `show`: what is in the cluster."""
    smaller = {
        pool: plan.pools[pool].max_nodes
        for pool, made in _deployed(deployed).items()
        if pool in plan.pools and plan.pools[pool].max_nodes < max(each.nodes for each in made)
    }
    if not smaller:
        return
    jobs = _jobs(plan, deployed, show)
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


def _jobs(plan: EnvironmentPlan, deployed: Deployed, show: Show) -> list[tuple[str, str, Object]]:
    """Name, kind and object of each job of others that has not ended. One that names no pool has its runtime beside
    its spec, whose selector its pods get."""
    return [
        (name, kind, job if _pools(job) else {**job, "runtime": _runtime(job, deployed)})
        for name, kind, job in going_of_others(plan, deployed, show)
    ]


def _pools(job: Object) -> list[str]:
    return [each[POOL] for each in maps_in(job["spec"]) if POOL in each]


def _runtime(job: Object, deployed: Deployed) -> Object | None:
    return deployed.output(RUNTIME, runtime_of(job), "spec")


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


def _types_errors(
    plan: EnvironmentPlan,
    pool: str,
    made: Sequence[_NodePool],
    asking: Sequence[tuple[str, Object]],
) -> Iterator[InputError]:
    """Types that a pool loses and that a job names."""
    lost = _lost_types(plan, pool, made)
    if named := [name for name, job in asking if _asks(job, pool, lost)]:
        yield At(f"environment.pools.{pool}.instance_types").must(
            "keep the type that jobs ask for which have not ended: a pod of theirs that has no node, or loses it, never"
            " gets another one",
            got=f"{', '.join(sorted(_types(plan, pool)))} beside {few(named, SHOWN)}",
            fix="let them end before; or give the new type a pool of its own, and delete this one when they have"
            f" ended; {ends_one()}",
        )


def _node_pool_errors(
    plan: EnvironmentPlan,
    pool: str,
    made: Sequence[_NodePool],
    asking: Sequence[tuple[str, Object]],
    deployed: Deployed,
    show: Show,
) -> Iterator[InputError]:
    """NodePools that a pool loses while they have nodes which a job can be on."""
    gone = _gone(plan, pool, made)
    with_nodes = _with_nodes(deployed, show) if gone else ()
    lost = _lost_types(plan, pool, made)
    for each in gone:
        types = {*each.requirements.get(TYPE, ())}
        named = [name for name, job in asking if _asks(job, pool, {None, *types} - lost)]
        if named and each.name in with_nodes:
            yield At(f"environment.pools.{pool}.instance_types").must(
                f"keep as many types while jobs that have not ended can be on nodes of {', '.join(sorted(types))}: each"
                f" type has a NodePool, numbered by its place, and this update deletes {each.name} with its nodes",
                got=f"{', '.join(sorted(_types(plan, pool)))} beside {few(named, SHOWN)}",
                fix="let them end before; or give the new types a pool of their own, and delete this one when they have"
                f" ended; {ends_one()}",
            )


def _zone_errors(
    plan: EnvironmentPlan,
    changed: Mapping[str, Sequence[_NodePool]],
    jobs: Sequence[tuple[str, str, Object]],
) -> Iterator[InputError]:
    """Zones that pools lose and that a job names."""
    asking = dict[tuple[str, str], set[str]]()
    for pool, made in changed.items():
        first = made[0].requirements.get(ZONE, ("",))[0]
        for zone in _lost_zones(plan, pool, made):
            path = (
                "environment.zone" if zone == first else f"environment.pools.{pool}.fallback_zones"
            )
            named = {name for name, _, job in jobs if _asks(job, pool, {zone}, of=ZONE)}
            asking.setdefault((path, zone), set()).update(named)
    for (path, zone), named in sorted(asking.items()):
        if named:
            yield At(path).must(
                f"keep {zone} while jobs that have not ended select this zone: a pod of theirs that has no node, or"
                " loses it, never gets another one",
                got=f"no nodes there beside {few(sorted(named), SHOWN)}",
                fix=f"write {zone} again, and change it when they have ended; {ends_one()}",
            )


def _leaves(pool: str, asking: Sequence[str]) -> InputError:
    return At(f"environment.pools.{pool}").must(
        "stay while jobs that have not ended ask for its nodes, which go with it",
        got=f"no entry beside {few(asking, SHOWN)}",
        fix=f"write the entry again, and delete it when they have ended; {ends_one()}",
    )


def _is_over(made: Sequence[_NodePool], deployed: Deployed, show: Show) -> bool:
    """True for NodePools that have no node and get none, because no reservation of theirs is active."""
    kubeconfig = deployed.kubeconfig
    assert kubeconfig
    without = {
        each["metadata"]["name"]
        for each in show(kubeconfig, NODE_CLASSES, None)
        if each["spec"].get("capacityReservationSelectorTerms")
        and not (each.get("status") or {}).get("capacityReservations")
        and any(condition["type"] == LOOKED for condition in true_conditions(each))
    }
    names = {each.name for each in made}
    return names <= without and names.isdisjoint(_with_nodes(deployed, show))


def _with_nodes(deployed: Deployed, show: Show) -> set[str]:
    """Names of the NodePools that have nodes, or get some just now."""
    kubeconfig = deployed.kubeconfig
    assert kubeconfig
    labels = [each["metadata"].get("labels") or {} for each in show(kubeconfig, NODE_CLAIMS, None)]
    return {each[OF_NODE_POOL] for each in labels if OF_NODE_POOL in each}


def _types(plan: EnvironmentPlan, pool: str) -> set[str]:
    found = plan.pools.get(pool)
    return {kind.instance_type for kind in found.types} if found else set()


def _deployed(deployed: Deployed) -> dict[str, list[_NodePool]]:
    """Pool → its NodePools."""
    found = dict[str, list[_NodePool]]()
    for logical in sorted(deployed.names(NODE_POOL)):
        template = deployed.output(NODE_POOL, logical, "spec.template") or {}
        limits = deployed.output(NODE_POOL, logical, "spec.limits") or {}
        requirements = {
            each.get("key"): each.get("values") or ()
            for each in (template.get("spec") or {}).get("requirements") or ()
        }
        if pool := ((template.get("metadata") or {}).get("labels") or {}).get(POOL):
            one = _NodePool(
                name=deployed.output(NODE_POOL, logical, "metadata.name"),
                requirements=requirements,
                nodes=int(limits.get("nodes") or 0),
            )
            found.setdefault(pool, []).append(one)
    return found


def _asks(
    job: Object, pool: str, values: Collection[str | None] | None = None, *, of: str = TYPE
) -> bool:
    """True where a node selector of a job names the pool and one of these values of the label `of`, in which None is
    no value. Without `values`: whatever it names."""
    return any(
        each.get(POOL) == pool and (values is None or each.get(of) in values)
        for each in maps_in(job)
    )
