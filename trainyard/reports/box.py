"""The box on top of a plan, which a budget owner reads alone: once, idle a month, a run with everything,
the most in a month, the budget and what is left of it, minutes to the first step.

`trainyard plan`, its JSON, a preview and the comment on a pull request show the same rows. What has no
price is the first of them. Amounts are USD without tax, and what is paid by use is in none of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal

from trainyard.plan import EnvironmentPlan, TeamPlan
from trainyard.reports.costs.amounts import (
    Amount,
    Estimate,
    JobCost,
    TeamEstimate,
    Total,
    amount,
    figures,
)
from trainyard.reports.costs.budget import BudgetUse, use_of_budget
from trainyard.reports.costs.cost import at_list
from trainyard.reports.costs.job_cost import nodes_of
from trainyard.reports.costs.lines import CENT, month_of, times, total_of
from trainyard.reports.minutes.timeline import Timeline, drawn

COST_CENTRE = re.compile(r"cost[-_ ]?cent(er|re)", re.IGNORECASE)
"""Key of a tag that names who pays for a team."""


@dataclass(frozen=True, kw_only=True)
class Support:
    """A month with what AWS charges for support."""

    percent: Decimal
    usd_a_month_idle: Amount
    usd_a_month_all_pools_full: Amount


@dataclass(frozen=True, kw_only=True)
class TeamDollars:
    """Dollars of the nodes of one team."""

    cost_centre: str | None
    """Value of the team's tag for a cost centre; None without one."""
    usd_a_month_guaranteed: Amount
    """A month of all nodes that it is guaranteed."""
    usd_a_month_possible: Amount
    """A month of all nodes that it can get while the others want none."""
    paid_once: tuple[str, ...]
    """Pools whose nodes are in neither: their Capacity Blocks are paid in advance."""


@dataclass(frozen=True, kw_only=True)
class Box:
    """Rows of the box. None: the row does not exist for this stack."""

    prices_missing: tuple[str, ...]
    """Names of what has no price, Capacity Blocks first."""
    usd_once: Amount | None
    usd_a_month_idle: Amount | None
    usd_per_hour_at_work: Amount | None
    """An hour of all jobs of a team; None for an environment."""
    dearest_run: str | None
    """Job whose run costs most, of those with `expected_hours`; None where none has them."""
    usd_a_run_all_in: Amount | None
    """That run: its nodes, their start and images, and the environment beside it. Of a team: its nodes."""
    runs: int
    """Number of jobs."""
    usd_a_month_all_pools_full: Amount | None
    """A month in which all pools are full."""
    budget: BudgetUse | None
    minutes_to_first_step: float
    minutes_to_first_step_one_in_ten: float
    teams: Mapping[str, TeamDollars]
    own_prices: str
    """The discounts of `environment.prices` in words; empty where AWS's list counts."""
    at_list: Mapping[str, Amount]
    """Name of an amount above → the same at the prices of AWS's list; empty where these count."""
    support: Support | None


def box_of(
    plan: EnvironmentPlan | TeamPlan, costs: Estimate | TeamEstimate, timeline: Timeline
) -> Box:
    """The box of a plan, from its costs and its time line."""
    named, minutes, listed = _dearest(costs.jobs), drawn(timeline), at_list(plan)
    return Box(
        prices_missing=_missing(costs),
        usd_once=_once(costs),
        usd_a_month_idle=None if isinstance(costs, TeamEstimate) else month_of(costs.idle),
        usd_per_hour_at_work=_hour(costs.at_work) if isinstance(costs, TeamEstimate) else None,
        dearest_run=named.job if named else None,
        usd_a_run_all_in=named.all_in if named else None,
        runs=len(costs.jobs),
        usd_a_month_all_pools_full=None
        if isinstance(costs, TeamEstimate)
        else month_of(costs.all_full),
        budget=use_of_budget(plan, costs),
        minutes_to_first_step=round(minutes.typical_seconds / 60, 1),
        minutes_to_first_step_one_in_ten=round(minutes.one_in_ten_seconds / 60, 1),
        teams=_teams(plan) if isinstance(plan, EnvironmentPlan) else {},
        own_prices=plan.prices.said,
        at_list=_at_list(listed, named.job if named else None) if listed else {},
        support=_support(costs, plan.prices.support_percent),
    )


def _at_list(listed: Estimate | TeamEstimate, dearest: str | None) -> dict[str, Amount]:
    """Amounts of the box at list prices. `dearest`: the job whose run the box has."""
    runs = {job.job: job.all_in for job in listed.jobs}
    whole = isinstance(listed, Estimate)
    found = {
        "usd_once": _once(listed),
        "usd_a_month_idle": month_of(listed.idle) if whole else None,
        "usd_per_hour_at_work": None if whole else _hour(listed.at_work),
        "usd_a_run_all_in": runs.get(dearest or ""),
        "usd_a_month_all_pools_full": month_of(listed.all_full) if whole else None,
    }
    return {name: each for name, each in found.items() if each}


def _support(costs: Estimate | TeamEstimate, percent: Decimal) -> Support | None:
    if isinstance(costs, TeamEstimate) or not percent:
        return None
    return Support(
        percent=percent,
        usd_a_month_idle=_raised(month_of(costs.idle), percent),
        usd_a_month_all_pools_full=_raised(month_of(costs.all_full), percent),
    )


def _raised(each: Amount, percent: Decimal) -> Amount:
    """An amount with a per cent on top."""
    factor = 1 + percent / 100
    usd, most = (
        None if known is None else (known * factor).quantize(CENT)
        for known in (each.usd, each.most_usd)
    )
    return amount(usd, most, each.as_of, guess=times(each.guess, factor))


