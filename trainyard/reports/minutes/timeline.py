"""Timeline of a first `up`: the stages of this graph, what each waits for, and the longest way to
the first training step.

Edges are those of stacks/environment.py; tests/trainyard/reports/minutes/test_timeline.py compares
them with the graph itself.
Seconds are medians and nothing queues, not a promise about AWS. The longest way at its medians is the
least that a typical day takes; the typical time and that of one start in ten are drawn
(trainyard/reports/minutes/draws.py). `slow_seconds` is the longest way with every stage as slow as its
slowest tenth, which limits must leave room for: fewer than one start in ten takes longer.
What takes a second or two, such as roles, routes and Kubernetes objects, is no stage of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from trainyard.catalog.aws.latencies import (
    IMAGE_GB,
    LATENCIES,
    NAT_MOST_GBPS,
    NAT_START_GBPS,
    TYPICAL,
    add_on,
)
from trainyard.catalog.job_kinds import JOB_KINDS
from trainyard.catalog.upstream.bottlerocket import is_bottlerocket
from trainyard.parts.parts import planned_parts
from trainyard.plan import EnvironmentPlan, TeamPlan
from trainyard.plans.clusters import AGENT, AnyClusterPlan, ExistingClusterPlan
from trainyard.plans.jobs import JobPlan
from trainyard.reports.minutes.draws import Spread, spread
from trainyard.stores.figures import Stage, took
from trainyard.stores.kinds import plan_kind

NODES = ("system nodes", "first add-ons")
"""Stages that whatever needs nodes waits for."""


@dataclass(frozen=True, kw_only=True)
class Timeline:
    """Every stage at the earliest moment it can be; seconds since the start."""

    stages: tuple[Stage, ...]
    """None before what it waits for."""
    job: str | None
    """The job that makes the first step; None: the stack has none, and the end is when everything
    is there."""
    start: Mapping[str, float]
    end: Mapping[str, float]
    slack: Mapping[str, float | None]
    """Seconds a stage may take longer without moving the first step; None where the first step does
    not wait for it."""
    critical: tuple[str, ...]
    """The longest way, in order; one of them where several are as long."""
    seconds: float
    """From nothing to the first step, with every stage at its median."""
    first_steps: Mapping[str, float]
    """Job → seconds from nothing to its first step, where no other job takes its nodes."""
    slow_seconds: float
    """Seconds to the first step where every stage is as slow as its slowest tenth."""


def schedule(plan: EnvironmentPlan | TeamPlan) -> Timeline:
    """The stages of a plan in time. A team's begin when its environment is there."""
    stages = tuple(_environment(plan)) if isinstance(plan, EnvironmentPlan) else ()
    ends = _ends(stages)
    # How long a run takes that others come after, nobody says; and a schedule has no run that an update starts.
    own = {name: job for name, job in plan.jobs.items() if not job.after and not job.schedule}
    ways = {name: tuple(_job(plan, job)) for name, job in own.items()}
    steps = {name: _ends(way, ends)["first step"] for name, way in ways.items()}
    first = min(steps, key=lambda name: steps[name], default=None)
    return _timeline((*stages, *(ways[first] if first else ())), first, steps)


def other_jobs(timeline: Timeline) -> str:
    """Times of the first steps of the other jobs; empty where there are none."""
    later = {name: took for name, took in timeline.first_steps.items() if name != timeline.job}
    each = ", ".join(f"{name} {took / 60:.1f} min" for name, took in later.items())
    return f"first steps of other jobs, if they get their nodes at once: {each}" if later else ""


def drawn(timeline: Timeline) -> Spread:
    """Typical time to the first step and that of one start in ten."""
    return spread(timeline.stages, timeline.job)


def in_words(timeline: Timeline) -> str:
    """Sentence of `trainyard plan` about the time to the first step. The time with every stage at its median is left
    out: some stage is late in nearly every start (docs/decisions/0027-minutes-are-drawn.md)."""
    end, found = (
        f"the first step of {timeline.job}" if timeline.job else "all of it",
        drawn(timeline),
    )
    typical, slow = found.typical_seconds / 60, found.one_in_ten_seconds / 60
    return f"{typical:.1f} min to {end}, one in ten {slow:.1f} ({found.draws:,} draws)"


