"""Progress of a run: per cent, time to go, dollars to the end.

By `status.trainerStatus` of its TrainJob (Trainer 2.2 and newer, KEP-2779), where the script sends it to a Trainer
whose feature gate TrainJobStatus is on; why this program does not turn it on: decision 0034. Of all other runs by
their log.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from trainyard.catalog.aws.own_prices import LIST, OwnPrices
from trainyard.catalog.logs.share_done import Reached
from trainyard.operations.runs.beside_plan import planned_usd
from trainyard.operations.runs.node_time import Run, duration
from trainyard.operations.runs.spent import spent
from trainyard.reports.costs.lines import CENT

LEAST_SECONDS = 60
"""A run that is younger says nothing about its dollars an hour."""


@dataclass(frozen=True, kw_only=True)
class HowFar:
    """Progress of a run. None: its script has not said it."""

    percent: int | None
    """0 to 100."""
    remaining_seconds: int | None
    """From the moment of the look to the end; of a run that has ended None."""
    usd_remaining: Decimal | None
    """Price of its nodes for that time, to the cent; None where a price is not known."""
    said_at: datetime
    """Moment at which the script said it."""

    def __str__(self) -> str:
        """In words, such as `43%, 5 h 12 min to go, about 310.20 USD more`."""
        percent, left, usd = self.percent, self.remaining_seconds, self.usd_remaining
        parts = (
            "" if percent is None else f"{percent}%",
            "" if left is None else f"{duration(left)} to go",
            "" if usd is None else f"about {usd:,.2f} USD more",
        )
        return ", ".join(filter(None, parts))


def far_of(run: Run, prices: OwnPrices = LIST, reached: Reached | None = None) -> HowFar | None:
    """Progress of a run; None where neither its job nor its log says it, and for one that is complete. `prices`: of
    the stack. `reached`: by the log."""
    if run.job.complete:
        return None
    said = run.job.body.get("status", {}).get("trainerStatus")
    if not said:
        return _by_log(run, prices, reached) if reached else None
    at, left = datetime.fromisoformat(said["lastUpdatedTime"]), None
    if not run.job.ended and (told := said.get("estimatedRemainingSeconds")) is not None:
        left = max(0, round(told - (run.ended - at).total_seconds()))
    return HowFar(
        percent=said.get("progressPercentage"),
        remaining_seconds=left,
        usd_remaining=_usd(run, prices, left),
        said_at=at,
    )


def _by_log(run: Run, prices: OwnPrices, reached: Reached) -> HowFar:
    """Progress by the log. The rest takes as long as the same part took until now."""
    left = None
    if not run.job.ended and reached.share_a_second:
        rest = (1 - reached.share) / reached.share_a_second
        left = max(0, round(rest - (run.ended - reached.at).total_seconds()))
    return HowFar(
        percent=int(100 * reached.share + 1e-9),
        remaining_seconds=left,
        usd_remaining=_usd(run, prices, left),
        said_at=reached.at,
    )


def _usd(run: Run, prices: OwnPrices, left: int | None) -> Decimal | None:
    """Price of the time to go."""
    hourly = None if left is None else _usd_an_hour(run, prices)
    return None if hourly is None else (hourly * Decimal(left or 0) / 3600).quantize(CENT)


def _usd_an_hour(run: Run, prices: OwnPrices) -> Decimal | None:
    """As the plan counts the nodes of the run, else as it has cost until now; None where neither is known."""
    planned = planned_usd(run, prices)
    if planned is not None and run.expected:
        return planned / Decimal(str(run.expected.hours))
    ran, usd = (run.ended - run.began).total_seconds() if run.began else 0.0, spent(run, prices).usd
    return usd * 3600 / Decimal(str(ran)) if usd and ran >= LEAST_SECONDS else None
