"""Warnings about jobs that Kueue stops for others, and that begin at their first step then. Examples of each rule:
tests/trainyard/rules/test_preemption.py."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from trainyard.derive.after import earlier
from trainyard.derive.pools import gpus_of
from trainyard.derive.teams import Share
from trainyard.objects.queues.queues import URGENCIES, PoolShare, TeamQueuePlan, usual_urgency
from trainyard.problems import At, InputWarning, few
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.job import JobConfig


def stopped_warnings(
    share: Share,
    entries: Mapping[str, JobConfig],
    own: Mapping[str, JobConfig],
    environment: EnvironmentConfig,
) -> Iterator[InputWarning]:
    """Jobs of a team without checkpoints that Kueue stops for another one. `entries`: described in the stack file.
    `own`: those of the team that can go on at once."""
    if share.queue is None or share.queue.preemption == "never":
        return
    shares = {each.pool: each for each in share.queue.shares}
    for name, job in entries.items():
        of = shares.get(job.pool)
        if of is None or job.checkpoints is not None:
            continue
        rivals = {each: own[each] for each in _beside(name, job, own)}
        why = _borrows(job, rivals, of, share.queue, environment) or _gives_way(
            job, rivals, of, share.queue, environment
        )
        if why:
            yield At(f"team.jobs.{name}").warning(
                f"{why}. The job has no checkpoints, so it begins at its first step then. Set checkpoints, or let the"
                f" environment raise the team's guaranteed_nodes of {job.pool}"
            )


def _beside(name: str, job: JobConfig, jobs: Mapping[str, JobConfig]) -> Iterator[str]:
    """Other jobs that can run on the pool of a job at the same time: none that comes before or after it."""
    ahead = earlier(name, jobs)
    for other, each in jobs.items():
        apart = other in ahead or name in earlier(other, jobs)
        if each.pool == job.pool and other != name and not apart:
            yield other


def _borrows(
    job: JobConfig,
    rivals: Mapping[str, JobConfig],
    of: PoolShare,
    queue: TeamQueuePlan,
    environment: EnvironmentConfig,
) -> str:
    """Kueue stops jobs of a team that has more than its guarantee, the less urgent first, until it has not: for a team
    that wants its own (reclaimWithinCohort), and with fair sharing for one that has borrowed less (0.16.9 and 0.19.2,
    preemption.go, cqIsBorrowing and runFirstFsStrategy; common/ordering.go). Empty where it does not."""
    kept = {
        name: gpus_of(each, environment)
        for name, each in rivals.items()
        if _urgency(each, queue) >= _urgency(job, queue)
    }
    fair = queue.fair_sharing and len(environment.teams) > 1
    lent = _lent(queue.team, of.pool, environment)
    need, guaranteed = gpus_of(job, environment), of.guaranteed * of.gpus
    if not (lent or fair) or need + sum(kept.values()) <= guaranteed:
        return ""
    with_others = f", together with {few([*kept])}," if kept and need <= guaranteed else ""
    whom = [
        *(["a team wants those that it is guaranteed"] if lent else []),
        *(
            [f"{'one' if lent else 'a team'} that has borrowed less wants some (fair_sharing)"]
            if fair
            else []
        ),
    ]
    return (
        f"the team is guaranteed {of.guaranteed} nodes of pool {of.pool}, so the job{with_others} borrows nodes that it"
        f" is stopped for when {', or '.join(whom)}"
    )


def _gives_way(
    job: JobConfig,
    rivals: Mapping[str, JobConfig],
    of: PoolShare,
    queue: TeamQueuePlan,
    environment: EnvironmentConfig,
) -> str:
    """Within a team Kueue stops a job of a lower urgency (withinClusterQueue) where nodes are short. Empty where it
    does not."""
    higher = [name for name, each in rivals.items() if _urgency(each, queue) > _urgency(job, queue)]
    sure = of.guaranteed if len(environment.teams) > 1 else of.possible
    needed = sum(gpus_of(each, environment) for each in (job, *rivals.values()))
    if not higher or queue.preemption != "urgency_and_guarantees" or needed <= sure * of.gpus:
        return ""
    return f"{few(higher)}, of a higher urgency, stops it where nodes of pool {of.pool} are short"


def _urgency(job: JobConfig, queue: TeamQueuePlan) -> int:
    return URGENCIES[job.urgency or usual_urgency(queue.max_urgency)]


def _lent(team: str, pool: str, environment: EnvironmentConfig) -> int:
    """Nodes of a pool that other teams are guaranteed, and lend."""
    return sum(
        entry.guaranteed_nodes.get(pool, 0)
        for name, entry in environment.teams.items()
        if name != team and entry.lends_nodes
    )
