"""What the checkpoints of a job take on its store, and what is said about them and about its goodput."""

from __future__ import annotations

import re

import pytest

from tests.support.cases.environment import JOB, MODEL
from tests.support.stackfile import at, environment_plan, errors, planned, team_plan
from trainyard.plan import TeamPlan

LUSTRE = "storage.scratch.lustre"
HARDWARE = at(f"{JOB}.other_stops_per_day", 0)
"""Goodput that counts the failures of nodes alone."""


def warnings(*edits) -> str:
    return "\n".join(str(n) for n in planned(*edits).warnings)


def test_a_plan_has_the_verdict_of_each_job_that_says_how_large_its_model_is() -> None:
    """70B to 9600 GiB at 500 MB/s per TiB over TCP from 2 nodes: 4.69 GB/s, 179 s."""
    assert environment_plan().checkpoints == {}
    found = environment_plan(
        *MODEL, HARDWARE, at(f"{JOB}.checkpoints.interval_minutes", 30)
    ).checkpoints["t5-large"]
    assert found.bytes == 840e9 and found.write_seconds == pytest.approx(179.2, abs=0.1)
    assert found.interval_seconds == 1800
    assert found.goodput == pytest.approx(1 - 179.2 / 1800 - 1200 / 6646154, abs=1e-4)


def test_a_team_has_verdicts_on_its_environments_stores() -> None:
    plan = team_plan(at("jobs.vit-base.parameters_billion", 0.086))
    assert isinstance(plan, TeamPlan) and set(plan.checkpoints) == {"vit-base"}


def test_a_store_that_leaves_little_time_is_said_with_what_would_be_better() -> None:
    """At 125 MB/s per TiB and 4800 GiB, 1434 s every half hour is 44 % of the time. On 2 nodes a longer
    interval is enough; 256 nodes fail every 14 hours and need a faster store too."""
    slow = (
        HARDWARE,
        at(f"{JOB}.parameters_billion", 70),
        at(f"{JOB}.checkpoints.interval_minutes", 30),
        at(f"{LUSTRE}.throughput_mbps_per_tib", 125),
    )
    said = warnings(*slow)
    assert "a save takes 24 minutes, which leaves 20% of the time" in said
    assert "to train; interval_minutes: 2301 keeps 97.9%" in said
    said = warnings(*slow, at(f"{JOB}.nodes", 256), at("pools.g6e.max_nodes", 256))
    assert "which leaves 16% of the time" in said and "lustre: {capacity_gib: " in said


def test_checkpoints_on_scratch_are_said() -> None:
    assert "the checkpoints on it are lost" in warnings(
        at(LUSTRE, {"capacity_gib": 2400, "deployment": "SCRATCH_2"})
    )


def test_an_asynchronous_save_stalls_training_for_a_moment_only() -> None:
    every = at(f"{JOB}.checkpoints.interval_minutes", 30)
    blocking = environment_plan(*MODEL, every).checkpoints["t5-large"]
    late = environment_plan(*MODEL, every, at(f"{JOB}.checkpoints.asynchronous", True)).checkpoints[
        "t5-large"
    ]
    assert late.stall_seconds < 1 and late.goodput > blocking.goodput + 0.05


def test_a_goodput_that_cannot_be_kept_is_refused_with_the_store_that_would() -> None:
    [error] = errors(
        HARDWARE,
        at(f"{JOB}.parameters_billion", 70),
        at(f"{LUSTRE}", {"capacity_gib": 4800, "throughput_mbps_per_tib": 125}),
        at(f"{JOB}.goodput_percent", 99),
    )
    assert re.search(r"throughput_mbps_per_tib: \d+} keeps 99", error)


def test_the_script_is_told_how_many_checkpoints_stay_and_a_stack_that_does_not_say_changes_nothing() -> (
    None
):
    keeps = environment_plan(at(f"{JOB}.checkpoints.keep", 4)).jobs["t5-large"]
    before = environment_plan().jobs["t5-large"]
    assert {"name": "CHECKPOINT_KEEP", "value": "4"} in keeps.spec["trainer"]["env"]
    assert "CHECKPOINT_KEEP" not in str(before.spec) and keeps.run != before.run
