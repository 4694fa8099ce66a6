"""From a pool and its jobs to capacity: what a node is, where it may stand, how many there are,
what quota they take.

Sources: Karpenter 1.14 (NodePool, EC2NodeClass), the AWS EFA guide for interfaces, Service Quotas
for vCPUs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from trainyard.catalog import versions
from trainyard.catalog.aws import instances
from trainyard.catalog.aws.instances import QUOTAS, TYPES, InstanceType, standard_vcpus
from trainyard.catalog.upstream import bottlerocket
from trainyard.derive.pod_resources import pods_per_node
from trainyard.plans.access import AccessPlan
from trainyard.plans.identity import Identity
from trainyard.plans.jobs import JobPlan
from trainyard.plans.pools import GpuPoolPlan, NetworkInterface, NodeTypePlan
from trainyard.plans.system_nodes import SystemNodesPlan
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.job import JobConfig, typed
from trainyard.settings.pools import PoolConfig, ReservationConfig, node_type_names
from trainyard.stores.kinds import made_for_efa, needs_client
from trainyard.stores.lustre_efa import lnet_devices

MAX_PODS = 64
"""Pods a node; fewer than EC2 allows, since kubelet reserves 11 MiB of memory for each."""
CAPACITY_TYPES = {
    "on_demand": "on-demand",
    "spot": "spot",
    "reservation": "reserved",
    "block": "reserved",
}
"""Setting → Karpenter's karpenter.sh/capacity-type."""
AMIS = {"AL2023": versions.NODE_AMI, "Bottlerocket": bottlerocket.AMI}
"""Setting → Karpenter's alias of the nodes' AMI."""
BLOCK_DRAIN_MINUTES = 10
"""Karpenter drains a Capacity Block's nodes 40 minutes before its end, EC2 ends them 30 minutes before."""
CNI = {"MINIMUM_IP_TARGET": 16, "WARM_IP_TARGET": 4}
"""Addresses that the VPC CNI holds on a node: 16 cover the pods of a training node. Its default is
a whole interface in reserve, 100 addresses a node of the large types (amazon-vpc-cni-k8s,
eni-and-ip-target)."""
NODE_ADDRESSES = 1 + sum(CNI.values())
"""Addresses of the subnet that a node takes, of a pool or for controllers: its own and those of CNI;
efa-only interfaces take none."""
ROOT_VOLUME_IOPS, ROOT_VOLUME_MBPS = 4000, 1000
"""Speed of the root volume of a pool's nodes. EBS sells a quarter MB/s at most for each of gp3's IOPS."""
SYSTEM, UPDATES = "system nodes", "updates of system nodes"
FIRST_WEIGHT = 100
"""Weight of the first choice of several types; the next one has one less."""