def slowest(timeline: Timeline) -> str:
    """The three stages that make slow starts slow, in words; empty where no stage varies."""
    each = [
        f"{late.stage} {late.seconds:,.0f} s ({_logs(late.logs)})"
        for late in drawn(timeline).late[:3]
    ]
    return f"above their medians in the slowest tenth: {', '.join(each)}" if each else ""


def thin(plan: EnvironmentPlan | TeamPlan, timeline: Timeline) -> list[str]:
    """Stages whose logs are of other instance types than the nodes of the job, in words."""
    if timeline.job is None:
        return []
    first = plan.capacity[plan.jobs[timeline.job].pool].instance_types[0]
    rows = {stage.name: LATENCIES[stage.row] for stage in timeline.stages if stage.row in LATENCIES}
    family = first.partition(".")[0]
    return [
        f"{name}: {_logs(row.n)} of {', '.join(row.families)}, none of {family}"
        for name, row in rows.items()
        if row.families and family not in row.families
    ]


def _logs(count: int) -> str:
    return f"{count or 'no'} log{'' if count == 1 else 's'}"


def slow_start(plan: EnvironmentPlan | TeamPlan, job: JobPlan) -> float:
    """Seconds from the creation of a job to its first step, where every stage is as slow as its slowest
    tenth."""
    stages = [_slowed(stage) for stage in _job(plan, job)]
    own = {stage.name for stage in stages}
    alone = [replace(s, after=tuple(name for name in s.after if name in own)) for s in stages]
    return _ends(alone)["first step"]


def cold_start(plan: EnvironmentPlan | TeamPlan, job: JobPlan) -> float:
    """Seconds for which a job's nodes are paid before its first step."""
    pull, step = image_pull(plan, job, ()).seconds, TYPICAL["job.first-step"]
    boot = TYPICAL[_row("ec2.instance-boot", plan, job)]
    if _prefetched(plan, job) and not _bottlerocket(plan, job):
        pulled = TYPICAL["ec2.instance-ready"] + pull
        return (0 if _stands(plan, job) else max(boot, pulled)) + step
    return (0 if _stands(plan, job) else boot) + pull + step


def image_pull(plan: EnvironmentPlan | TeamPlan, job: JobPlan, after: tuple[str, ...]) -> Stage:
    """The pull of a job's image: as fast as a node is, or as the NAT gateway that all its nodes share.
    The gateway has grown on a typical day, and is as it starts on a slow one."""
    one = took("image pull", _row("job.image-pull", plan, job), after)
    gigabits = gateway_gb(plan, job) * 8
    of_the_row = job.image_gb / float(IMAGE_GB)
    return replace(
        one,
        seconds=max(one.seconds * of_the_row, gigabits / NAT_MOST_GBPS),
        slow_seconds=max(one.slow_seconds * of_the_row, gigabits / NAT_START_GBPS),
    )


def gateway_gb(plan: EnvironmentPlan | TeamPlan, job: JobPlan) -> float:
    """Gigabytes of images that the nodes of a job pull through one NAT gateway. Layers in ECR of the
    region come from S3 by its endpoint, beside the gateway."""
    in_region = f".dkr.ecr.{plan.identity.region}.amazonaws.com" in job.image
    return job.nodes * job.image_gb if plan.leads_out and not in_region else 0


def _environment(plan: EnvironmentPlan) -> Iterable[Stage]:
    """Stages before any job, in the order of stacks/environment.py. Nothing waits for a VPC or a
    cluster that is there already."""
    made = [*(_network(plan) if plan.own_network else ()), *_endpoints(plan)]
    there = {"VPC", "subnets", "NAT gateway", "endpoints"} - {stage.name for stage in made}
    there |= _in_existing_cluster(plan.cluster)
    yield from (
        replace(stage, after=tuple(n for n in stage.after if n not in there)) for stage in made
    )
    for stage in _in_network(plan):
        if stage.name not in there:
            yield replace(stage, after=tuple(name for name in stage.after if name not in there))


def _in_existing_cluster(cluster: AnyClusterPlan) -> set[str]:
    """Stages that are over before an environment begins: those of an existing cluster and its
    add-ons."""
    if not isinstance(cluster, ExistingClusterPlan):
        return set()
    first = set[str]() if AGENT in cluster.made_add_ons else {"first add-ons"}
    return {"cluster", *first, *cluster.add_ons}


