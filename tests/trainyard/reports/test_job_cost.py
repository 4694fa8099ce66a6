"""The section of the plan about sweeps: runs, those at once, hours and dollars."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from tests.support.stackfile import Edit, environment_plan, team_plan
from tests.trainyard.derive.test_sweep import tune
from trainyard.reports.cost import estimate
from trainyard.reports.job_cost import sweeps
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
