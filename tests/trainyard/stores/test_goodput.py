"""Checkpoint storage: published tables, figures worked out by hand, simulated failures, and what
FSx sells.

The tables were worked out by hand on 2026-11-20 from FSx's published speeds. They take "1.2 TiB" at its
word; FSx means 1200 GiB, so the same file system is slower here by 1024/1000.
"""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.support.stackfile import Edit, at, environment_plan
from trainyard.catalog.aws.prices import lustre_per_month
from trainyard.catalog.failure_rates import failure_rate
from trainyard.stores import goodput
from trainyard.stores.efs import EfsSpeed
from trainyard.stores.goodput import (
    CheckpointStore,
    Training,
    Verdict,
    mtbf_hours,
    verdict,
    young_daly,
)
from trainyard.stores.lustre_sizing import LustreSize, Needs, for_model

P5, G6E = "p5.48xlarge", "g6e.48xlarge"
EFA_GIB = {125: 38400, 250: 19200, 500: 9600, 1000: 4800}

SCRATCH = LustreSize(capacity_gib=1200, deployment="SCRATCH_2")
AI_ON_EKS = LustreSize(capacity_gib=2400, deployment="PERSISTENT_2", tier=500)
EFA_SMALL = LustreSize(capacity_gib=4800, deployment="PERSISTENT_2", tier=1000, efa=True)
EFA_LARGE = LustreSize(capacity_gib=19200, deployment="PERSISTENT_2", tier=1000, efa=True)
EFS = EfsSpeed(region="us-east-1")


def _of(
    store: CheckpointStore,
    *,
    billion: float = 70,
    nodes: int = 16,
    stall_seconds: float | None = None,
    interval_seconds: float | None = None,
) -> Verdict:
    training = Training(
        parameters_billion=billion, nodes=nodes, instance_type=P5, stall_seconds=stall_seconds
    )
    return verdict(training, store, mounted_over_efa=True, interval_seconds=interval_seconds)


@pytest.mark.parametrize(
    "store, seconds_30b, seconds_70b, short_of_a_tib",
    [
        (SCRATCH, 3000, 7000, 1.024),
        (AI_ON_EKS, 300, 700, 1.024),
        (EFA_SMALL, 75, 175, 1.024),
        (EFA_LARGE, 18.75, 43.75, 1.024),
        (EFS, 67, 156, 1),
    ],
)
def test_a_checkpoint_takes_the_published_time_and_on_lustre_what_its_capacity_is_short_of_a_tib(
    store: CheckpointStore, seconds_30b: float, seconds_70b: float, short_of_a_tib: float
) -> None:
    assert _of(store, billion=30).write_seconds == pytest.approx(
        seconds_30b * short_of_a_tib, rel=0.005
    )
    assert _of(store, billion=70).write_seconds == pytest.approx(
        seconds_70b * short_of_a_tib, rel=0.005
    )


@pytest.mark.parametrize(
    "store, stall, percents, hours",
    [
        (SCRATCH, 7000, (87.0, 73.9, 63.0), 30),
        (AI_ON_EKS, 700, (95.9, 91.7, 88.1), 9.5),
        (EFA_LARGE, 43.75, (98.9, 97.8, 96.8), 2.4),
    ],
)
def test_goodput_is_the_published_one_and_what_is_sold_has_half_a_point_less_but_for_reading_back(
    store: CheckpointStore, stall: float, percents: tuple[float, ...], hours: float
) -> None:
    for nodes, percent in zip((16, 64, 128), percents, strict=True):
        published = 100 * goodput.goodput(
            stall_seconds=stall, mtbf_seconds=mtbf_hours(nodes) * 3600
        )
        assert published == pytest.approx(percent, abs=0.06)
        sold = _of(store, nodes=nodes)
        reading = 100 * (sold.restart_seconds - goodput.RESTART_SECONDS) / sold.mtbf_hours / 3600
        assert published - 0.5 < 100 * sold.goodput + reading < published
    assert young_daly(stall, mtbf_hours(16) * 3600) / 3600 == pytest.approx(hours, abs=0.05)


