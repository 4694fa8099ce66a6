"""The dollars of a plan as a budget owner reads them: quantity times unit price line by line, the sums,
and what a job's start, its failure, its idle minute and its run cost.

Amounts are USD without tax. A sum that lacks a price says "at least"; what it lacks, and what somebody signs: box.py.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from datetime import date
from decimal import Decimal

from trainyard.catalog.aws.prices import stale
from trainyard.command_line import table, wrapped
from trainyard.reports.costs.amounts import (
    Estimate,
    JobCost,
    Line,
    PricedQuantity,
    TeamEstimate,
    Total,
)
from trainyard.reports.costs.lines import HOURS

WHAT = 38
"""Columns for the name of a line."""
Rows = list[tuple[str, ...]]
EACH, AN_HOUR, A_RUN = 1, 3, 7
"""Columns of rates, of lines and of jobs that are shown at list prices too."""
UNITS = {"hour": "", "GB-month": " GB", "IOPS-month": " IOPS", "MB/s-month": " MB/s"}
"""Unit of a price → what is behind its quantity."""


def money(
    costs: Estimate | TeamEstimate, today: date, listed: Estimate | TeamEstimate | None = None
) -> list[str]:
    """Costs while nothing runs, at work, and with full pools; then each job. `listed`: the same at list
    prices, in a column of its own; None where these are the own ones."""
    old = stale(_dates(costs), today)
    lines = [line.removeprefix("  ") for line in wrapped(_headline(costs))]
    lines += wrapped(old) if old else []
    lines += wrapped("own prices; list prices stand beside them") if listed else []
    if isinstance(costs, Estimate):
        beside = listed if isinstance(listed, Estimate) else None
        lines += table(_right(_beside(_rows_of(costs), beside and _rows_of(beside), AN_HOUR)))
        lines += _by_use(costs.usage, beside and beside.usage)
    return [*lines, *_jobs(costs.jobs, listed and listed.jobs)]


def _beside(rows: Rows, listed: Rows | None, column: int) -> Rows:
    """Rows with a column of the same at list prices behind theirs."""
    if listed is None:
        return rows
    merged = [
        (*row[: column + 1], other[column], *row[column + 1 :])
        for row, other in zip(rows, listed, strict=True)
    ]
    head = (*rows[0][: column + 1], "at list", *rows[0][column + 1 :])
    return [head, *merged[1:]]


def _headline(costs: Estimate | TeamEstimate) -> str:
    if isinstance(costs, TeamEstimate):
        return "money: jobs only, in USD without tax; the environment pays for the rest"
    return "money: in USD without tax; the sums by the month and by the run stand on top"


def _rows_of(costs: Estimate) -> Rows:
    """The lines with their parts, and the sums."""
    rows: Rows = [("", "quantity", "each", "an hour", "a month", "price of")]
    for title, lines, monthly in (
        ("while nothing runs", (*costs.fixed, *costs.storage), True),
        ("while its jobs run, in addition", costs.work, False),
        ("while all pools are full, in addition", _full(costs), False),
        ("once, not by the hour", costs.once, False),
    ):
        rows += [(title, "", "", "", "", "")] if lines else []
        for line in lines:
            rows += _rows(line, monthly)
    rows.append(("in all", "", "", "", "", ""))
    for name, total in (
        ("while nothing runs", costs.idle),
        ("while its jobs run", costs.at_work),
        ("while all pools are full", costs.all_full),
    ):
        rows += _sum(name, total) if total else []
    return rows


def _full(costs: Estimate) -> tuple[Line, ...]:
    """Lines of full pools, where they tell more than those of the jobs."""
    return costs.full if costs.full != costs.work else ()


def _sum(name: str, total: Total) -> Iterable[tuple[str, ...]]:
    """One row of a sum, or two where it lies between two bounds. Guesses have two rows of their own."""
    least, most = total.usd_per_hour, total.most_usd_per_hour
    between = most is not None and most > least
    said = "between" if between else "at least" if total.missing else ""
    month = "" if total.usd_per_month is None or between else f"{total.usd_per_month:,.2f}"
    yield (f"  {name}", "", said, f"{least:,.4f}", month, total.as_of or "")
    if between:
        yield ("", "", "and", f"{most:,.4f}", "", "")
    if total.guess:
        yield ("    with guessed prices", "", "between", f"{total.guess.usd:,.4f}", "", "")
        yield ("", "", "and", f"{total.guess.most_usd:,.4f}", "", "")


def _rows(line: Line, monthly: bool) -> Iterable[tuple[str, ...]]:
    """One row for each price of a line; the first one names it. `monthly`: a month of it makes
    sense."""
    named = f"{line.what}, {line.assumption}" if line.assumption else line.what
    apart = len(named) > WHAT - 2
    for number, part in enumerate(line.parts):
        name = "" if number else (line.what if apart else named)
        shown = textwrap.shorten(name, WHAT - 2, placeholder="...")
        month = _month(part) if monthly else ""
        hour = "" if line.usd_once is not None else _usd(part.most_usd_per_hour, 4)
        once = f"{line.usd_once:,.2f}" if line.usd_once is not None else ""
        yield (f"  {shown}", *_quantity(part), hour or once, month, part.as_of or "")
    if apart and line.assumption:
        yield (f"    {line.assumption}", "", "", "", "", "")


def _month(part: PricedQuantity) -> str:
    hour = part.usd_per_hour
    return "" if hour is None else f"{hour * HOURS:,.2f}"


def _quantity(part: PricedQuantity) -> tuple[str, str]:
    if part.usd_each is None and part.most_usd_per_hour is not None:
        each = f"at most {(part.most_usd_per_hour / part.quantity).normalize():f}"
    else:
        each = "no price" if part.usd_each is None else f"{part.usd_each.normalize():f}"
    return f"{part.quantity:,}{UNITS.get(part.unit, '')}", each


def _by_use(usage: Iterable[Line], listed: Iterable[Line] | None) -> list[str]:
    """A row for each rate, and below it what an expected quantity comes to."""
    rates = _rates(usage)
    head, *lines = table(_beside(rates, None if listed is None else _rates(listed), EACH))
    said = [line.assumption.removesuffix(", by use").partition("; ")[2] for line in usage]
    expected = [[f"      {words}"] if words else [] for words in said]
    below = ([text, *more] for text, more in zip(lines, expected, strict=True))
    return [head, *(text for both in below for text in both)]


def _rates(usage: Iterable[Line]) -> Rows:
    rows: Rows = [("by use, in no sum", "each", "price of")]
    for line in usage:
        rate, _, _ = line.assumption.removesuffix(", by use").partition("; ")
        rows.append((f"  {line.what}", rate, line.as_of or ""))
    return rows


def _jobs(jobs: Iterable[JobCost], listed: Iterable[JobCost] | None) -> list[str]:
    """Cost of each job."""
    rows = _beside(_costs_of(jobs), None if listed is None else _costs_of(listed), A_RUN)
    prepaid = [job.job for job in jobs if job.prepaid]
    return [
        *(table(_right(rows, first=1)) if len(rows) > 1 else []),
        *([f"  paid in advance with a Capacity Block: {', '.join(prepaid)}"] if prepaid else []),
    ]


def _costs_of(jobs: Iterable[JobCost]) -> Rows:
    """A row for each job. A start has the nodes until the first step and the images that they
    pull."""
    rows: Rows = [
        ("job", "nodes", "", "an hour", "a start", "a failure", "an idle minute", "a run", "")
    ]
    for job in jobs:
        start = (job.cold_start_usd, job.image_usd)
        hour, run = (
            (job.most_usd_per_hour, job.most_usd)
            if job.at_most
            else (job.at_least_usd_per_hour, job.usd)
        )
        rows.append(
            (
                job.job,
                str(job.nodes),
                _bound(job),
                _usd(hour, 4),
                _usd(None if start[0] is None else start[0] + (start[1] or 0)),
                "-" if job.failure_usd is None else _usd(job.failure_usd),
                _usd(job.usd_per_idle_minute),
                "-" if run is None else _usd(run),
                "",
            )
        )
    return rows


def _bound(job: JobCost) -> str:
    if job.at_most:
        return "at most: spot"
    return "at least" if job.missing and job.at_least_usd_per_hour is not None else ""


def _dates(costs: Estimate | TeamEstimate) -> set[str | None]:
    """Dates of the prices of every line."""
    if isinstance(costs, TeamEstimate):
        return {costs.at_work.as_of}
    lines = (*costs.fixed, *costs.storage, *costs.work, *costs.full, *costs.once, *costs.usage)
    return {line.as_of for line in lines} | {p.as_of for line in lines for p in line.parts}


def _right(rows: list[tuple[str, ...]], first: int = 1) -> list[tuple[str, ...]]:
    """The rows with columns of numbers set to the right; the first column and the last one stay."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    last = len(widths) - 1
    return [
        tuple(
            cell.rjust(width) if first <= number < last else cell
            for number, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    ]


def _usd(amount: Decimal | None, places: int = 2) -> str:
    return "no price" if amount is None else f"{amount:,.{places}f}"