def _network(plan: EnvironmentPlan) -> Iterable[Stage]:
    """Stages of a VPC that the stack makes."""
    yield took("VPC", "ec2.vpc")
    yield took("subnets", "ec2.subnet", ("VPC",))
    if plan.leads_out:
        yield took("NAT gateway", "ec2.nat-gateway", ("subnets",))


def _endpoints(plan: EnvironmentPlan) -> Iterable[Stage]:
    """Interface endpoints, all of them at once."""
    if plan.network.endpoints:
        yield took("endpoints", "ec2.interface-endpoint", ("subnets",))


def _in_network(plan: EnvironmentPlan) -> Iterable[Stage]:
    """Stages of what is made in a VPC."""
    yield took("security groups", "ec2.security-group", ("VPC",))
    yield from _stores(plan)
    yield from _cluster(plan)
    yield from _controllers(plan)


def _stores(plan: EnvironmentPlan) -> Iterable[Stage]:
    """File systems, and what must be there before a job can mount them."""
    for name, store in plan.stores.items():
        yield from plan_kind(store).stages(name, store)


def _cluster(plan: EnvironmentPlan) -> Iterable[Stage]:
    """Control plane, system nodes and add-ons."""
    yield took("cluster", "eks.cluster", ("subnets",))
    yield took("first add-ons", "eks.addon.vpc-cni", ("cluster",))
    way_out = ("NAT gateway", "endpoints")
    yield took("system nodes", "eks.nodegroup", (*way_out, "cluster"))
    yield took("system nodes Ready", "eks.nodegroup.ready", (*way_out, "cluster"))
    for each in plan.add_ons.after_nodes:
        yield took(each.name, add_on(each.name), NODES)


def _controllers(plan: EnvironmentPlan) -> Iterable[Stage]:
    """Karpenter and its pools, the Trainer and its runtimes, training-operator. Their releases begin
    before there are nodes and take as long from the first Ready node as from scratch, at most."""
    yield took("interruption queue", "sqs.queue")
    yield took("Karpenter", "helm.karpenter", ("interruption queue", "system nodes Ready"))
    if plan.pools:
        yield took("pools", "kubernetes.pools", ("Karpenter", *NODES, "security groups"))
    yield took("Trainer", "helm.controller", ("system nodes Ready",))
    if plan.runtimes:
        yield took("runtimes", "kubernetes.runtimes", ("Trainer", *NODES))
    if plan.training_operators:
        # Nobody has measured it: a release of one controller with a webhook, as the Trainer's.
        yield took("training-operator", "helm.controller", ("system nodes Ready",))
    for part, its in planned_parts(plan):
        yield from part.stages(its, NODES)
    if plan.queues:
        # Nobody has measured it either.
        also = ("training-operator",) if plan.training_operators else ()
        yield took("Kueue", "helm.controller", ("Trainer", *also))


def _job(plan: EnvironmentPlan | TeamPlan, job: JobPlan) -> Iterable[Stage]:
    """From what a job waits for to its first step. A static pool's nodes start with the pool,
    others with the job."""
    needs, pool = _needs(plan, job)
    loads = tuple(_loads(job, (*pool, *needs)))
    yield from loads
    needs = (*needs, *(stage.name for stage in loads))
    stands = _stands(plan, job)
    if not stands:
        yield took("batching", "job.batching", (*pool, *needs))
    launched, late = (pool, needs) if stands else (("batching",), ())
    yield took("first node", _row("ec2.instance-boot", plan, job), launched)
    if _prefetched(plan, job) and _bottlerocket(plan, job):
        yield image_pull(plan, job, ("first node",))
        yield took("first step", "job.first-step", ("image pull", *late))
    elif _prefetched(plan, job):
        yield took("first node Ready", "ec2.instance-ready", launched)
        yield image_pull(plan, job, ("first node Ready",))
        yield took("first step", "job.first-step", ("first node", "image pull", *late))
    else:
        yield image_pull(plan, job, ("first node", *late))
        yield took("first step", "job.first-step", ("image pull",))