def test_the_hours_between_failures_are_the_published_ones() -> None:
    assert [round(mtbf_hours(nodes)) for nodes in (16, 64, 128)] == [231, 58, 29]
    assert round(mtbf_hours(16384 // 8, 3.8), 1) == 3.1, "Llama 3's 16,384 GPUs"


def test_efa_counts_only_when_nodes_that_may_really_mount_over_it() -> None:
    def write(instance_type: str, mounted: bool, store: CheckpointStore = EFA_LARGE) -> float:
        return goodput.bytes_per_second(
            store, nodes=1, instance_type=instance_type, mounted_over_efa=mounted
        ).write

    assert write(P5, True) == 15.9e9
    assert write(P5, False) == write(G6E, True) == write("p4d.24xlarge", True) == 2.48e9
    assert (
        write(P5, True, LustreSize(capacity_gib=19200, deployment="PERSISTENT_2", tier=1000))
        == 2.48e9
    ), "made without EFA"


def test_few_nodes_are_limited_by_themselves_and_many_by_the_file_system() -> None:
    def writes(store: CheckpointStore) -> list[float]:
        return [
            goodput.bytes_per_second(store, nodes=n, instance_type=P5).write for n in (1, 4, 100)
        ]

    assert writes(LustreSize(capacity_gib=9 * 1024, deployment="PERSISTENT_2", tier=1000)) == [
        2.48e9,
        9e9,
        9e9,
    ]
    assert writes(EFS) == [1500 * 2**20, 5 * 2**30, 5 * 2**30]
    assert writes(EfsSpeed(region="sa-east-1")) == [2**30, 2**30, 2**30]


def test_a_given_interval_is_judged_as_it_is() -> None:
    hourly = _of(EFA_LARGE, interval_seconds=3600)
    assert (
        hourly.interval_given and hourly.interval_seconds == 3600 and hourly.checkpoints_held == 23
    )
    assert hourly.goodput == pytest.approx(
        1 - 44.8 / 3600 - (1800 + 300) / hourly.mtbf_hours / 3600
    )


def test_an_asynchronous_save_costs_its_stall_and_what_is_lost_while_it_is_written() -> None:
    hourly = _of(AI_ON_EKS, stall_seconds=2, interval_seconds=3600)
    assert hourly.save_fits_interval
    assert hourly.goodput == pytest.approx(
        1 - 2 / 3600 - (1800 + 716.8 + 180 + 716.8) / hourly.mtbf_hours / 3600
    )


def test_an_asynchronous_save_longer_than_the_interval_makes_the_next_one_wait() -> None:
    late = _of(AI_ON_EKS, stall_seconds=2, interval_seconds=600)
    assert not late.save_fits_interval and late.stall_seconds == pytest.approx(2 + 716.8 - 600)
    best = _of(SCRATCH, stall_seconds=2)
    assert (
        best.save_fits_interval
        and best.interval_seconds == best.write_seconds == 2 * best.read_seconds == 7168
    )


def test_lustre_without_a_speed_is_no_file_system() -> None:
    with pytest.raises(ValueError, match="a Lustre file system has a tier unless it is SCRATCH_2"):
        LustreSize(capacity_gib=2400, deployment="PERSISTENT_2")


# Failures, simulated.


def _simulated(v: Verdict, jobs: int = 10_000) -> float:
    """Goodput of that many jobs of 20 saves, one after the other; a failure may hit training, a
    save or a restart."""
    chance, mtbf, lag = (
        random.Random(4),
        v.mtbf_hours * 3600,
        v.write_seconds - min(v.write_seconds, v.stall_seconds),
    )
    clock = useful = 0.0
    for _ in range(jobs):
        done, failure, saves = 0.0, clock + chance.expovariate(1 / mtbf), [(clock, 0.0)]
        while done < 20 * v.interval_seconds:
            end = clock + v.interval_seconds + v.stall_seconds
            if end <= failure:
                clock, done = end, done + v.interval_seconds
                saves = [*saves[-1:], (clock + lag, done)]
                continue
            done = max((kept for durable, kept in saves if durable <= failure), default=0.0)
            clock, saves = failure, [(failure, done)]
            failure = clock + chance.expovariate(1 / mtbf)
            while failure < clock + v.restart_seconds:
                clock, failure = failure, failure + chance.expovariate(1 / mtbf)
            clock += v.restart_seconds
        useful += done
    return useful / clock


@pytest.mark.parametrize(
    "v",
    [
        _of(EFA_LARGE),
        _of(EFA_LARGE, nodes=128),
        _of(AI_ON_EKS),
        _of(AI_ON_EKS, nodes=32),
        _of(EFS),
        _of(EFA_LARGE, interval_seconds=1800),
        _of(AI_ON_EKS, nodes=99, stall_seconds=2),
    ],
)
def test_the_formula_is_what_ten_thousand_jobs_see(v: Verdict) -> None:
    assert v.goodput == pytest.approx(_simulated(v), abs=0.003)


@pytest.mark.parametrize(
    "v", [_of(SCRATCH), _of(SCRATCH, nodes=128), _of(SCRATCH, nodes=128, stall_seconds=2)]
)
def test_where_much_is_lost_the_formula_promises_too_little_not_too_much(v: Verdict) -> None:
    assert v.goodput < _simulated(v, jobs=1000)


# What is chosen.

trainings = st.fixed_dictionaries(
    {
        "parameters_billion": st.floats(0.5, 500),
        "nodes": st.integers(1, 256),
        "instance_type": st.sampled_from([P5, G6E]),
        "efa": st.booleans(),
        "blocking": st.booleans(),
        "region": st.sampled_from(["us-east-1", "ap-northeast-3"]),
    }
)

SOLD = [
    LustreSize(capacity_gib=gib, deployment="PERSISTENT_2", tier=tier, efa=efa)
    for tier, step in EFA_GIB.items()
    for efa, gibs in (
        (False, [1200, *range(2400, 2**20 + 1, 2400)]),
        (True, range(step, 2**20 + 1, step)),
    )
    for gib in gibs
]
"""What FSx sells, written down once more."""


def _usd(store: LustreSize) -> float:
    return lustre_per_month("us-east-1", "PERSISTENT_2", store.tier, store.capacity_gib) or 0


@given(trainings, st.sampled_from([0.9, 0.95, 0.98, 0.99]))
def test_what_is_chosen_is_sold_and_does_it_and_nothing_cheaper_does(
    settings: dict[str, Any], target: float
) -> None:
    choice = for_model(Needs(**settings, goodput=target))
    assume(choice is not None)
    assert choice and choice.store in SOLD and choice.store.efa == settings["efa"]
    assert choice.usd_per_month == (
        _usd(choice.store) if settings["region"] == "us-east-1" else None
    )
    training = Training(
        **{key: settings[key] for key in ("parameters_billion", "nodes", "instance_type")},
        stall_seconds=None if settings["blocking"] else goodput.ASYNC_STALL_SECONDS,
    )

    def does_it(store: CheckpointStore) -> bool:
        v = verdict(training, store, mounted_over_efa=settings["efa"])
        return v.goodput >= target and (v.checkpoints_held or 0) >= 3

    assert does_it(choice.store)
    assert not [
        s for s in SOLD if s.efa == choice.store.efa and _usd(s) < _usd(choice.store) and does_it(s)
    ]


@given(trainings, st.sampled_from([0.98, 0.99]))
def test_where_nothing_is_chosen_the_best_there_is_falls_short(
    settings: dict[str, Any], target: float
) -> None:
    best = for_model(Needs(**settings, goodput=None))
    assert best and (for_model(Needs(**settings, goodput=target)) is None) == (
        best.verdict.goodput < target
    )


def test_no_file_system_is_chosen_that_cannot_hold_three_checkpoints() -> None:
    held = {"nodes": 256, "instance_type": P5, "region": "us-east-1", "goodput": None}
    assert for_model(Needs(parameters_billion=29_000, **held)) and not for_model(
        Needs(parameters_billion=32_000, **held)
    )


@pytest.mark.parametrize("nodes, target", [(16, 0.989), (64, 0.978)])
def test_the_goodput_we_promise_costs_two_percent_of_the_gpus_at_most(
    nodes: int, target: float
) -> None:
    choice = for_model(
        Needs(
            parameters_billion=70,
            nodes=nodes,
            instance_type=P5,
            region="",
            goodput=target,
            efa=True,
        )
    )
    assert choice and _usd(choice.store) < 0.02 * nodes * 55.04 * 730


@given(
    st.sampled_from(sorted(EFA_GIB)),
    st.integers(1, 100),
    st.integers(1, 100),
    st.integers(1, 256),
    st.none() | st.floats(0.1, 60),
    st.none() | st.floats(60, 86400),
)
def test_more_throughput_never_lowers_goodput(
    tier: int, steps: int, more: int, nodes: int, stall: float | None, interval: float | None
) -> None:
    def of(capacity: int, tier: int) -> float:
        store = LustreSize(capacity_gib=2400 * capacity, deployment="PERSISTENT_2", tier=tier)
        return _of(store, nodes=nodes, stall_seconds=stall, interval_seconds=interval).goodput

    assert (
        of(steps + more, tier) >= of(steps, tier) - 1e-12
        and of(steps, 1000) >= of(steps, tier) - 1e-12
    )


def test_a_region_with_a_price_of_one_tier_is_ranked_by_the_prices_of_one_region() -> None:
    """Seoul's tier 1000 has a price, its other tiers have none: a mixed order would take them for
    cheaper than they are."""
    ours, reference = (
        for_model(
            Needs(parameters_billion=70, nodes=16, instance_type=P5, region=region, goodput=0.98)
        )
        for region in ("ap-northeast-2", "us-east-1")
    )
    assert ours and reference and ours.store == reference.store


def test_files_fill_94_percent_of_a_lustre_file_system() -> None:
    """Three checkpoints of 840 GB are 97.8 % of 2400 GiB: more than fits."""
    assert _of(AI_ON_EKS).checkpoints_held == 2
    assert _of(EFS).checkpoints_held is None
    choice = for_model(
        Needs(parameters_billion=70, nodes=16, instance_type=P5, region="us-east-1", goodput=0.95)
    )
    assert choice and (choice.store.capacity_gib, choice.store.tier) == (4800, 250)


def test_a_restart_lasts_until_the_checkpoint_is_read_back() -> None:
    slow, fast = _of(AI_ON_EKS), _of(EFA_LARGE)
    assert slow.restart_seconds == pytest.approx(180 + 716.8)
    assert fast.restart_seconds == goodput.RESTART_SECONDS
    assert slow.lost_seconds_per_failure == pytest.approx(
        slow.interval_seconds / 2 + slow.restart_seconds
    )


def test_a_job_on_spot_nodes_is_interrupted_beside_its_failures() -> None:
    """Two nodes: 24,000 hours over 2 x (6.5 + 6.58) instead of over 2 x 6.5."""
    model = at("jobs.t5-large.parameters_billion", 11)
    hardware = at("jobs.t5-large.other_stops_per_day", 0)
    usual = environment_plan(model, hardware).checkpoints["t5-large"]
    spot = environment_plan(model, hardware, at("pools.g6e.capacity", "spot")).checkpoints[
        "t5-large"
    ]
    assert (round(usual.mtbf_hours), round(spot.mtbf_hours)) == (1846, 918)
    assert spot.interval_seconds < usual.interval_seconds and spot.goodput < usual.goodput


def test_a_job_also_stops_for_what_is_no_hardware() -> None:
    """30B on 4 p4d with 2400 GiB at 250 MB/s per TiB: a save takes 614.4 s. The nodes alone fail every 923 h,
    and 1065 minutes between saves were the best; with one other stop a day it is 170."""
    edits = (
        at("storage.scratch.lustre", {"capacity_gib": 2400, "throughput_mbps_per_tib": 250}),
        at("jobs.t5-large.parameters_billion", 30),
        at("jobs.t5-large.nodes", 4),
    )

    def found(*more: Edit) -> tuple[int, int, float]:
        saved = environment_plan(*edits, *more).checkpoints["t5-large"]
        assert saved.write_seconds == pytest.approx(614.4)
        minutes = round(saved.interval_seconds / 60)
        return round(saved.mtbf_hours), minutes, round(saved.goodput, 3)

    assert found(at("jobs.t5-large.other_stops_per_day", 0)) == (923, 1065, 0.981)
    assert found() == found(at("jobs.t5-large.other_stops_per_day", 1)) == (23, 170, 0.87)
    assert found(at("jobs.t5-large.other_stops_per_day", 4))[1] == 86


def test_the_other_stops_of_a_job_do_not_grow_with_its_nodes() -> None:
    for nodes in (1, 16, 64):
        stops_a_day = failure_rate(spot=False, nodes=nodes, other_stops_a_day=1) * nodes / 1000
        assert stops_a_day == pytest.approx(1 + 6.5 * nodes / 1000)


def test_a_store_that_keeps_more_checkpoints_is_larger() -> None:
    wanted = {"parameters_billion": 70, "nodes": 2, "instance_type": "p5.48xlarge"}
    few, many = (for_model(Needs(**wanted, region="us-east-1", on_disk=held)) for held in (3, 61))
    assert few and many and few.store.capacity_gib < many.store.capacity_gib
    assert many.verdict.checkpoints_held and many.verdict.checkpoints_held >= 61
