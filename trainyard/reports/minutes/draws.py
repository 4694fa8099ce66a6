"""Spread of the time to the first step, by seeded draws over the graph of stages.

A draw gives each stage a duration of its own, and the first step comes when the longest way of that draw
is over. The median of the draws is the typical time, and their 90th percentile what one start in ten takes:
neither the sum of the medians nor that of the slowest tenths is one of them, because a stage waits for
the last of several others, and stages are seldom all slow at once.

The duration of a stage is lognormal: `Stage.seconds` is its median, `Stage.slow_seconds` its 90th
percentile. Each stage goes through the same quantiles once, in an order of its own that its name decides.
So the figures are the same in every process, and a stage that is added moves no other one.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist, median

from trainyard.catalog.aws.latencies import LATENCIES
from trainyard.stores.figures import Stage

DRAWS = 2_000
"""Number of starts that are drawn: 30 ms of CPU. With other orders the two figures move by 0.1 min."""
NORMAL = NormalDist()
SLOWEST_TENTH = NORMAL.inv_cdf(0.9)
"""Quantile of the standard normal distribution that `Stage.slow_seconds` stands for."""
PART_OF = {"eks.nodegroup.ready": "eks.nodegroup", "ec2.instance-ready": "ec2.instance-boot"}
"""Row of LATENCIES that is over a fixed time before another row is, by its own source → that row. One
start of a machine is behind both, so that both are slow in the same draws."""


@dataclass(frozen=True, kw_only=True)
class Late:
    """A stage that makes slow starts slow."""

    stage: str
    seconds: float
    """Seconds above its median, on average over the slowest tenth of the draws; those in which no
    longest way goes through it count as 0."""
    logs: int
    """Lines of logs behind its duration; 0: none, only what people write."""


@dataclass(frozen=True, kw_only=True)
class Spread:
    """Times to the first step that the draws give."""

    typical_seconds: float
    """Median: half of the draws take longer."""
    one_in_ten_seconds: float
    """90th percentile: one draw in ten takes as long or longer."""
    draws: int
    late: tuple[Late, ...]
    """Stages that make the slowest tenth slow, the one that makes most of it first."""


@lru_cache(maxsize=32)
def spread(stages: tuple[Stage, ...], job: str | None) -> Spread:
    """Draws of a time line. `stages`: none before what it waits for. `job`: None where the end is when
    everything is there."""
    durations = {stage.name: _durations(stage) for stage in stages}
    ends: dict[str, Sequence[float]] = {}
    for stage in stages:
        took, waits = durations[stage.name], [ends[name] for name in stage.after]
        begins = list(map(max, *waits)) if len(waits) > 1 else waits[0] if waits else [0.0] * DRAWS
        ends[stage.name] = [start + seconds for start, seconds in zip(begins, took, strict=True)]
    last = ("first step",) if job else tuple(ends)
    totals = [max(each) for each in zip(*(ends[name] for name in last), strict=True)]
    order = sorted(range(len(totals)), key=totals.__getitem__)
    slow = order[DRAWS * 9 // 10 :]
    return Spread(
        typical_seconds=median(totals) if totals else 0,
        one_in_ten_seconds=totals[slow[0]] if slow else 0,
        draws=DRAWS,
        late=_late(stages, last, durations, ends, slow),
    )


def _durations(stage: Stage) -> list[float]:
    """Seconds of a stage in each draw."""
    whole = PART_OF.get(stage.row)
    if whole is None:
        return _lognormal(_start(stage), stage.seconds, stage.slow_seconds)
    median_of_whole, slow = LATENCIES[whole].typical, LATENCIES[whole].slow
    before = median_of_whole - stage.seconds
    return [max(0.0, each - before) for each in _lognormal(whole, median_of_whole, slow)]


def _start(stage: Stage) -> str:
    """Name of what the stage is a part of: its own, or the row that all parts of one start share."""
    return stage.row if stage.row in PART_OF.values() else PART_OF.get(stage.row, stage.name)


def _lognormal(name: str, typical: float, slow: float) -> list[float]:
    """Draws with this median and this 90th percentile, in the order of `name`."""
    if slow <= typical:
        return [typical] * DRAWS
    spreads = math.log(slow / typical) / SLOWEST_TENTH
    return [typical * math.exp(spreads * each) for each in _quantiles(name)]


@lru_cache(maxsize=128)
def _quantiles(name: str) -> tuple[float, ...]:
    """Quantiles of the standard normal distribution in an order that the name decides."""
    shuffled = random.Random(name).random
    return tuple(sorted(_ordered(), key=lambda _: shuffled()))


@lru_cache(maxsize=1)
def _ordered() -> tuple[float, ...]:
    return tuple(NORMAL.inv_cdf((number + 0.5) / DRAWS) for number in range(DRAWS))


def _late(
    stages: Sequence[Stage],
    last: Sequence[str],
    durations: dict[str, list[float]],
    ends: dict[str, Sequence[float]],
    slow: Sequence[int],
) -> tuple[Late, ...]:
    """The stages on the longest ways of the slow draws, by their seconds above the median. A part of
    the start of a machine counts for the whole of it."""
    by_name, above = {stage.name: stage for stage in stages}, dict.fromkeys(durations, 0.0)
    for draw in slow:
        waited = last
        while waited:
            name = max(waited, key=lambda each: ends[each][draw])
            above[name] += durations[name][draw] - by_name[name].seconds
            waited = by_name[name].after
    wholes = {stage.row: stage.name for stage in stages if stage.row in PART_OF.values()}
    sums: dict[str, float] = {}
    for name, seconds in above.items():
        whole = wholes.get(PART_OF.get(by_name[name].row, ""), name)
        sums[whole] = sums.get(whole, 0) + seconds
    found = [
        Late(stage=name, seconds=round(seconds / len(slow), 1), logs=logs(by_name[name]))
        for name, seconds in sums.items()
        if seconds / len(slow) >= 1
    ]
    return tuple(sorted(found, key=lambda each: -each.seconds))


def logs(stage: Stage) -> int:
    """Lines of logs behind the duration of a stage."""
    return LATENCIES[stage.row].n if stage.row in LATENCIES else 0
