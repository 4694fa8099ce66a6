"""Every time limit of the parts below against the slowest start that `trainyard plan` prints."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from rehearsal.kubelet import container
from tests.graph.test_recorded_stacks import ALL, plan_of
from tests.support.cases.jobs import JOB, pytorch_job
from tests.support.stackfile import CHECKOUT, Edit, at, environment_plan, team_plan
from tests.support.tool import run_word
from trainyard.catalog import limits as table
from trainyard.catalog.aws.latencies import LATENCIES
from trainyard.catalog.limits import LIMITS, RENEWED, WHOLE_START, Limit
from trainyard.plan import EnvironmentPlan, TeamPlan
from trainyard.reports import plan as report
from trainyard.reports.minutes import limits
from trainyard.reports.minutes.limits import below, pauses
from trainyard.reports.minutes.timeline import in_words, schedule

NAMES = [f"{each.part}: {each.limit} ({'+'.join(each.over)})" for each in LIMITS]


def slow_seconds(plan: EnvironmentPlan | TeamPlan) -> dict[str, float]:
    """Row of LATENCIES → its slowest tenth, of the stages that the plan has; and the whole start."""
    timeline = schedule(plan)
    stages = {stage.row: LATENCIES[stage.row].slow for stage in timeline.stages}
    return {**stages, WHOLE_START[0]: timeline.slow_seconds}


def too_short(plan: EnvironmentPlan | TeamPlan) -> Iterator[Limit]:
    """Rows of the table that end before a slow start, computed without the report."""
    slow, queues = slow_seconds(plan), getattr(plan, "queues", None)
    for each in LIMITS:
        seconds = each.seconds
        if each.part == "Kueue" and seconds is None and queues:
            seconds = queues.ready_minutes * 60
        if seconds is not None and sum(slow.get(row, 0) for row in each.over) > seconds:
            yield each


LARGE, TEAM = "a large file system", "a team"
PLANS = (*ALL, LARGE, TEAM)
"""The recorded stacks, and what none of them has."""


@functools.cache
def planned(name: str) -> EnvironmentPlan | TeamPlan:
    if name == LARGE:
        return environment_plan(at("storage.scratch.lustre.capacity_gib", 48_000))
    return team_plan() if name == TEAM else plan_of(name)


@pytest.mark.parametrize("name", PLANS)
def test_no_limit_is_below_the_slowest_start_of_a_recorded_stack_or_check_says_so(
    name: str,
) -> None:
    plan = planned(name)
    assert schedule(plan).slow_seconds > 0
    said = [problem.text for problem in below(plan)]
    for each in too_short(plan):
        assert any(each.limit in text and in_words(schedule(plan)) in text for text in said), each
    assert not [*too_short(plan)], "none of them is: a new one needs a look"


@pytest.mark.parametrize("number", range(len(LIMITS)), ids=NAMES)
def test_a_limit_that_is_too_short_is_said_with_the_sentence_of_the_plan(
    number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The planted fault of each row: a limit of one second."""
    row = dataclasses.replace(LIMITS[number], seconds=1)
    monkeypatch.setattr(limits, "LIMITS", (row,))
    found = [problem.text for each in PLANS for problem in below(planned(each))]
    if row.over == RENEWED:
        assert not any(row.limit in text for text in found)
        return
    assert any(row.limit in text and "min to the first step of" in text for text in found), row


@pytest.mark.parametrize("row", [each for each in LIMITS if each.default != each.seconds])
def test_what_the_product_sets_is_longer_than_what_the_part_has_by_itself(row: Limit) -> None:
    assert row.default is not None, "nothing is set where a part waits for ever"
    assert row.seconds is None or row.seconds > row.default
    for place in re.findall(r"[\w/]+\.py", row.set_in):
        assert (CHECKOUT / place).exists(), place
    assert "nobody" not in row.set_in


def test_what_nobody_sets_stays_as_the_part_has_it() -> None:
    for row in LIMITS:
        if row.set_in.startswith("nobody"):
            assert row.seconds == row.default, row


def test_every_row_waits_for_something_that_is_measured_and_names_its_source() -> None:
    for row in LIMITS:
        assert row.over == WHOLE_START or set(row.over) <= set(LATENCIES), row
        assert row.source and row.then and row.set_in, row
    assert len({(row.part, row.limit, row.over) for row in LIMITS}) == len(LIMITS)


def test_every_resource_that_takes_minutes_has_a_limit() -> None:
    """Of the stages that somebody makes by AWS: one that is added needs its row, too."""
    rows = {row for each in PLANS for row in slow_seconds(planned(each))}
    limited = {row for each in LIMITS for row in each.over}
    long = {row for row in rows if row in LATENCIES and LATENCIES[row].slow >= 90}
    near = {"eks.nodegroup.ready", "ec2.instance-ready"}
    """Parts of a stage that has its own row."""
    assert long - limited == near


