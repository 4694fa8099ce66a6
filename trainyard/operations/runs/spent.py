"""`trainyard spent STACK [--json]`: print the GPU hours and the dollars of each finished run on the cluster
of a stack, and their sums by namespace, which is by team.

What is known of a run: node_time.py and records.py. Without `environment.history` a run leaves no record once
its job is deleted.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal

from trainyard import command_line
from trainyard.catalog.aws.own_prices import LIST, OwnPrices
from trainyard.operations.reach.stack import own_prices
from trainyard.operations.reach.target import answer_of
from trainyard.operations.runs.beside_plan import beside_plan, planned_usd
from trainyard.operations.runs.node_time import ABOUT, AT_LEAST, AT_MOST, EXACT, Run, together
from trainyard.operations.runs.records import KEPT, MISSING, UNREADABLE, known_runs
from trainyard.reports.costs.lines import CENT
from trainyard.reports.plan import as_json

HEAD = ("RUN", "ENDED", "STATE", "NODES", "INSTANCE", "", "GPU HOURS", "", "USD", "PLAN USD")
NOTES = (
    "USD without tax, of nodes alone, from the time a pod has its node: idle nodes, disks and data"
    " are in no run. PLAN USD: the expected_hours of the job's entry, counted in the same way.",
    "A node that pods share is divided by its GPUs. A node without GPUs counts wholly for each pod.",
    f"{AT_LEAST}: pods of an earlier attempt are gone, or a price is not known. {AT_MOST}: all pods"
    f" are gone, so each node counts from the creation of the job to its end. {ABOUT}: both.",
)
FORGOTTEN = {
    MISSING: (
        f"Sums are {AT_LEAST}: a run whose job is deleted, or replaced by another run, is in none of them. Fix:"
        " write history: {} under environment of the stack file, which records the runs from then on."
    ),
    UNREADABLE: (
        f"Sums are {AT_LEAST}: a run whose job is deleted, or replaced by another run, is in none of them,"
        " because you cannot read the history of the environment."
    ),
}
"""State of the history → what sums lack."""


@dataclass(frozen=True, kw_only=True)
class Spent:
    """Known use and cost of one run, or of all runs of a namespace."""

    namespace: str
    runs: int
    gpu_hours: Decimal
    known: str
    """Word for how well the hours are known: runs.EXACT and its neighbours."""
    usd: Decimal | None
    """None where no price of it is known."""
    usd_known: str
    as_of: str | None
    """Date of the oldest price."""
    job: str = ""
    kind: str = ""
    state: str = ""
    ended: str = ""
    instance_types: tuple[str, ...] = ()
    nodes: int = 0
    planned_usd: Decimal | None = None
    """Cost of the nodes for the expected_hours of its entry; None where it has none."""


def main(options: argparse.Namespace) -> int:
    """Return 0, or 1 where the cluster does not answer or another one could be meant."""
    known = answer_of(lambda: known_runs(options.stack))
    if known is None:
        return 1
    prices = own_prices(options.stack)
    runs, going = [spent(run, prices) for run in known.finished], len(known.going)
    dollars = (exact_usd(one.usd, one.usd_known) for one in runs)
    beside = beside_plan(zip(known.finished, dollars, strict=True), prices)
    notes = (*NOTES, *prices_said(prices), *filter(None, [FORGOTTEN.get(known.history)]))
    if options.json:
        teams = by_namespace(runs, known.history)
        every = {"runs": runs, "namespaces": teams, "beside_plan": beside, "running": going}
        print(as_json({**every, "history": known.history, "notes": notes}))
    else:
        said = beside.said if beside else ""
        print("\n".join(text(runs, going, notes, said, known.history)))
    return 0


def exact_usd(usd: Decimal | None, known: str) -> Decimal | None:
    """Dollars of a run; None where they are not exact."""
    return usd if known == EXACT else None


def prices_said(prices: OwnPrices) -> tuple[str, ...]:
    """A note about own prices; nothing where AWS's list counts."""
    return (f"USD are at own prices (environment.prices): {prices.said}.",) if prices.lower else ()


