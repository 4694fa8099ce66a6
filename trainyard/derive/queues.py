"""Plans that follow from `environment.queues`: quotas from pools and from the shares of teams, how
long a gang may wait for its pods, and the labels of jobs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from trainyard.catalog.aws.latencies import LATENCIES
from trainyard.catalog.job_kinds import JOB_KINDS
from trainyard.catalog.kueue_types import as_written_back
from trainyard.catalog.limits import GANG, LONGEST_BACKOFF_SECONDS, PAID_BACKOFF_SECONDS
from trainyard.catalog.versions import TRAINER_RELEASES
from trainyard.derive.controllers import job_kinds, kueue_chart
from trainyard.derive.pools import first_type, largest_gang
from trainyard.objects.programs.dispatch import CHECK
from trainyard.objects.queues.queues import (
    DISPATCHER,
    FlavorPlan,
    PoolShare,
    QueuesPlan,
    TeamQueuePlan,
    job_labels,
)
from trainyard.plans.identity import Identity
from trainyard.plans.jobs import JobPlan, Spec
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.job import AnyJob
from trainyard.settings.pools import PoolConfig
from trainyard.settings.team_entry import TeamEntryConfig

MARGIN = 5
"""A gang may take this many times as long as a slow node: types with EFA boot slower than those that
were measured, images of 13 GB took 230 s without the parallel pull, and Karpenter gets the nodes of a
gang one after the other. A gang that is given up too early begins from nothing."""
FETCH_MINUTES = 60
"""For a runtime that fetches its model before it trains: a TrainJob is ready when that has ended,
too."""


def queues_plan(me: Identity, wanted: EnvironmentConfig) -> QueuesPlan | None:
    """Kueue as the pools and teams want it; None where the stack file wants no queues."""
    if wanted.queues is None:
        return None
    version = TRAINER_RELEASES[wanted.trainer.version].kueue
    dispatches = bool(wanted.queues.workers)
    taken = guaranteed_nodes(wanted)
    # A pool that is switched off for a night is the same to Kueue, which would restart for another answer.
    pools = queued_pools(wanted).values()
    paid = any(pool.replicas is not None or pool.reservation for pool in pools)
    fetch = FETCH_MINUTES * bool(fetching(wanted))
    return QueuesPlan(
        version=version,
        chart=kueue_chart(version, wanted.artifacts),
        flavors=tuple(
            FlavorPlan(
                pool=name,
                gpus=gpus_of_node(pool),
                nodes=largest_gang(pool),
                free_nodes=largest_gang(pool) - taken[name],
                by_topology=wanted.queues.topology is not None,
            )
            for name, pool in queued_pools(wanted).items()
        ),
        job_kinds=job_kinds(wanted),
        fair_sharing=wanted.queues.fair_sharing,
        ready_minutes=gang_minutes(wanted),
        recovery_minutes=_stage_minutes(GANG) + fetch,
        fetch_minutes=fetch,
        longest_backoff_seconds=PAID_BACKOFF_SECONDS if paid else LONGEST_BACKOFF_SECONDS,
        origin=me.stack if dispatches else None,
        manager=wanted.queues.manager,
    )


def queued_pools(wanted: EnvironmentConfig) -> dict[str, PoolConfig]:
    """The pools whose nodes the queues hand out: those with GPUs."""
    return {name: pool for name, pool in wanted.pools.items() if gpus_of_node(pool)}


def gpus_of_node(pool: PoolConfig) -> int:
    """GPUs of a node of the pool's first type; 0 for CPU nodes and unknown types."""
    kind = first_type(pool)
    return kind.gpus if kind else 0


def guaranteed_nodes(wanted: EnvironmentConfig) -> dict[str, int]:
    """Pool → nodes that teams are guaranteed together."""
    return {
        pool: sum(entry.guaranteed_nodes.get(pool, 0) for entry in wanted.teams.values())
        for pool in wanted.pools
    }


def kept_nodes(wanted: EnvironmentConfig) -> dict[str, int]:
    """Pool → nodes that all teams together keep for themselves: guaranteed, and not lent."""
    return {
        pool: sum(_kept(entry, pool) for entry in wanted.teams.values()) for pool in wanted.pools
    }


