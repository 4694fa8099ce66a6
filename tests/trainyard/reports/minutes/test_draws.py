"""How the time to the first step spreads."""

from __future__ import annotations

import math
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from statistics import NormalDist, median

import pytest

from tests.support.stackfile import CHECKOUT, at, environment_plan, team_plan
from trainyard.catalog.aws.latencies import LATENCIES
from trainyard.reports.minutes.draws import DRAWS, PART_OF, Spread, spread
from trainyard.reports.minutes.timeline import Timeline, drawn, in_words, schedule, thin
from trainyard.stores.figures import Stage, took


def one(*stages: Stage) -> Spread:
    return spread(stages, None)


def test_one_stage_has_the_median_and_the_ninetieth_percentile_of_its_row() -> None:
    found, row = one(took("a", "eks.cluster")), LATENCIES["eks.cluster"]
    assert found.typical_seconds == pytest.approx(row.typical, rel=0.001)
    assert found.one_in_ten_seconds == pytest.approx(row.slow, rel=0.002)


def test_two_stages_that_are_waited_for_at_once_take_longer_than_either_typically_does() -> None:
    """P(both are below their median) is a quarter: the median of the later one is above it."""
    both = one(took("a", "eks.nodegroup"), took("b", "helm.controller", times=2))
    assert both.typical_seconds > 124


def test_two_stages_in_a_row_are_seldom_slow_at_once() -> None:
    row = LATENCIES["helm.controller"]
    found = one(took("a", "helm.controller"), took("b", "helm.controller", ("a",)))
    assert found.one_in_ten_seconds < 2 * row.slow
    assert found.typical_seconds > 2 * row.typical, "the right tail moves the sum"


def by_hand(timeline: Timeline, seed: int, count: int = 20_000) -> tuple[float, float]:
    """Median and 90th percentile of plain draws, with nothing of the report but its stages."""
    draw, slow = random.Random(seed), NormalDist().inv_cdf(0.9)
    totals: list[float] = []
    for _ in range(count):
        normal, ends = dict[str, float](), dict[str, float]()
        for stage in timeline.stages:
            row = PART_OF.get(stage.row, stage.row)
            name = row if row in PART_OF.values() else stage.name
            z = normal.setdefault(name, draw.gauss(0, 1))
            typical, late = stage.seconds, stage.slow_seconds
            if row != stage.row:
                typical, late = LATENCIES[row].typical, LATENCIES[row].slow
            took = typical * math.exp(math.log(max(1, late / typical)) / slow * z)
            took = max(0, took - (typical - stage.seconds))
            ends[stage.name] = took + max((ends[each] for each in stage.after), default=0)
        totals.append(ends["first step"])
    return median(totals), sorted(totals)[count * 9 // 10]


def test_the_two_figures_are_those_of_ten_times_as_many_plain_draws() -> None:
    timeline = schedule(environment_plan())
    found, (typical, slow) = drawn(timeline), by_hand(timeline, 1)
    assert found.typical_seconds == pytest.approx(typical, abs=6)
    assert found.one_in_ten_seconds == pytest.approx(slow, abs=15)
    assert found.draws == DRAWS == 2_000


def test_another_process_draws_the_same() -> None:
    program = (
        "from tests.support.stackfile import environment_plan as p\n"
        "from trainyard.reports.minutes.timeline import in_words, schedule\n"
        "print(in_words(schedule(p())))"
    )
    said = subprocess.run(
        [sys.executable, "-c", program], cwd=CHECKOUT, capture_output=True, text=True, check=True
    ).stdout.strip()
    assert said == in_words(schedule(environment_plan()))


def test_a_stage_that_is_added_beside_the_longest_way_moves_nothing() -> None:
    plain = schedule(environment_plan())
    beside = (*plain.stages, Stage(name="aside", seconds=5, slow_seconds=9))
    assert spread(beside, plain.job) == drawn(plain)


def _plans() -> Iterator[Timeline]:
    for plan in (environment_plan(), team_plan(), environment_plan(at("jobs", {}))):
        yield schedule(plan)


def test_the_typical_time_is_between_the_longest_way_and_the_sum_of_slowest_tenths() -> None:
    for timeline in _plans():
        found = drawn(timeline)
        assert timeline.seconds <= found.typical_seconds * 1.001
        assert found.typical_seconds < found.one_in_ten_seconds < timeline.slow_seconds


def test_the_stage_that_makes_most_of_a_slow_start_comes_first_with_its_logs() -> None:
    first, second, *_ = drawn(schedule(environment_plan())).late
    assert (first.stage, first.logs) == ("system nodes", LATENCIES["eks.nodegroup"].n)
    assert (second.stage, second.logs) == ("cluster", LATENCIES["eks.cluster"].n)
    assert first.seconds > 3 * second.seconds


@pytest.mark.parametrize(
    ("row", "whole", "before"),
    [("eks.nodegroup.ready", "eks.nodegroup", 35), ("ec2.instance-ready", "ec2.instance-boot", 43)],
)
def test_a_part_is_over_as_long_before_the_whole_on_every_day(
    row: str, whole: str, before: float
) -> None:
    assert PART_OF[row] == whole
    for value in ("typical", "slow"):
        assert getattr(LATENCIES[whole], value) - getattr(LATENCIES[row], value) == before


def test_a_type_that_no_log_is_of_is_said() -> None:
    plan = environment_plan()
    assert thin(plan, schedule(plan)) == ["first node: 2 logs of g6, none of g6e"]
    none = environment_plan(at("jobs", {}))
    assert thin(none, schedule(none)) == []


def test_the_draws_take_little_time() -> None:
    stages = schedule(environment_plan(at("zone", "ap-northeast-2a"))).stages
    began = time.process_time()
    spread.__wrapped__(stages, "t5-large")
    assert time.process_time() - began < 0.2, "24 ms on a quiet machine"
