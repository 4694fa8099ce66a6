"""The box on top of a plan: each figure by hand, and the same rows wherever it is shown."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from tests.support.stackfile import Edit, at, environment_plan, team_plan, values
from trainyard.decide import plan_stack
from trainyard.reports import plan, pull_request
from trainyard.reports.box import Box, box_of, rows
from trainyard.reports.costs.cost import estimate
from trainyard.reports.minutes.timeline import schedule
from trainyard.settings.reading.reader import read

P5 = Decimal("55.04")
"""USD an hour of a p5.48xlarge in us-east-1."""
DISK = Decimal("200") * Decimal("0.08") + 1000 * Decimal("0.005") + 875 * Decimal("0.04")
"""USD a month of a root disk there: 200 GiB, 1,000 IOPS and 875 MB/s beyond those that are free."""
START = Decimal(181)
"""Seconds from the launch of a node to the first step."""
JOB = {"runtime": "torch-distributed", "nodes": 2, "image": "image:1", "command": ["true"]}
ROLE = "arn:aws:iam::123456789012:role/vision"
LIMIT = {"dollars_a_month": 5000, "emails": ["a@example.com"]}


def _virginia(*edits: Edit) -> Any:
    """A stack in us-east-1, where every price is known: 4 p5 at most, a job of two of them."""
    found = values(
        at("zone", "us-east-1a"),
        at("pools", {"p5": {"instance_types": ["p5.48xlarge"], "max_nodes": 4}}),
        at("jobs", {"train": {**JOB, "pool": "p5", "expected_hours": 10}}),
        *edits,
    )
    found["aws:region"] = "us-east-1"
    return plan_stack(read(found, stack="dev", project="trainyard")).accepted()


def _box(found: Any) -> Box:
    return box_of(found, estimate(found), schedule(found))


def _idle(found: Any) -> tuple[Decimal, Decimal]:
    """USD of an idle hour and of an idle month, from the lines and not from the sum."""
    costs = estimate(found)
    lines = (*costs.fixed, *costs.storage)
    hour = sum((line.usd_per_hour or Decimal() for line in lines), Decimal())
    return hour, sum((line.usd_per_month or Decimal() for line in lines), Decimal())


def test_idle_and_most_are_a_month_of_730_hours() -> None:
    """At most: the idle month, 4 x 55.04 x 730 = 160,716.80, and 4 disks."""
    box = _box(found := _virginia())
    hour, month = _idle(found)
    assert box.usd_a_month_idle and box.usd_a_month_idle.usd == month
    assert box.usd_a_month_all_pools_full and box.usd_a_month_all_pools_full.usd
    by_hand = hour * 730 + 4 * P5 * 730 + 4 * DISK
    assert float(box.usd_a_month_all_pools_full.usd) == pytest.approx(float(by_hand), abs=0.01)
    assert box.usd_a_month_all_pools_full.most_usd == box.usd_a_month_all_pools_full.usd
    assert not box.prices_missing and "at least" not in str(rows(box))


def test_a_run_all_in_has_nodes_start_images_and_the_environment_beside_it() -> None:
    """10 h and 181 s of 2 x 55.04, of two disks and of the idle environment; 2 images of 9.35 GB at
    0.045."""
    box = _box(found := _virginia())
    hours = 10 + START / 3600
    rate = 2 * P5 + 2 * DISK / 730 + _idle(found)[0]
    by_hand = rate * hours + 2 * Decimal("9.35") * Decimal("0.045")
    assert box.dearest_run == "train" and box.usd_a_run_all_in and box.usd_a_run_all_in.usd
    assert float(box.usd_a_run_all_in.usd) == pytest.approx(float(by_hand), abs=0.02)
    assert str(rows(box)["usd_a_run_all_in"]).endswith(", of train")


def test_a_run_on_nodes_that_are_paid_anyway_pays_them_once() -> None:
    """All nodes are kept running: the run costs its hours of the idle environment, and the images."""
    kept = _virginia(at("pools.p5.replicas", 2))
    box = _box(kept)
    [job] = estimate(kept).jobs
    hours = 10 + Decimal(job.cold_start_seconds) / 3600
    by_hand = _idle(kept)[0] * hours + 2 * Decimal("9.35") * Decimal("0.045")
    assert box.usd_a_run_all_in and box.usd_a_run_all_in.usd
    assert float(box.usd_a_run_all_in.usd) == pytest.approx(float(by_hand), abs=0.02)


def test_of_several_runs_the_dearest_is_named() -> None:
    jobs = {
        name: {**JOB, "pool": "p5", "expected_hours": hours}
        for name, hours in {"short": 1, "long": 9}.items()
    }
    box = _box(_virginia(at("jobs", jobs)))
    assert str(rows(box)["usd_a_run_all_in"]).endswith(", of long, the dearest of 2 jobs")


def test_a_run_without_hours_says_which_setting_it_lacks() -> None:
    assert rows(_box(environment_plan()))["usd_a_run_all_in"] == (
        "not known: no job has expected_hours"
    )
    assert "usd_a_run_all_in" not in rows(_box(environment_plan(at("jobs", {}))))


def test_spot_lies_between_its_disks_and_the_price_on_demand() -> None:
    spot = _box(
        found := _virginia(
            at("pools.p5.capacity", "spot"),
            at("jobs.train.runtime", "torch-distributed"),
            at("jobs.train.nodes", 1),
        )
    )
    hour, _ = _idle(found)
    low, high = hour * 730 + 4 * DISK, hour * 730 + 4 * DISK + 4 * P5 * 730
    most = spot.usd_a_month_all_pools_full
    assert most and most.usd and most.most_usd
    assert float(most.usd) == pytest.approx(float(low), abs=0.01)
    assert float(most.most_usd) == pytest.approx(float(high), abs=0.01)
    assert most.said.startswith(f"between {most.usd:,.2f} and {most.most_usd:,.2f}, oldest price ")


def test_the_table_of_money_has_both_bounds_of_spot() -> None:
    """One node: 55.04 an hour at most, beside the idle environment and a disk of 56 USD a month."""
    found = _virginia(at("pools.p5.capacity", "spot"), at("jobs.train.nodes", 1))
    money = " ".join(plan.text(found).partition("money: ")[2].split())
    low = _idle(found)[0] + DISK / 730
    assert "1 x p5.48xlarge in p5 1 at most 55.04 55.0400 " in money
    assert f"while its jobs run between {low:,.4f} 2026-03 and {low + P5:,.4f} while" in money
    assert "at most: spot" in money


TEAMS = {
    "vision": {
        "deployer": "arn:aws:iam::111122223333:role/vision",
        "guaranteed_nodes": {"p5": 1},
        "tags": {"CostCenter": "4711"},
    },
    "speech": {
        "deployer": "arn:aws:iam::111122223333:role/speech",
        "guaranteed_nodes": {"p5": 2},
        "max_nodes": {"p5": 3},
    },
}


def test_teams_have_guaranteed_and_possible_dollars_and_their_cost_centre() -> None:
    """A node with its disk is 55.04 x 730 + 56 = 40,235.20 a month."""
    node = P5 * 730 + DISK
    assert node == Decimal("40235.20")
    found = _virginia(at("jobs", {}), at("queues", {}), at("teams", TEAMS))
    teams = _box(found).teams
    assert {name: team.cost_centre for name, team in teams.items()} == {
        "vision": "4711",
        "speech": None,
    }
    for name, guaranteed, possible in (("vision", 1, 4), ("speech", 2, 3)):
        team = teams[name]
        for amount, nodes in (
            (team.usd_a_month_guaranteed, guaranteed),
            (team.usd_a_month_possible, possible),
        ):
            assert amount.usd is not None
            assert float(amount.usd) == pytest.approx(float(node * nodes), abs=0.01)
    assert str(rows(_box(found))["usd_a_month_of_team_vision"]).endswith("(cost centre 4711)")


def test_nodes_of_a_capacity_block_are_in_no_month_of_a_team() -> None:
    """They are paid once: 730 hours of a block of a week were in the dollars of its team."""
    block = {"id": "cr-0123456789abcdef0", "instances": 4}
    times = {"starts": "2026-12-01T11:30:00Z", "ends": "2026-12-08T11:30:00Z"}
    pool = {"instance_types": ["p5.48xlarge"], "max_nodes": 4, "capacity": "block"}
    found = _virginia(
        at("jobs", {}),
        at("queues", {}),
        at("teams", TEAMS),
        at("pools.p5", {**pool, "reservation": {**block, **times}}),
    )
    team = _box(found).teams["vision"]
    assert team.paid_once == ("p5",)
    assert float(team.usd_a_month_guaranteed.usd or 0) == pytest.approx(float(DISK), abs=0.01)
    said = str(rows(_box(found))["usd_a_month_of_team_vision"])
    assert said.endswith("(cost centre 4711); beside nodes of p5, which are paid once")


def test_an_environment_without_jobs_of_its_own_has_no_sum_at_work() -> None:
    found = _virginia(at("jobs", {}), at("queues", {}), at("teams", TEAMS), at("budget", LIMIT))
    assert estimate(found).at_work is None and "while its jobs run" not in plan.text(found)
    budget = _box(found).budget
    assert budget and budget.hours_at_work is None and "at work" not in budget.said


@pytest.mark.parametrize("found", [environment_plan(), team_plan(), _virginia(at("budget", LIMIT))])
def test_text_preview_comment_and_json_have_the_same_rows(found: Any) -> None:
    shown = rows(_box(found))
    preview = plan.summary(found)
    comment = "\n".join(pull_request.figures(preview))
    top = " ".join(plan.text(found).split("\n\n")[1].split())
    said = json.loads(plan.as_json(plan.data(found)))["box"]
    assert len(shown) >= 4 and preview.items() >= shown.items()
    for name, words in shown.items():
        assert f"| {name.replace('_', ' ')} | {words} |" in comment
        assert f"{name.replace('_', ' ')} {words}" in top
    for name in (
        "usd_once",
        "usd_a_month_idle",
        "usd_a_month_all_pools_full",
        "usd_per_hour_at_work",
    ):
        assert (said[name] or {}).get("said") == shown.get(name)
    assert (said["budget"] or {}).get("said") == shown.get("budget")
    assert said["minutes_to_first_step"] == shown["minutes_to_first_step"]


OWN = {"discount_percent": 12, "savings_plan_percent": {"p5": 50}, "support_percent": 3}
"""A p5 then costs 0.44 of its list price, and everything else but p5 on demand 0.88."""


def _own(*edits: Edit) -> Any:
    return _virginia(at("prices", OWN), *edits)


def test_the_box_has_own_prices_and_the_list_beside_them() -> None:
    """The most in a month: 0.88 of the idle month and of 4 disks, and 4 x 55.04 x 0.44 x 730."""
    listed, own = _box(_virginia()), _box(_own())
    idle, most = own.usd_a_month_idle, own.usd_a_month_all_pools_full
    _, month = _idle(_virginia())
    assert idle and most and idle.usd and most.usd
    assert float(idle.usd) == pytest.approx(float(month) * 0.88, abs=0.02)
    by_hand = float(month) * 0.88 + 4 * float(P5) * 0.44 * 730 + 4 * float(DISK) * 0.88
    assert float(most.usd) == pytest.approx(by_hand, abs=0.02)
    assert own.at_list == {
        "usd_a_month_idle": listed.usd_a_month_idle,
        "usd_a_run_all_in": listed.usd_a_run_all_in,
        "usd_a_month_all_pools_full": listed.usd_a_month_all_pools_full,
    }
    shown = rows(own)
    assert shown["own_prices"] == "12 % off each price; Savings Plans: 50 % off p5"
    assert str(shown["usd_a_month_idle"]).endswith(f" (list {month:,.2f})")
    assert listed.usd_a_run_all_in and listed.usd_a_run_all_in.usd
    assert f"(list {listed.usd_a_run_all_in.usd:,.2f}), of train" in str(shown["usd_a_run_all_in"])


def test_support_is_on_top_of_a_month_and_in_nothing_else() -> None:
    without = {key: value for key, value in OWN.items() if key != "support_percent"}
    one, other = _box(_own()), _box(_virginia(at("prices", without)))
    assert one.support and other.support is None
    idle, most = other.usd_a_month_idle, other.usd_a_month_all_pools_full
    assert idle and most and idle.usd and most.usd
    assert float(one.support.usd_a_month_idle.usd or 0) == pytest.approx(
        1.03 * float(idle.usd), abs=0.01
    )
    assert float(one.support.usd_a_month_all_pools_full.usd or 0) == pytest.approx(
        1.03 * float(most.usd), abs=0.01
    )
    said = rows(one).pop("usd_a_month_with_support")
    assert said == (
        f"3 % on top: {one.support.usd_a_month_idle.usd:,.2f} of an idle month;"
        f" {one.support.usd_a_month_all_pools_full.usd:,.2f} of one in which all pools are full"
    )
    assert (one.usd_a_month_idle, one.usd_a_run_all_in) == (idle, other.usd_a_run_all_in)


def test_without_own_prices_the_box_says_nothing_of_them() -> None:
    found = rows(_box(_virginia()))
    assert not {"own_prices", "usd_a_month_with_support"} & {*found} and "list" not in str(found)
    support = rows(_box(_virginia(at("prices", {"support_percent": 10}))))
    assert "usd_a_month_with_support" in support and "list" not in str(support)


def test_dollars_of_a_team_are_at_the_prices_of_its_environment() -> None:
    shares = (
        at("queues", {}),
        at("jobs", {}),
        at("teams", {"vision": {"deployer": ROLE, "guaranteed_nodes": {"p5": 2}}}),
    )
    [team] = _box(_own(*shares)).teams.values()
    by_hand = 2 * float(P5) * 0.44 * 730 + 2 * float(DISK) * 0.88
    assert float(team.usd_a_month_guaranteed.usd or 0) == pytest.approx(by_hand, abs=0.02)


def test_the_table_of_money_has_a_column_of_list_prices() -> None:
    """One node of the pool: 55.04 x 0.44 beside 55.04."""
    money = plan.text(_own(at("jobs.train.nodes", 1))).partition("money: ")[2]
    said = " ".join(money.split())
    assert "own prices; list prices stand beside them" in said
    assert "quantity each an hour at list a month price of" in said
    assert "1 x p5.48xlarge in p5 1 24.2176 24.2176 55.0400 " in said
    assert "at list" not in plan.text(_virginia())


def test_json_and_page_have_list_prices_beside_own_ones() -> None:
    found = json.loads(plan.as_json(plan.data(_own())))
    listed = json.loads(plan.as_json(plan.data(_virginia())))
    assert found["money_at_list"] == listed["money"] and "money_at_list" not in listed
    assert found["money"] != listed["money"]
    page = plan.html(_own(at("jobs.train.nodes", 1)))
    assert "24.2176 USD an hour, list 55.0400" in page and "(list " in page
    assert "list 55.0400" not in plan.html(_virginia())