def _kept(entry: TeamEntryConfig, pool: str) -> int:
    return 0 if entry.lends_nodes else entry.guaranteed_nodes.get(pool, 0)


def team_queue_plan(
    name: str, wanted: EnvironmentConfig, kept: Mapping[str, int]
) -> TeamQueuePlan | None:
    """The queue of a team that the environment lists; None where it has no queues. `kept`: of
    kept_nodes, which whoever plans many teams sums up once."""
    if wanted.queues is None:
        return None
    entry = wanted.teams[name]
    return TeamQueuePlan(
        team=name,
        shares=tuple(
            _share(pool, config, entry, kept[pool]) for pool, config in queued_pools(wanted).items()
        ),
        lends=entry.lends_nodes,
        preemption=wanted.queues.preemption,
        fair_sharing=wanted.queues.fair_sharing,
        max_urgency=entry.max_urgency,
        check=CHECK if wanted.queues.workers else None,
    )


def possible_nodes(name: str, wanted: EnvironmentConfig) -> dict[str, int]:
    """Pool → most nodes that the queue of a team gives it; nothing without queues, and for a team that
    the environment does not list."""
    if name not in wanted.teams:
        return {}
    queue = team_queue_plan(name, wanted, kept_nodes(wanted))
    return {share.pool: share.possible for share in queue.shares} if queue else {}


def _share(name: str, pool: PoolConfig, entry: TeamEntryConfig, kept: int) -> PoolShare:
    """Possible are all nodes but those that other teams keep for themselves. `kept`: by all
    teams."""
    ceiling = entry.max_nodes.get(name)
    free = largest_gang(pool) - (kept - _kept(entry, name))
    return PoolShare(
        pool=name,
        gpus=gpus_of_node(pool),
        guaranteed=entry.guaranteed_nodes.get(name, 0),
        ceiling=ceiling,
        possible=free if ceiling is None else min(free, ceiling),
    )


def ready_minutes(wanted: EnvironmentConfig) -> int:
    """Minutes that the pods of a gang may take on the slowest pool, without a model that its runtime
    fetches. Where all pools keep their nodes, only the image must be pulled."""
    stand = all(pool.replicas is not None for pool in queued_pools(wanted).values())
    return _stage_minutes(GANG[-1:] if stand else GANG)


def gang_minutes(wanted: EnvironmentConfig) -> int:
    """Minutes after which Kueue stops a gang whose pods do not all run."""
    return ready_minutes(wanted) + FETCH_MINUTES * bool(fetching(wanted))


def _stage_minutes(rows: Sequence[str]) -> int:
    """Minutes for stages of a gang's start. One that has lost a node waits for all of them, whatever its pool keeps: a
    gang that is stopped before the new node is there goes behind all that wait."""
    return math.ceil(MARGIN * sum(LATENCIES[row].slow for row in rows) / 60)


def fetching(wanted: EnvironmentConfig) -> list[str]:
    """Runtimes that fetch their model before they train."""
    own = [name for name, each in wanted.trainer.own_runtimes.items() if each.torchtune]
    return [*(name for name in wanted.trainer.runtimes if name.startswith("torchtune-")), *own]


def queued(
    plans: Mapping[str, JobPlan],
    jobs: Mapping[str, AnyJob],
    queue: TeamQueuePlan | None,
    trainer: str,
) -> dict[str, JobPlan]:
    """The jobs of a team with the labels of its queue and, where they run elsewhere, whoever runs them;
    and without the zero values that Kueue would drop. None of it is part of a run's identity: a new
    queue starts no run again. `trainer`: its release."""
    if queue is None:
        return dict(plans)
    elsewhere = {"managedBy": DISPATCHER} if queue.check else {}
    return {
        name: replace(
            plan,
            labels={
                **plan.labels,
                **job_labels(queue.team, jobs[name].urgency, queue.max_urgency),
            },
            spec={**_sent(plan, trainer), **elsewhere},
        )
        for name, plan in plans.items()
    }


def _sent(plan: JobPlan, trainer: str) -> Spec:
    """The spec of a job, as Kueue writes it back. Nobody compares what it does to a PyTorchJob."""
    return as_written_back(plan.spec, trainer) if JOB_KINDS[plan.kind].has_runtime else plan.spec