def warned(*edits: Edit) -> dict[str, str]:
    return {problem.path: problem.text for problem in below(environment_plan(*edits))}


def test_a_wait_that_ends_before_the_start_is_said() -> None:
    job = "environment.jobs.t5-large.wait_minutes"
    found = warned(at(f"{JOB}.wait", "running"), at(f"{JOB}.wait_minutes", 3))
    assert [*found] == [job]
    assert "gives up after 3 min" in found[job] and "write 6 or more" in found[job]
    assert in_words(schedule(environment_plan())) in found[job], "the sentence of the plan"
    assert not warned(at(f"{JOB}.wait", "running"), at(f"{JOB}.wait_minutes", 6))
    assert not warned(at(f"{JOB}.wait_minutes", 3)), "nobody waits"


@pytest.mark.parametrize("minutes", [3, 10])
def test_a_time_limit_counts_the_start(minutes: int) -> None:
    for edits in ([at("trainer.version", "2.3.0")], pytorch_job()):
        found = warned(*edits, at(f"{JOB}.time_limit_minutes", minutes))
        assert (f"environment.{JOB}.time_limit_minutes" in found) == (minutes == 3), edits


@pytest.mark.parametrize("minutes", [1, 2])
def test_a_run_is_not_hung_before_its_first_step(minutes: int) -> None:
    found = warned(at("repair", {"hung_minutes": minutes}))
    assert ("environment.repair.hung_minutes" in found) == (minutes == 1)


def test_a_checkpoint_that_takes_longer_than_a_collective_waits_is_said() -> None:
    on_efs = at(f"{JOB}.checkpoints.store", "home")
    assert not warned(on_efs, at(f"{JOB}.parameters_billion", 30))
    [text] = warned(on_efs, at(f"{JOB}.parameters_billion", 200)).values()
    assert "NCCL gives up after 10 min" in text and "init_process_group(timeout=…)" in text


def test_the_pause_of_a_pytorch_job_that_restarts_in_place_is_in_the_plan() -> None:
    again = [*pytorch_job(restarts=3)]
    [said] = pauses(environment_plan(*again))
    assert "10 s before the first time" in said and "5 min at most" in said
    assert "has run for 10 min" in said
    text = report.text(environment_plan(*again))
    assert "kubelet waits 10 s" in " ".join(text.split())
    assert not pauses(environment_plan(*pytorch_job(restarts=0))), "its pods fail at once"
    assert not pauses(environment_plan()), "JobSet makes pods of a TrainJob anew"


def test_the_kubelet_of_the_rehearsal_pauses_in_the_same_ratio() -> None:
    assert container.LONGEST_BACK_OFF * container.FASTER == table.LONGEST_CRASH_BACKOFF_SECONDS
    assert container.STEADY_SECONDS == 2 * container.LONGEST_BACK_OFF


def test_check_prints_what_is_below(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    config: dict[str, Any] = yaml.safe_load((CHECKOUT / "Pulumi.dev.yaml").read_text())
    job = config["config"]["trainyard:environment"]["jobs"]["t5-large"]
    job |= {"wait": "complete", "wait_minutes": 2}
    (tmp_path / "Pulumi.short.yaml").write_text(yaml.safe_dump(config))
    (tmp_path / "Pulumi.yaml").write_text("name: trainyard\nruntime: python\n")
    monkeypatch.chdir(tmp_path)
    run_word("check", ["short"])
    out = capsys.readouterr().out
    assert "environment.jobs.t5-large.wait_minutes [Pulumi.short.yaml:" in out
    assert "gives up after 2 min" in out


@pytest.mark.parametrize("nodes", [4, 8, 9, 64])
def test_many_nodes_behind_one_gateway_are_told_of_ecr(nodes: int) -> None:
    fleet = [at("pools.g6e.max_nodes", nodes), at(f"{JOB}.nodes", nodes)]
    said = warned(*fleet)
    assert (f"environment.{JOB}.image" in said) == (nodes >= 9)
    if nodes == 64:
        text = said[f"environment.{JOB}.image"]
        assert (
            "64 nodes pull 598 GB" in text and "that takes 16 min, and 1 min for one node" in text
        )
        in_region = at(f"{JOB}.image", "1.dkr.ecr.ap-northeast-2.amazonaws.com/train:1")
        assert not warned(*fleet, in_region, at("pools.g6e.prefetch", []))
