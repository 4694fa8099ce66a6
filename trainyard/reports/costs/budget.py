"""The monthly limit of an environment beside what it costs: what an idle month takes of it, what is left, and what
is refused or warned of."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from trainyard.parts.parts import monthly_limit
from trainyard.plan import EnvironmentPlan, TeamPlan
from trainyard.plans.budget import plain
from trainyard.problems import At, InputError, InputWarning
from trainyard.reports.costs.amounts import Amount, Bounds, Estimate, TeamEstimate, Total
from trainyard.reports.costs.cost import estimate
from trainyard.reports.costs.lines import HOURS, bounds_of, month_of


@dataclass(frozen=True, kw_only=True)
class BudgetUse:
    """The limit of `environment.budget`, and what is left of it beside an idle environment."""

    usd_a_month: Decimal
    idle_percent: int
    left_usd: Decimal
    """Below 0 where an idle month costs more than the budget."""
    hours_at_work: int | None
    """Hours of a month in which all jobs can run with what is left; None without jobs."""
    said: str


def use_of_budget(
    plan: EnvironmentPlan | TeamPlan, costs: Estimate | TeamEstimate
) -> BudgetUse | None:
    """Use of the monthly limit of an environment; None without one."""
    if isinstance(plan, TeamPlan) or isinstance(costs, TeamEstimate):
        return None
    limit = monthly_limit(plan)
    return budget_use(limit, costs.idle, costs.at_work, costs.all_full) if limit else None


def budget_use(dollars: Decimal, idle: Total, at_work: Total | None, all_full: Total) -> BudgetUse:
    """Use of a monthly limit. `all_full`: a month in which all pools are full, which is said where it is above the
    limit. Where a price is missing, the rest is the most that can be left, and the words count with guesses where
    there are some; spot counts with its ceiling."""
    month = month_of(idle)
    known = month.usd or Decimal()
    left = dollars - known
    said = _guessed(dollars, idle, at_work) or _known(dollars, idle, at_work)
    return BudgetUse(
        usd_a_month=dollars,
        idle_percent=int(100 * known / dollars),
        left_usd=left,
        hours_at_work=None if at_work is None else _hours_left(left, idle, at_work),
        said=f"{dollars:,.2f} a month: {said}{_above(dollars, all_full) if left >= 0 else ''}",
    )


def _guessed(dollars: Decimal, idle: Total, at_work: Total | None) -> str:
    """Words about a month with guessed prices; empty where none of an idle month is guessed."""
    month = month_of(idle).guess
    if month is None:
        return ""
    if month.usd > dollars:
        above = f"between {month.usd - dollars:,.2f} and {month.most_usd - dollars:,.2f}"
        return f"with guessed prices idle is {above} above it"
    least, most = (int(100 * usd / dollars) for usd in (month.usd, month.most_usd))
    left = max(Decimal(), dollars - month.most_usd), dollars - month.usd
    said = f"with guessed prices idle takes between {least} and {most} %, between {left[0]:,.2f}"
    said += f" and {left[1]:,.2f} are left"
    work = _bounds(month_of(at_work)) if at_work else None
    if work is None:
        return said
    fewest = _hours(left[0], work.most_usd - month.most_usd)
    return f"{said}: between {fewest} and {_hours(left[1], work.usd - month.usd)} hours at work"


def _above(dollars: Decimal, all_full: Total) -> str:
    """Words about a month in which all pools are full; empty where it is not above the limit."""
    month = month_of(all_full)
    most = _bound(month)
    if most <= dollars:
        return ""
    least = "at least" if _is_open(month) else "up to"
    return f"; a month of full pools takes {least} {int(100 * most / dollars):,} % of it"


def _bounds(each: Amount) -> Bounds | None:
    """Bounds of an amount, with guesses for prices that are missing; None where one has no guess."""
    return each.guess or (bounds_of(each.usd, each.most_usd) if each.usd is not None else None)


def _known(dollars: Decimal, idle: Total, at_work: Total | None) -> str:
    """Words about a month, of which a missing price makes a bound."""
    month, lacks = month_of(idle).usd or Decimal(), bool(idle.missing)
    left = dollars - month
    if left < 0:
        return f"idle is {'at least ' if lacks else ''}{-left:,.2f} above it"
    said = f"idle takes {'at least ' if lacks else ''}{int(100 * month / dollars)} %"
    said += f", {'at most ' if lacks else ''}{left:,.2f} are left"
    if at_work is not None:
        hours = _hours_left(left, idle, at_work)
        said += f": {'at most ' if at_work.missing else ''}{hours} hour{'s' * (hours != 1)} at work"
    return said


def budget_problems(plan: EnvironmentPlan | TeamPlan) -> Iterator[InputError | InputWarning]:
    """An error where an idle month costs more than `budget.dollars_a_month`, and a warning where one
    with a run of each job does. Spot counts with its ceiling. Guesses of missing prices warn, and refuse nothing."""
    costs = estimate(plan)
    use = use_of_budget(plan, costs)
    if use is None or isinstance(costs, TeamEstimate):
        return
    at, idle = At("environment.budget.dollars_a_month"), month_of(costs.idle)
    runs = [job.added for job in costs.jobs if job.added]
    month = sum((_bound(each) for each in (idle, *runs)), Decimal())
    least = "at least " if any(_is_open(each) for each in (idle, *runs)) else ""
    guessed = ", with guessed prices" if any(each.guess for each in (idle, *runs)) else ""
    if use.left_usd < 0:
        yield at.must(
            f"be no less than an idle month costs, {idle.said}",
            got=plain(float(use.usd_a_month)),
            fix=f"write {math.ceil(month)}{guessed}",
            write=math.ceil(month),
        )
    elif month > use.usd_a_month:
        yield at.warning(
            f"an idle month and one run of each job that has expected_hours cost {least}{month:,.2f}"
            f" USD{guessed}, and the budget is {use.usd_a_month:,.2f}"
        )


def _is_open(each: Amount) -> bool:
    """No upper bound of an amount is known, and none is guessed."""
    return each.most_usd is None and each.guess is None


def _bound(each: Amount) -> Decimal:
    """Upper bound of an amount, with guesses for prices that are missing; else what is known of it."""
    if each.guess:
        return each.guess.most_usd
    return each.most_usd if each.most_usd is not None else each.usd or Decimal()


def _hours_left(left: Decimal, idle: Total, at_work: Total) -> int:
    """Hours of a month in which all jobs can run."""
    work = (at_work.most_usd_per_hour or at_work.usd_per_hour) - idle.usd_per_hour
    return _hours(left, work * HOURS)


def _hours(left: Decimal, month: Decimal) -> int:
    """Hours that are paid with what is left. `month`: what a month at work costs more than an idle one; all hours
    where it costs nothing more."""
    if left < 0:
        return 0
    return HOURS if month <= 0 else min(HOURS, int(left * HOURS / month))