def _loads(job: JobPlan, needs: tuple[str, ...]) -> Iterable[Stage]:
    """Loads whose size is known. Each has a node of its own, at worst."""
    boot = took("", "ec2.instance-boot")
    for load in job.loads:
        if load.seconds is not None:
            yield Stage(
                name=load.name,
                seconds=boot.seconds + load.seconds,
                slow_seconds=boot.slow_seconds + 2 * load.seconds,
                after=needs,
            )


def _needs(
    plan: EnvironmentPlan | TeamPlan, job: JobPlan
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The stages before a job: its runtime or controller, file systems and their drivers; and its
    pool."""
    if isinstance(plan, TeamPlan):
        return (), ()
    mounted = [
        stage
        for name, store in plan.stores.items()
        if name in job.stores
        for stage in (*plan_kind(store).last_stages(name, store), plan_kind(store).driver.add_on)
    ]
    runs = "runtimes" if job.runtime else JOB_KINDS[job.kind].controller
    admits = ("Kueue",) if plan.queues else ()
    needs = (runs, *admits, "coredns", *dict.fromkeys(mounted))
    there = _in_existing_cluster(plan.cluster)
    return tuple(stage for stage in needs if stage not in there), ("pools",)


def _prefetched(plan: EnvironmentPlan | TeamPlan, job: JobPlan) -> bool:
    """True where nodes of the job's pool pull images while they start: by default that of the
    job."""
    return isinstance(plan, EnvironmentPlan) and bool(plan.pools[job.pool].images)


def _bottlerocket(plan: EnvironmentPlan | TeamPlan, job: JobPlan) -> bool:
    """True where nodes of the job's pool have Bottlerocket: a node shows its GPUs as soon as it is Ready. A
    team is not told."""
    return isinstance(plan, EnvironmentPlan) and is_bottlerocket(plan.pools[job.pool].ami)


def _row(name: str, plan: EnvironmentPlan | TeamPlan, job: JobPlan) -> str:
    """Row of LATENCIES for the nodes of the job's pool."""
    return f"{name}.bottlerocket" if _bottlerocket(plan, job) else name


def _stands(plan: EnvironmentPlan | TeamPlan, job: JobPlan) -> bool:
    """True where the job's nodes run before it asks for them."""
    return isinstance(plan, EnvironmentPlan) and bool(plan.pools[job.pool].replicas)


def _timeline(
    stages: tuple[Stage, ...], job: str | None, first_steps: Mapping[str, float]
) -> Timeline:
    end = _ends(stages)
    total = _total(end, job)
    latest = {"first step": total} if job else {s.name: total for s in stages}
    for stage in reversed(stages):
        for before in stage.after if stage.name in latest else ():
            latest[before] = min(latest.get(before, total), latest[stage.name] - stage.seconds)
    start = {s.name: end[s.name] - s.seconds for s in stages}
    slack = {
        s.name: round(latest[s.name] - end[s.name], 3) if s.name in latest else None for s in stages
    }
    return Timeline(
        stages=stages,
        job=job,
        start=start,
        end=end,
        slack=slack,
        seconds=total,
        first_steps=first_steps,
        slow_seconds=_total(_ends([_slowed(s) for s in stages]), job),
        critical=_longest_way(stages, end, job),
    )


def _longest_way(
    stages: tuple[Stage, ...], end: Mapping[str, float], job: str | None
) -> tuple[str, ...]:
    """Back from the end, each time to what was waited for last."""
    after = {stage.name: stage.after for stage in stages}
    way, latest = [], "first step" if job else max(end, key=lambda name: end[name], default=None)
    while latest is not None:
        way.append(latest)
        latest = max(after[latest], key=lambda name: end[name], default=None)
    return tuple(reversed(way))


def _slowed(stage: Stage) -> Stage:
    return replace(stage, seconds=max(stage.seconds, stage.slow_seconds))


def _ends(stages: Iterable[Stage], before: Mapping[str, float] | None = None) -> dict[str, float]:
    """Earliest end of each stage; `before` has those that are known."""
    ends = dict(before or {})
    for stage in stages:
        ends[stage.name] = max((ends[name] for name in stage.after), default=0) + stage.seconds
    return ends


def _total(ends: Mapping[str, float], job: str | None) -> float:
    return ends["first step"] if job else max(ends.values(), default=0)
