"""Runs beside what the plan counted for them: dollars and hours of the last ten.

A job with `expected_hours` carries what the plan counts in an annotation, and the history keeps it with the
run. Both sides are nodes alone, at the same prices, from the moment at which nodes are there: the plan's own
figure also has their start, their disks and their images.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from statistics import median

from trainyard.catalog.aws.own_prices import LIST, OwnPrices
from trainyard.catalog.aws.prices import CAPACITY_SERVICES
from trainyard.operations.runs.node_time import EXACT, Run
from trainyard.reports.costs.lines import CENT

LAST = 10
"""Number of runs that are compared."""
HUNDREDTH = Decimal("0.01")


@dataclass(frozen=True, kw_only=True)
class BesidePlan:
    """The last runs that were complete, beside their plans: medians, which one run that resumed at its last
    step does not move."""

    runs: int
    """Number of runs whose hours are compared; at most LAST."""
    hours_ratio: Decimal
    """Hours that a run ran, divided by `expected_hours`."""
    usd_runs: int
    """Number of them whose dollars are exact, and have a planned price."""
    usd_ratio: Decimal | None
    """Dollars of a run, divided by those of the plan; None where usd_runs is 0."""

    @property
    def said(self) -> str:
        """A sentence."""
        count = f"the last {self.runs} complete runs" if self.runs > 1 else "the last complete run"
        ran = f"{count} ran {self.hours_ratio} × expected_hours"
        if self.usd_ratio is None:
            return ran
        which = "" if self.usd_runs == self.runs else f"{self.usd_runs} of them "
        return f"{ran}, and {which}cost {self.usd_ratio} × the plan"


def planned_usd(run: Run, prices: OwnPrices = LIST) -> Decimal | None:
    """Dollars that the plan counted for the nodes of the run, at today's prices of the stack; None where it
    does not say its hours, or a price is not known. Of nodes that pods share, what the run has of them: its own
    dollars are counted so, too."""
    expected = run.expected
    region = next((time.region for time in run.times if time.region), "")
    if expected is None:
        return None
    service = CAPACITY_SERVICES.get(expected.capacity, "")
    found = prices.price(service, expected.instance_type, region)
    if found is None:
        return None
    hours = expected.nodes * Decimal(str(expected.hours))
    return (found.usd * hours * _share(run)).quantize(CENT)


def _share(run: Run) -> Decimal:
    """Part of its nodes that a run has: 1 where no pod shares one, and before any pod has one."""
    hours = sum((time.hours for time in run.times), Decimal())
    return sum((time.node_hours for time in run.times), Decimal()) / hours if hours else Decimal(1)


def beside_plan(
    runs: Iterable[tuple[Run, Decimal | None]], prices: OwnPrices = LIST
) -> BesidePlan | None:
    """The last complete runs beside their plans. `runs`: the first to end first, each with its dollars
    where they are exact. `prices`: of the stack. None where no run can be compared."""
    known = [
        (run, usd)
        for run, usd in runs
        if run.job.complete and run.known == EXACT and run.began and run.expected
    ][-LAST:]
    hours = [_hours(run) for run, _ in known]
    dollars = [
        usd / plan for run, usd in known if usd is not None and (plan := planned_usd(run, prices))
    ]
    if not hours:
        return None
    return BesidePlan(
        runs=len(hours),
        hours_ratio=median(hours).quantize(HUNDREDTH),
        usd_runs=len(dollars),
        usd_ratio=median(dollars).quantize(HUNDREDTH) if dollars else None,
    )


def _hours(run: Run) -> Decimal:
    assert run.began and run.expected
    seconds = Decimal(str((run.ended - run.began).total_seconds()))
    return seconds / 3600 / Decimal(str(run.expected.hours))
