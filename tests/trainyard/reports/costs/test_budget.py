"""The monthly limit of an environment beside what it costs: by hand, and what is refused or warned of."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from decimal import Decimal

import pytest

from tests.support.stackfile import Edit, at, environment_plan, values
from tests.support.tool import run_word
from tests.trainyard.reports.test_box import DISK, LIMIT, P5, START, _box, _idle, _own, _virginia
from trainyard.problems import InputError, InputWarning
from trainyard.reports import stack_file
from trainyard.reports.box import Box, rows
from trainyard.reports.costs.amounts import Total
from trainyard.reports.costs.budget import budget_problems, budget_use
from trainyard.reports.costs.cost import estimate
from trainyard.settings.reading.reader import read


def _full(box: Box) -> Decimal:
    """USD of a month in which all pools are full."""
    assert box.usd_a_month_all_pools_full and box.usd_a_month_all_pools_full.usd
    return box.usd_a_month_all_pools_full.usd


def test_a_budget_that_full_pools_stay_below_says_nothing_of_them() -> None:
    most = math.ceil(_full(_box(_virginia())))
    for dollars, is_above in ((most, False), (most - 1, True)):
        said = rows(_box(_virginia(at("budget", {**LIMIT, "dollars_a_month": dollars}))))["budget"]
        assert ("full pools" in str(said)) == is_above


def test_a_budget_says_what_idle_takes_and_how_many_hours_are_left() -> None:
    """5,000 less an idle month, over two nodes with their disks an hour."""
    found = _virginia(at("budget", LIMIT))
    box, (_, month) = _box(found), _idle(found)
    work = 2 * P5 + 2 * DISK / 730
    assert box.budget and box.budget.left_usd == 5000 - month
    assert box.budget.hours_at_work == int((5000 - month) / work)
    assert box.budget.idle_percent == int(month / 50)
    assert box.budget.said == (
        f"5,000.00 a month: idle takes {int(month / 50)} %, {5000 - month:,.2f} are left:"
        f" {int((5000 - month) / work)} hours at work; a month of full pools takes up to"
        f" {int(_full(box) / 50):,} % of it"
    )
    assert _box(_virginia()).budget is None


def test_a_budget_for_one_hour_says_hour() -> None:
    idle, work = (
        Total(
            usd_per_hour=Decimal(usd),
            most_usd_per_hour=Decimal(usd),
            usd_per_month=Decimal(730 * usd),
            priced=1,
            lines=1,
            as_of=None,
            missing=(),
        )
        for usd in (1, 101)
    )
    assert budget_use(Decimal(830), idle, work, idle).said.endswith(
        "100.00 are left: 1 hour at work"
    )


def test_a_budget_below_idle_says_by_how_much() -> None:
    found = _virginia(at("budget", {**LIMIT, "dollars_a_month": 100}))
    over = _idle(found)[1] - 100
    assert rows(_box(found))["budget"] == f"100.00 a month: idle is {over:,.2f} above it"


def test_what_a_budget_leaves_is_at_most_where_a_price_is_missing() -> None:
    """Seoul: 490.63 and what Lustre costs."""
    box = _box(found := environment_plan(at("budget", LIMIT)))
    assert box.budget and (box.budget.idle_percent, box.budget.left_usd) == (9, Decimal("4509.37"))
    totals = (estimate(found).idle, estimate(found).at_work)
    idle, work = (replace(total, guess=None) for total in totals if total)
    assert budget_use(Decimal(5000), idle, work, idle).said.startswith(
        "5,000.00 a month: idle takes at least 9 %, at most 4,509.37 are left: at most "
    )


def test_a_budget_is_compared_with_guesses_where_a_price_is_missing() -> None:
    """Somebody signs the line: `at most 4,509.37 are left` stood below an idle month of 1,959 to 3,653."""
    box = _box(environment_plan(at("budget", LIMIT)))
    guess = box.usd_a_month_idle and box.usd_a_month_idle.guess
    assert box.budget and guess and guess.most_usd < 5000
    said = re.fullmatch(
        r"5,000.00 a month: with guessed prices idle takes between (\d+) and (\d+) %,"
        r" between ([\d,.]+) and ([\d,.]+) are left: between (\d+) and (\d+) hours at work;"
        r" a month of full pools takes up to [\d,]+ % of it",
        box.budget.said,
    )
    assert said and [int(each) for each in said.groups()[:2]] == [
        int(usd / 50) for usd in (guess.usd, guess.most_usd)
    ]
    assert [Decimal(each.replace(",", "")) for each in said.groups()[2:4]] == [
        5000 - usd for usd in (guess.most_usd, guess.usd)
    ]
    assert 0 < int(said[5]) <= int(said[6]) < 730


def test_a_budget_below_all_guesses_says_by_how_much() -> None:
    found = environment_plan(at("budget", {**LIMIT, "dollars_a_month": 500}))
    assert "500.00 a month: with guessed prices idle is between 1,4" in str(rows(_box(found)))


def _problems(*edits: Edit) -> list[InputError | InputWarning]:
    return list(budget_problems(_virginia(*edits)))


def test_a_budget_below_an_idle_month_is_an_error_with_the_sum_that_ends_it() -> None:
    [error] = _problems(at("budget", {**LIMIT, "dollars_a_month": 100}))
    month = _idle(_virginia())[1]
    assert isinstance(error, InputError) and error.write is not None
    assert str(error).startswith(
        "environment.budget.dollars_a_month: must be no less than an idle month costs,"
        f" {month:,.2f}, oldest price "
    )
    assert error.fix == f"write {error.write}", "no price is guessed"
    assert _problems(at("budget", {**LIMIT, "dollars_a_month": error.write})) == []


def test_a_budget_below_idle_and_a_run_of_each_job_is_a_warning() -> None:
    """Idle and 10 h 181 s of two nodes with disks, and 2 images: the nodes alone are 1,106 USD."""
    run = (2 * P5 + 2 * DISK / 730) * (10 + START / 3600) + 2 * Decimal("9.35") * Decimal("0.045")
    month = _idle(_virginia())[1] + run
    [warning] = _problems(at("budget", {**LIMIT, "dollars_a_month": int(month)}))
    assert isinstance(warning, InputWarning)
    said = re.search(r"expected_hours cost ([\d,.]+) USD, and the budget is ", warning.text)
    assert said and float(said[1].replace(",", "")) == pytest.approx(float(month), abs=0.02)
    assert _problems(at("budget", {**LIMIT, "dollars_a_month": int(month) + 1})) == []
    assert _problems() == []


def test_a_budget_that_only_guesses_exceed_is_a_warning_and_the_sum_in_an_error_counts_them() -> (
    None
):
    """Seoul: 490.63 a month are known, and Lustre has a guess only."""

    def problems(dollars: int) -> list[InputError | InputWarning]:
        return list(
            budget_problems(environment_plan(at("budget", {**LIMIT, "dollars_a_month": dollars})))
        )

    [error] = problems(400)
    [warning] = problems(491)
    assert isinstance(error, InputError) and isinstance(warning, InputWarning)
    assert error.write > 900 and problems(error.write) == []
    assert error.fix == f"write {error.write}, with guessed prices"
    assert re.search(r"cost [\d,.]+ USD, with guessed prices, and the budget is 491", warning.text)


def test_check_prints_what_a_budget_lacks(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    small = read(
        values(at("budget", {**LIMIT, "dollars_a_month": 100})), stack="dev", project="trainyard"
    )
    monkeypatch.setattr(stack_file, "read_file", lambda stack: small)
    assert run_word("check", ["dev"]) == 1
    assert "dollars_a_month" in capsys.readouterr().out


def test_a_budget_is_compared_with_own_prices() -> None:
    """At list prices an idle month is above the budget, at own prices below it."""
    month = _idle(_virginia())[1]
    limit = at("budget", {**LIMIT, "dollars_a_month": float(round(month * Decimal("0.95"), 2))})
    assert isinstance(_problems(limit)[0], InputError)
    found = list(budget_problems(_own(limit)))
    assert not [each for each in found if isinstance(each, InputError)]
    box = _box(_own(limit))
    assert box.budget and box.budget.left_usd > 0
