"""`trainyard plan --html`: the plan of a stack as one page to look at, in one file without a script.

The page shows what `trainyard plan` prints and `--json` has; it computes no figure of its own.
"""

from __future__ import annotations

from collections.abc import Iterable

from trainyard.plan import EnvironmentPlan, TeamPlan
from trainyard.problems import InputWarning
from trainyard.reports.box import Box, rows
from trainyard.reports.costs.amounts import Estimate, TeamEstimate
from trainyard.reports.minutes.timeline import Timeline, drawn, in_words, slowest
from trainyard.reports.page.charts import bars, by_line, curve, fleet, gantt, waits
from trainyard.reports.page.drawing import page, paragraph, section, table


def plan_page(
    plan: EnvironmentPlan | TeamPlan,
    costs: Estimate | TeamEstimate,
    timeline: Timeline,
    box: Box,
    warnings: Iterable[InputWarning],
    listed: Estimate | TeamEstimate | None = None,
) -> str:
    """The whole page of a plan. `listed`: its costs at list prices; None where these are its own."""
    capacity = plan.capacity if isinstance(plan, EnvironmentPlan) else {}
    return page(
        f"Plan of {plan.identity.stack}, {plan.identity.region}",
        [
            _summary(box),
            _list("Warnings", [f"{each.path}: {each.text}" for each in warnings]),
            section(
                "Time to the first step",
                paragraph(in_words(timeline)),
                paragraph(slowest(timeline)),
                gantt(timeline, drawn(timeline).one_in_ten_seconds),
            ),
            section("What waits for what", waits(timeline)),
            *_money(costs, listed),
            _teams(box),
            _goodput(plan),
            section("Nodes", fleet(capacity)),
        ],
    )


def _summary(box: Box) -> str:
    shown = [(name.replace("_", " "), str(words)) for name, words in rows(box).items()]
    return section(
        "Summary",
        paragraph("in USD without tax; what is paid by use is in no sum"),
        f'<div class="card">{table(("", ""), shown)}</div>',
    )


def _list(title: str, said: list[str]) -> str:
    return section(title, table(("",), [(each,) for each in said])) if said else ""


def _money(costs: Estimate | TeamEstimate, listed: Estimate | TeamEstimate | None) -> Iterable[str]:
    """Dollars by line, of each state that is paid, with list prices beside them."""
    beside = listed if isinstance(listed, Estimate) else None
    if isinstance(costs, TeamEstimate):
        yield section(
            "Money",
            bars(
                (job.job, float(job.at_least_usd_per_hour), f"{job.at_least_usd_per_hour:,.4f}")
                for job in costs.jobs
                if job.at_least_usd_per_hour is not None
            ),
        )
        return
    yield section(
        "Money while nothing runs",
        by_line((*costs.fixed, *costs.storage), beside and (*beside.fixed, *beside.storage)),
    )
    yield section(
        "Money while its jobs run, in addition", by_line(costs.work, beside and beside.work)
    )
    yield section(
        "Money while all pools are full, in addition", by_line(costs.full, beside and beside.full)
    )
    yield section(
        "Paid once",
        bars(
            (line.what, float(line.usd_once or 0), f"{line.usd_once:,.2f} USD")
            for line in costs.once
            if line.usd_once is not None
        ),
    )


def _teams(box: Box) -> str:
    """A month of each team: what it is guaranteed, and what it can get."""
    found = [
        (f"{name}, {word}", float(each.usd or 0), each.said)
        for name, team in box.teams.items()
        for word, each in (
            ("guaranteed", team.usd_a_month_guaranteed),
            ("possible", team.usd_a_month_possible),
        )
    ]
    return section("Teams, USD a month", bars(found))


def _goodput(plan: EnvironmentPlan | TeamPlan) -> str:
    said = [
        (
            name,
            f"{verdict.goodput:.1%}",
            f"{verdict.stall_share:.1%}",
            f"{verdict.interval_seconds / 60:,.0f} min",
            f"{verdict.mtbf_hours:,.0f} h",
        )
        for name, verdict in plan.checkpoints.items()
    ]
    head = ("job", "trains", "saves", "interval", "a stop every")
    charts = [paragraph(name) + curve(name, verdict) for name, verdict in plan.checkpoints.items()]
    return section("Goodput", table(head, said), *charts) if said else ""