def spent(run: Run, own: OwnPrices = LIST) -> Spent:
    """The hours and the dollars of one run. `own`: prices of the stack."""
    prices = [own.price(time.service, time.instance_type, time.region) for time in run.times]
    priced = [
        (found, found.usd * time.node_hours)
        for found, time in zip(prices, run.times, strict=True)
        if found
    ]
    job, lacks = run.job, AT_LEAST if len(priced) < len(run.times) else EXACT
    return Spent(
        namespace=job.namespace,
        runs=1,
        job=job.name,
        kind=job.kind,
        state=job.state,
        ended=run.ended.strftime("%Y-%m-%dT%H:%M:%SZ"),
        instance_types=tuple(sorted({time.instance_type for time in run.times} - {""})),
        nodes=job.nodes,
        gpu_hours=sum((time.gpu_hours for time in run.times), Decimal()).quantize(CENT),
        known=run.known,
        usd=sum((usd for _, usd in priced), Decimal()).quantize(CENT)
        if priced or not run.times
        else None,
        usd_known=together([run.known, lacks]),
        as_of=min((found.as_of for found, _ in priced), default=None),
        planned_usd=planned_usd(run, own),
    )


def by_namespace(runs: Iterable[Spent], history: str = KEPT) -> list[Spent]:
    """The sums of each namespace. A run without a price makes its sum "at least", and so does a `history` that
    is not there: runs are missing then."""
    every, lacks = [*runs], EXACT if history == KEPT else AT_LEAST
    return [
        _sum(name, [run for run in every if run.namespace == name], lacks)
        for name in sorted({run.namespace for run in every})
    ]


def text(
    runs: list[Spent],
    going: int,
    notes: tuple[str, ...] = NOTES,
    beside: str = "",
    history: str = KEPT,
) -> list[str]:
    """Runs, sums and what they leave out, for a person. `going`: jobs that have not ended. `beside`: the
    sentence about runs beside their plans. `history`: its state."""
    more = f"{going} job{'s' * (going != 1)} not ended" if going else ""
    if not runs:
        nothing = f"no finished run is on the cluster{f'; {more}' if more else ''}"
        lacks = FORGOTTEN.get(history)
        return [nothing, *(command_line.wrapped(lacks) if lacks else [])]
    sums = [(one.namespace, one.runs, *_amounts(one)) for one in by_namespace(runs, history)]
    dates = [run.as_of for run in runs if run.as_of]
    return [
        *command_line.table([HEAD, *map(_row, runs)], indent=0),
        "",
        *command_line.table([("NAMESPACE", "RUNS", "", "GPU HOURS", "", "USD"), *sums], indent=0),
        "",
        *([beside] if beside else []),
        *([more] if more else []),
        *([f"prices of {min(dates)} or later"] if dates else []),
        *(line for note in notes for line in command_line.wrapped(note)),
    ]


def _row(run: Spent) -> tuple[str, ...]:
    return (
        f"{run.namespace}/{run.job}",
        run.ended,
        run.state,
        str(run.nodes),
        ", ".join(run.instance_types) or "-",
        *_amounts(run),
        "-" if run.planned_usd is None else f"{run.planned_usd:,.2f}",
    )


def _amounts(one: Spent) -> tuple[str, str, str, str]:
    usd = "no price" if one.usd is None else f"{one.usd:,.2f}"
    return one.known, f"{one.gpu_hours:,.2f}", "" if one.usd is None else one.usd_known, usd


def _sum(namespace: str, runs: list[Spent], missing: str) -> Spent:
    """The sum of some runs. `missing`: AT_LEAST where others can have been there, else EXACT."""
    dollars = [run.usd for run in runs if run.usd is not None]
    lacks = AT_LEAST if len(dollars) < len(runs) else missing
    return Spent(
        namespace=namespace,
        runs=len(runs),
        gpu_hours=sum((run.gpu_hours for run in runs), Decimal()),
        known=together([missing, *(run.known for run in runs)]),
        usd=sum(dollars, Decimal()) if dollars else None,
        usd_known=together([lacks, *(run.usd_known for run in runs if run.usd is not None)]),
        as_of=min((run.as_of for run in runs if run.as_of), default=None),
    )
