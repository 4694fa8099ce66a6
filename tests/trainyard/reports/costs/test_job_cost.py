"""The sections of the plan about sweeps and schedules: runs, hours and dollars."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from tests.support.stackfile import Edit, environment_plan, team_plan
from tests.trainyard.derive.test_schedule import nightly
from tests.trainyard.derive.test_sweep import tune
from trainyard.reports.costs.cost import estimate
from trainyard.reports.costs.job_cost import schedules, sweeps
from trainyard.reports.minutes.timeline import schedule
from trainyard.reports.plan import text


def row(*edits: Edit) -> list[str]:
    """Words of the one line of the one sweep."""
    plan = environment_plan(*edits)
    title, _, line, _ = sweeps(plan, estimate(plan).jobs)
    assert title == "sweeps"
    return line.split()


def test_hours_and_dollars_are_those_of_all_runs() -> None:
    """Seven runs of one node and 3 hours each, two at once: four rounds."""
    edit = tune({"x": [*range(7)]}, expected_hours=3, sweep={"at_most": 2})
    plan = environment_plan(edit)
    costs = [cost.usd for cost in estimate(plan).jobs if cost.job.startswith("tune-")]
    assert len(costs) == 7 and None not in costs
    whole = sum((cost for cost in costs if cost is not None), Decimal())
    assert row(edit)[:5] == ["tune", "7", "2", "2", "12"]
    assert Decimal(row(edit)[-1].replace(",", "")) == whole


def test_no_more_runs_go_on_at_once_than_the_pool_holds() -> None:
    """The pool has four nodes, and each run takes two."""
    found = row(tune({"x": [*range(6)]}, nodes=2, expected_hours=1, sweep={"at_most": 5}))
    assert found[:5] == ["tune", "6", "2", "4", "3"]
    assert row(tune({"x": [1, 2]}, expected_hours=1))[:5] == ["tune", "2", "2", "2", "1"]


def test_without_expected_hours_neither_is_known() -> None:
    assert row(tune({"x": [1, 2]})) == ["tune", "2", "2", "2", "?", "?"]


def test_a_team_sees_its_sweeps() -> None:
    [name] = team_plan().jobs

    def swept(settings: dict[str, Any]) -> None:
        job = settings["jobs"][name]
        job["env"], job["sweep"] = {"SEED": "{seed}"}, {"over": {"seed": [1, 2]}}
        if "checkpoints" in job:
            job["checkpoints"] = {**job["checkpoints"], "directory": "own/{seed}"}

    assert f"  {name} " in text(team_plan(swept)).partition("\nsweeps\n")[2]


def test_a_plan_without_a_sweep_has_no_section() -> None:
    assert "\nsweeps\n" not in text(environment_plan())


def month(**more: Any) -> tuple[list[str], Decimal]:
    """Figures of the one line of the one schedule, and the price of one run."""
    plan = environment_plan(nightly(**more))
    costs = estimate(plan).jobs
    title, _, line, _ = schedules(plan, costs)
    assert title == "schedules" and line.startswith("  nightly  ")
    [usd] = [cost.usd for cost in costs if cost.job == "nightly"]
    return line.split("Etc/UTC")[1].split(), usd or Decimal()


def test_a_schedule_says_runs_hours_and_dollars_of_a_month() -> None:
    """208 or 209 Mondays in four years of 48 months."""
    figures, usd = month(expected_hours=3)
    assert figures[:2] == ["4.4", "13.1"] or figures[:2] == ["4.3", "13.0"]
    paid = Decimal(figures[-1].replace(",", ""))
    assert usd * Decimal("4.33") <= paid <= usd * Decimal("4.36")


def test_no_more_runs_than_follow_one_another_are_counted() -> None:
    figures, _ = month(expected_hours=2, schedule={"cron": "@hourly"})
    assert figures[:2] == ["365.0", "730.0"]


def test_a_schedule_without_hours_has_no_dollars_and_a_suspended_one_no_runs() -> None:
    assert month()[0][1:] == ["?", "?"]
    stopped = {"cron": "@daily", "suspend": True}
    assert month(expected_hours=1, schedule=stopped)[0] == ["0.0", "0.0", "0"]
    assert "\nschedules\n" not in text(environment_plan())


def test_an_update_starts_no_run_of_a_schedule_so_no_minutes_are_said_of_one() -> None:
    plan = environment_plan(nightly())
    assert {*schedule(plan).first_steps} == {"t5-large"}