@dataclass(frozen=True, kw_only=True)
class PoolUse:
    """Nodes that a pool may launch, and the jobs that it takes."""

    capacity: str
    instance_types: tuple[str, ...]
    zones: tuple[str, ...]
    max_nodes: int
    kept_nodes: int
    """Running whether a job needs them or not."""
    reserved_nodes: int
    """Instances of its reservation or block, which are paid all of the time; 0 without one."""
    reserved_hours: float | None
    """From the start to the end of its reservation or block; None where one of them is open."""
    starts: datetime | None
    """When its reservation or block starts, in UTC; None: at once."""
    gpus_per_node: int
    efa_per_node: int
    quota: Mapping[str, int]
    """Service Quotas code → vCPUs at max_nodes; empty for Capacity Blocks, which have none of these."""
    addresses: int
    """Addresses that it takes of its subnet, at max_nodes."""
    at_once: Mapping[str, int]
    """job → how many of its size run at once, when nothing else runs; 0: it does not fit."""

    def certain_quota(self, nodes: int) -> dict[str, int]:
        """Service Quotas code → vCPUs that so many of its nodes take. A pool of several types takes none for
        certain: where one type has no quota left, Karpenter launches another."""
        if len(self.instance_types) > 1:
            return {}
        return {code: vcpus // self.max_nodes * nodes for code, vcpus in self.quota.items()}


def nodes_wanted(jobs: Iterable[JobPlan]) -> Counter[str]:
    """Pool → nodes of all these jobs together."""
    wanted = Counter[str]()
    for job in jobs:
        wanted[job.pool] += job.nodes
    return wanted


def pool_plans(
    me: Identity, wanted: EnvironmentConfig, access: AccessPlan
) -> dict[str, GpuPoolPlan]:
    """Every pool of an environment. Karpenter makes their nodes, which the AWS provider does not
    tag: so they have the provider's default tags in their plan."""
    tags = {**dict(access.default_tags), **wanted.tags}
    nodes = replace(me, extra_tags=tuple(sorted(tags.items())))
    stores = wanted.storage.values()
    lustre, efa_lustre = any(map(needs_client, stores)), any(map(made_for_efa, stores))
    used, described = {job.pool for job in wanted.jobs.values()}, typed(wanted.jobs)
    return {
        name: pool_plan(
            nodes,
            name,
            pool,
            wanted.zone,
            lustre=lustre,
            efa_lustre=efa_lustre,
            has_jobs=name in used,
            images=_prefetched(name, pool, described),
        )
        for name, pool in wanted.pools.items()
    }


def pool_plan(
    me: Identity,
    name: str,
    pool: PoolConfig,
    zone: str,
    *,
    lustre: bool = False,
    efa_lustre: bool = False,
    has_jobs: bool = False,
    images: tuple[str, ...] = (),
) -> GpuPoolPlan:
    """A pool of Karpenter's: one NodePool and EC2NodeClass a type. `lustre`: some store needs the Lustre
    client. `efa_lustre`: some store is made for EFA. `has_jobs`: a job of the environment's own stack runs
    on the pool. `images`: what its nodes pull while they start.

    A pool without jobs and without kept nodes is not awaited. Where the zone does not sell its
    type, its NodePool may never become Ready, and that must not stop the rest of the environment.
    """
    own = pool.placement == "cluster"
    reserved = _reservation(pool)
    return GpuPoolPlan(
        identity=me,
        name=name,
        types=tuple(_node_types(name, pool, lustre, efa_lustre)),
        # One NodePool has all of them: in another one max_nodes would count again. Of zones with one price
        # EC2 takes any (karpenter-provider-aws 1.14.1, pkg/providers/instance/types.go: lowest-price).
        zones=(zone, *pool.fallback_zones),
        capacity_type=CAPACITY_TYPES[pool.capacity],
        reservation_id=reserved.id if reserved else None,
        placement_group=(
            me.name(f"{name}-nodes", zone)
            if own
            else reserved.placement_group
            if reserved
            else None
        ),
        own_placement_group=own,
        max_nodes=pool.max_nodes,
        replicas=pool.replicas + pool.warm_spares if pool.replicas else pool.replicas,
        drain_minutes=BLOCK_DRAIN_MINUTES if pool.capacity == "block" else None,
        ami=AMIS[pool.ami_family],
        root_volume_gib=pool.root_volume_gib,
        root_volume_iops=ROOT_VOLUME_IOPS,
        root_volume_mbps=ROOT_VOLUME_MBPS,
        awaited=has_jobs or pool.replicas is not None,
        images=images,
    )


def _prefetched(name: str, pool: PoolConfig, jobs: Mapping[str, JobConfig]) -> tuple[str, ...]:
    """Images that nodes of a pool pull while they start. Of several images nobody knows which job a
    node is launched for, and those of the others would be pulled beside its own."""
    if pool.prefetch is not None:
        return tuple(dict.fromkeys(pool.prefetch))
    own = [job for job in jobs.values() if job.pool == name]
    images = {job.image for job in own}
    return tuple(images) if len(images) == 1 and not any(job.pull_secrets for job in own) else ()


def pool_uses(wanted: EnvironmentConfig, jobs: Mapping[str, JobConfig]) -> dict[str, PoolUse]:
    """Use of every pool of an environment. `jobs`: all of the stack, those that are files among them."""
    return {name: pool_use(name, pool, wanted.zone, jobs) for name, pool in wanted.pools.items()}


def pool_use(name: str, pool: PoolConfig, zone: str, jobs: Mapping[str, JobConfig]) -> PoolUse:
    """Nodes that the pool may launch, and how many of each job fit on it."""
    kinds = [TYPES[kind] for kind in pool.instance_types]
    reservation = _reservation(pool)
    quota: dict[str, int] = {}
    for kind in kinds:
        if (code := quota_code(kind, pool.capacity)) is not None:
            quota[code] = quota.get(code, 0) + pool.max_nodes * kind.vcpus
    return PoolUse(
        capacity=pool.capacity,
        instance_types=pool.instance_types,
        zones=(zone, *pool.fallback_zones),
        max_nodes=pool.max_nodes,
        kept_nodes=(pool.replicas or 0) + (pool.warm_spares if pool.replicas else 0),
        reserved_nodes=reservation.instances if reservation else 0,
        reserved_hours=_hours(reservation),
        starts=reservation.starts.astimezone(UTC) if reservation and reservation.starts else None,
        gpus_per_node=kinds[0].gpus,
        efa_per_node=kinds[0].efa,
        quota=quota,
        addresses=addresses(pool),
        at_once={
            job: jobs_at_once(pool, wanted)
            for job, wanted in jobs.items()
            if wanted.pool == name or fits(pool, wanted)
        },
    )


def _reservation(pool: PoolConfig) -> ReservationConfig | None:
    """The reservation or block that its nodes come from."""
    return pool.reservation if pool.capacity in ("reservation", "block") else None


def _hours(reservation: ReservationConfig | None) -> float | None:
    if reservation is None or reservation.starts is None or reservation.ends is None:
        return None
    return (reservation.ends - reservation.starts).total_seconds() / 3600


def quota_code(kind: InstanceType, capacity: str) -> str | None:
    """The Service Quotas code that nodes of a type count against; None for a Capacity Block, and where unknown."""
    if capacity == "block":
        return None
    return kind.spot_quota if capacity == "spot" else QUOTAS[kind.quota]


def system_quota(system: SystemNodesPlan) -> dict[str, int]:
    """Service Quotas code → vCPUs of the system nodes; empty for a type whose name tells neither."""
    return {code: system.nodes * vcpus for code, vcpus in _quota_of_one(system).items()}


SURGE = 2
"""Nodes that an update of a managed node group launches in each of its zones at most, beside those that are
there (EKS user guide, managed-node-update-behavior)."""


def _quota_of_updates(system: SystemNodesPlan) -> dict[str, int]:
    return {code: SURGE * system.zones * vcpus for code, vcpus in _quota_of_one(system).items()}


def _quota_of_one(system: SystemNodesPlan) -> dict[str, int]:
    vcpus = standard_vcpus(system.instance_type)
    return {} if vcpus is None else {QUOTAS["standard"]: vcpus}


def quota_takers(uses: Mapping[str, PoolUse], system: SystemNodesPlan) -> dict[str, dict[str, int]]:
    """Service Quotas code → who takes how many vCPUs of it when every pool is full, and system nodes are updated."""
    takers: dict[str, dict[str, int]] = {}
    for who, quota in {
        SYSTEM: system_quota(system),
        UPDATES: _quota_of_updates(system),
        **{name: use.quota for name, use in uses.items()},
    }.items():
        for code, vcpus in quota.items():
            takers.setdefault(code, {})[who] = vcpus
    return dict(sorted(takers.items()))


def quota_of_up(
    uses: Mapping[str, PoolUse], jobs: Mapping[str, JobPlan], system: SystemNodesPlan
) -> dict[str, dict[str, int]]:
    """Service Quotas code → who takes how many vCPUs of it while the stack's own jobs run: system
    nodes, nodes that a pool keeps, and nodes of jobs."""
    takers = {code: {SYSTEM: vcpus} for code, vcpus in system_quota(system).items()}
    for name, nodes in nodes_of_up(uses, jobs).items():
        for code, vcpus in uses[name].certain_quota(nodes).items():
            takers.setdefault(code, {})[name] = vcpus
    return takers


def nodes_of_up(uses: Mapping[str, PoolUse], jobs: Mapping[str, JobPlan]) -> dict[str, int]:
    """Pool → nodes that it keeps, or that jobs of the stack have there; without pools that have neither."""
    wanted = nodes_wanted(jobs.values())
    most = {n: max(use.kept_nodes, min(use.max_nodes, wanted[n])) for n, use in uses.items()}
    return {name: nodes for name, nodes in most.items() if nodes}


def quota_needed(uses: Mapping[str, PoolUse], system: SystemNodesPlan) -> dict[str, int]:
    """Service Quotas code → vCPUs when every pool is full."""
    return {code: sum(takers.values()) for code, takers in quota_takers(uses, system).items()}


def addresses(pool: PoolConfig) -> int:
    """Addresses of the subnet that a full pool takes."""
    return most_nodes(pool) * NODE_ADDRESSES


def most_nodes(pool: PoolConfig) -> int:
    """Nodes of a full pool: max_nodes of each of its types."""
    return len(pool.instance_types) * pool.max_nodes


def largest_gang(pool: PoolConfig) -> int:
    """Nodes that one job can have. Of a pool that is switched off: those that it can have again."""
    reservation = _reservation(pool)
    limits = (pool.max_nodes, pool.replicas, reservation.instances if reservation else None)
    return min(limit for limit in limits if limit)


def fits(pool: PoolConfig, job: JobConfig) -> bool:
    """True where the pool could take the job."""
    several = len(pool.instance_types) > 1 or pool.fallback_zones
    least = min(TYPES[kind].gpus for kind in pool.instance_types)
    return job.nodes <= (1 if several else largest_gang(pool)) and (job.gpus_per_node or 0) <= least


def jobs_at_once(pool: PoolConfig, job: JobConfig, nodes: int | None = None) -> int:
    """Number of jobs of this size that the pool holds; those of one node may share one. `nodes`: most
    that the jobs may have together; all of the pool by default."""
    if not fits(pool, job):
        return 0
    on_a_node = min(pods_per_node(job, TYPES[kind]) for kind in pool.instance_types)
    most = pool.max_nodes if nodes is None else min(nodes, pool.max_nodes)
    return most * on_a_node // job.nodes


def team_at_once(
    wanted: EnvironmentConfig,
    jobs: Mapping[str, JobConfig],
    max_gpus: int | None,
    possible: Mapping[str, int],
) -> dict[str, int]:
    """job → how many of its size a team runs at once, within the GPUs that its quota gives it.
    `possible`: pool → most nodes that its queue gives it."""
    found: dict[str, int] = {}
    for name, job in jobs.items():
        pool = wanted.pools[job.pool]
        found[name] = jobs_at_once(pool, job, possible.get(job.pool))
        gpus = job.nodes * (job.gpus_per_node or TYPES[pool.instance_types[0]].gpus)
        if max_gpus is not None and gpus:
            found[name] = min(found[name], max_gpus // gpus)
    return found


def job_type(job: JobConfig, environment: EnvironmentConfig) -> InstanceType | None:
    """The first type of the job's pool; None where there is no such pool or type."""
    pool = environment.pools.get(job.pool)
    return first_type(pool) if pool else None


def first_type(pool: PoolConfig) -> InstanceType | None:
    """The first type of a pool; None where there is no such type."""
    return instances.first_type(pool.instance_types)


def gpus_of(job: JobConfig, environment: EnvironmentConfig) -> int:
    """GPUs that all pods of the job request; 0 where its pool or type is not known."""
    kind = job_type(job, environment)
    return job.nodes * (job.gpus_per_node or kind.gpus) if kind else 0


def efa_interfaces(kind: InstanceType) -> tuple[NetworkInterface, ...]:
    """The network interfaces of a node: one that takes an IP address, and an efa-only one for each
    EFA device.

    Card 0 carries the addressed interface as device 0 and, where the card takes EFA, an efa-only
    one as device 1; every other card has one as device 0 (AWS EFA guide; Karpenter design
    efa-for-static-capacity). A card beyond the number of EFA devices is card 0, which is ENA only
    (p6-b300).
    """
    first = NetworkInterface(card=0, device=0, kind="interface")
    on_card_0 = (
        [] if kind.cards > kind.efa else [NetworkInterface(card=0, device=1, kind="efa-only")]
    )
    others = [
        NetworkInterface(card=card, device=0, kind="efa-only") for card in range(1, kind.cards)
    ]
    return (first, *[*on_card_0, *others][: kind.efa])


def _node_types(
    name: str, pool: PoolConfig, lustre: bool, efa_lustre: bool
) -> Iterable[NodeTypePlan]:
    several = len(pool.instance_types) > 1
    for place, (called, chosen) in enumerate(
        zip(node_type_names(name, pool), pool.instance_types, strict=False)
    ):
        kind = TYPES[chosen]
        yield NodeTypePlan(
            name=called,
            instance_type=chosen,
            gpus=kind.gpus,
            vcpus=kind.vcpus,
            efa=kind.efa,
            interfaces=efa_interfaces(kind),
            lnet_efa=lnet_devices(pool, chosen) if efa_lustre else 0,
            lustre=lustre,
            max_pods=min(MAX_PODS, kind.max_pods),
            weight=FIRST_WEIGHT - place if several else None,
        )