def rows(box: Box) -> dict[str, str | float]:
    """Name of each row → its words. A row that the stack does not have is left out."""
    amounts = {
        "usd_once": box.usd_once,
        "usd_a_month_idle": box.usd_a_month_idle,
        "usd_per_hour_at_work": box.usd_per_hour_at_work,
    }
    shown: dict[str, str | float] = {}
    if box.prices_missing:
        shown["prices_missing"] = "; ".join(box.prices_missing)
    if box.own_prices:
        shown["own_prices"] = box.own_prices
    shown |= {name: _beside_list(box, name, each) for name, each in amounts.items() if each}
    if box.runs:
        shown["usd_a_run_all_in" if box.usd_a_month_idle else "usd_a_run"] = _run(box)
    if box.usd_a_month_all_pools_full:
        shown["usd_a_month_all_pools_full"] = _beside_list(
            box, "usd_a_month_all_pools_full", box.usd_a_month_all_pools_full
        )
    if box.support:
        shown["usd_a_month_with_support"] = _with_support(box.support)
    if box.budget:
        shown["budget"] = box.budget.said
    shown["minutes_to_first_step"] = box.minutes_to_first_step
    shown["minutes_to_first_step_one_in_ten"] = box.minutes_to_first_step_one_in_ten
    for name, team in box.teams.items():
        centre = f" (cost centre {team.cost_centre})" if team.cost_centre else ""
        once = f"; beside nodes of {', '.join(team.paid_once)}, which are paid once"
        shown[f"usd_a_month_of_team_{name}"] = (
            f"guaranteed {team.usd_a_month_guaranteed.said}; possible"
            f" {team.usd_a_month_possible.said}{centre}{once if team.paid_once else ''}"
        )
    return shown


def _beside_list(box: Box, name: str, own: Amount) -> str:
    """An amount, and the same at list prices where those are others."""
    listed = box.at_list.get(name)
    if listed is None:
        return own.said
    places = 4 if name == "usd_per_hour_at_work" else 2
    return f"{own.said} (list {figures(listed.usd, listed.most_usd, places)})"


def _with_support(support: Support) -> str:
    idle, most = (
        figures(each.usd, each.most_usd)
        for each in (support.usd_a_month_idle, support.usd_a_month_all_pools_full)
    )
    return (
        f"{support.percent.normalize():f} % on top: {idle} of an idle month; {most} of one in which all"
        " pools are full"
    )


def _run(box: Box) -> str:
    if box.usd_a_run_all_in is None:
        return "not known: no job has expected_hours"
    which = f"{box.dearest_run}, the dearest of {box.runs} jobs"
    said = _beside_list(box, "usd_a_run_all_in", box.usd_a_run_all_in)
    return f"{said}, of {which if box.runs > 1 else box.dearest_run}"


def _dearest(jobs: Iterable[JobCost]) -> JobCost | None:
    """The job whose run can cost most, of those that say their hours."""
    known = [(job, job.all_in) for job in jobs if job.all_in]
    most = max(
        known,
        key=lambda pair: pair[1].most_usd or pair[1].usd or Decimal(),
        default=None,
    )
    return most[0] if most else None


def _missing(costs: Estimate | TeamEstimate) -> tuple[str, ...]:
    """Names of what the sums lack, without the number of nodes. What is paid once comes first."""
    if isinstance(costs, TeamEstimate):
        lacks = (*costs.at_work.missing, *(what for job in costs.jobs for what in job.missing))
        return tuple(dict.fromkeys(map(_without_count, lacks)))
    blocks = costs.paid_once.missing if costs.paid_once else ()
    sums = (costs.idle, costs.at_work, costs.all_full)
    every = [what for each in (*sums, *costs.jobs) if each for what in each.missing]
    return tuple(dict.fromkeys([*blocks, *map(_without_count, every)]))


def _without_count(what: str) -> str:
    """The name of a line without its number of nodes: "disks of 2 nodes in g6e" and "disks of 4
    nodes in g6e" lack the same price."""
    return re.sub(r"\b\d+ (x |nodes |system nodes )", r"\1", what).removeprefix("x ")


def _once(costs: Estimate | TeamEstimate) -> Amount | None:
    if isinstance(costs, TeamEstimate) or costs.paid_once is None:
        return None
    paid = costs.paid_once
    whole = None if paid.missing else paid.usd_once
    return amount(paid.usd_once, whole, paid.as_of, guess=paid.guess)


def _hour(total: Total) -> Amount:
    return amount(total.usd_per_hour, total.most_usd_per_hour, total.as_of, places=4)


def _teams(plan: EnvironmentPlan) -> dict[str, TeamDollars]:
    """Dollars of each team that has a share of the pools."""
    return {
        name: TeamDollars(
            cost_centre=next(
                (value for key, value in team.identity.extra_tags if COST_CENTRE.search(key)), None
            ),
            usd_a_month_guaranteed=_of_nodes(
                plan, {share.pool: share.guaranteed for share in team.queue.shares}
            ),
            usd_a_month_possible=_of_nodes(
                plan, {share.pool: share.possible for share in team.queue.shares}
            ),
            paid_once=tuple(
                share.pool for share in team.queue.shares if _is_block(plan, share.pool)
            ),
        )
        for name, team in plan.teams.items()
        if team.queue
    }


def _of_nodes(plan: EnvironmentPlan, nodes: Mapping[str, int]) -> Amount:
    """A month of nodes of several pools with their disks; of a Capacity Block the disks alone."""
    return month_of(
        total_of(
            line
            for pool, count in nodes.items()
            for line in nodes_of(plan, pool, 0 if _is_block(plan, pool) else count, count)
        )
    )


def _is_block(plan: EnvironmentPlan, pool: str) -> bool:
    return plan.capacity[pool].capacity == "block"
