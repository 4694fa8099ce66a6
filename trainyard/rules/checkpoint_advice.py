"""Advice where the checkpoints of a job leave too little time to train.

Every proposal is written into the settings and judged as the plan judges them: whoever follows one gets
the goodput that it names. Figures: trainyard/stores/goodput.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil, floor

from trainyard.derive.stores import job_verdict, sized_store, stop_rate
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.job import CheckpointConfig, JobConfig
from trainyard.settings.stores import StoreConfig
from trainyard.stores.goodput import Verdict, checkpoints_on_disk
from trainyard.stores.kinds import kind_of, made_for_efa
from trainyard.stores.lustre_proposal import on_lustre, to_write
from trainyard.stores.lustre_sizing import Needs

ENOUGH_PERCENT = 95.0
"""Goodput that is proposed to a job that asks for none. A choice of ours."""
WORTH_CHANGING = 0.0005
"""Share of the time below which nothing is better: percents are printed with one decimal."""
MOST = "no other interval_minutes, no other lustre and no asynchronous save keeps more"


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A job, its checkpoints, and the environment that it would run in."""

    job: JobConfig
    saves: CheckpointConfig
    environment: EnvironmentConfig
    region: str

    @property
    def store(self) -> StoreConfig:
        """The store of the checkpoints, with its size decided."""
        own = self.environment.storage[self.saves.store]
        return sized_store(own, self.environment, self.region)

    def verdict(self) -> Verdict | None:
        """As the plan has it."""
        return job_verdict(replace(self.job, checkpoints=self.saves), self.environment, self.region)

    def saving(self, *, minutes: float | None, asynchronous: bool) -> Asked:
        """Question with another interval, None being the best, and another way to save."""
        saves = replace(self.saves, interval_minutes=minutes, asynchronous=asynchronous)
        return replace(self, saves=saves)

    def on(self, store: StoreConfig) -> Asked:
        """Question with another store for the checkpoints."""
        storage = {**self.environment.storage, self.saves.store: store}
        return replace(self, environment=replace(self.environment, storage=storage))


@dataclass(frozen=True, kw_only=True)
class Proposal:
    """Settings that differ from those of the job, and what they come to."""

    words: str
    """Advice: what to write, with its verb."""
    why: str = ""
    """The reason for a change of the script, behind the advice."""
    goodput: float


def better_checkpoints(job: JobConfig, environment: EnvironmentConfig, region: str) -> str:
    """The first change that keeps the job at its goodput, in words: another interval, then a Lustre at the
    job's own interval, then both, and asynchronous saves last, which change its script. Where none
    does, the one that keeps most."""
    now = job_verdict(job, environment, region)
    if job.checkpoints is None or now is None:
        return MOST
    asked = Asked(job=job, saves=job.checkpoints, environment=environment, region=region)
    wanted = (job.goodput_percent or ENOUGH_PERCENT) / 100
    enough = (found for found in _proposals(asked, wanted) if found.goodput >= wanted)
    if first := next(enough, None):
        return f"{first.words} {first.goodput:.1%}{first.why}"
    most = max(_proposals(asked, None), key=lambda found: found.goodput, default=None)
    if most is None or most.goodput < now.goodput + WORTH_CHANGING:
        return MOST
    return f"{most.words} {most.goodput:.1%}, the most there is{most.why}"


def best_minutes(job: JobConfig, environment: EnvironmentConfig, region: str) -> int:
    """Whole minutes between saves that lose least: no less than a save takes, and less than the job runs
    between failures."""
    assert job.checkpoints is not None  # callers have a verdict
    asked = Asked(job=job, saves=job.checkpoints, environment=environment, region=region)
    return _at_its_best(asked)[1]


def _proposals(asked: Asked, wanted: float | None) -> Iterator[Proposal]:
    """Proposals that lead to another verdict, in the order in which they are made. `wanted`:
    goodput for which a Lustre is looked up; None: the best there is."""
    own, now = asked.saves.interval_minutes, asked.saves.asynchronous
    for late in dict.fromkeys((now, True)):
        as_now = asked.saving(minutes=own, asynchronous=late)
        yield from _proposal(asked, as_now)
        if own is not None:
            yield from _proposal(asked, _at_its_best(as_now)[0])
        yield from _proposal(asked, _faster(as_now, wanted))
        if own is not None:
            # What whole minutes lose is looked for as well.
            free = as_now.saving(minutes=None, asynchronous=late)
            faster = _faster(free, wanted and wanted + WORTH_CHANGING)
            yield from _proposal(asked, faster and _at_its_best(faster)[0])


def _at_its_best(asked: Asked) -> tuple[Asked, int]:
    """Question at the best interval of its checkpoints, and that interval in minutes."""
    late = asked.saves.asynchronous
    best = asked.saving(minutes=None, asynchronous=late).verdict()
    assert best is not None  # callers have a verdict
    whole = max(1, min(ceil(best.interval_seconds / 60), floor(best.mtbf_hours * 60)))
    return asked.saving(minutes=whole, asynchronous=late), whole


def _faster(asked: Asked, wanted: float | None) -> Asked | None:
    """Question with the cheapest Lustre that keeps the goodput at its interval; None where there is
    none."""
    job, saves, store = asked.job, asked.saves, asked.store
    pool = asked.environment.pools[job.pool]
    first, found = pool.instance_types[0], kind_of(store)
    faster = on_lustre(
        store,
        Needs(
            parameters_billion=job.parameters_billion or 0,
            nodes=job.nodes,
            instance_type=first,
            region=asked.region,
            goodput=wanted,
            efa=made_for_efa(store),
            over_efa=bool(found) and found[0].mounts_over_efa(found[1], pool, first),
            bytes_per_parameter=job.bytes_per_parameter,
            blocking=not saves.asynchronous,
            interval_seconds=saves.interval_minutes and saves.interval_minutes * 60,
            failures_per_1000_node_days=stop_rate(job, pool),
            on_disk=checkpoints_on_disk(saves.keep),
        ),
    )
    return faster and asked.on(faster)


def _proposal(before: Asked, after: Asked | None) -> Iterator[Proposal]:
    """The step between the two, unless it is none, or an error would follow it."""
    verdict = after and after.verdict()
    if after is None or verdict is None or verdict.saves_too_often:
        return
    late = after.saves.asynchronous and not before.saves.asynchronous
    minutes = after.saves.interval_minutes
    changes = [
        "asynchronous: true in checkpoints" if late else "",
        f"interval_minutes: {minutes:g}" if minutes != before.saves.interval_minutes else "",
        to_write(before.store, after.store),
    ]
    if found := [change for change in changes if change]:
        listed = " and ".join(filter(None, [", ".join(found[:-1]), found[-1]]))
        yield Proposal(
            words=f"{listed} keep{'' if found[1:] else 's'}",
            why=", as no Lustre is fast enough for saves that training waits for" if late else "",
            goodput=verdict.goodput,
        )
