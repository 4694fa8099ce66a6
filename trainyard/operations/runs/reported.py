"""Progress of a run by `status.trainerStatus` of its TrainJob (Trainer 2.2 and newer, KEP-2779): the script sends it to
the Trainer where the feature gate TrainJobStatus is on. Why this program does not turn it on: decision 0034."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from trainyard.catalog.aws.own_prices import LIST, OwnPrices
from trainyard.operations.runs.beside_plan import planned_usd
from trainyard.operations.runs.runs import Run, duration
from trainyard.operations.runs.spent import spent
from trainyard.reports.lines import CENT

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


def far_of(run: Run, prices: OwnPrices = LIST) -> HowFar | None:
    """Progress of a run; None where its job does not say it. `prices`: of the stack."""
    said = run.job.body.get("status", {}).get("trainerStatus")
    if not said:
        return None
    at, left = datetime.fromisoformat(said["lastUpdatedTime"]), None
    if not run.job.ended and (told := said.get("estimatedRemainingSeconds")) is not None:
        left = max(0, round(told - (run.ended - at).total_seconds()))
    hourly = None if left is None else _usd_an_hour(run, prices)
    return HowFar(
        percent=said.get("progressPercentage"),
        remaining_seconds=left,
        usd_remaining=None
        if hourly is None
        else (hourly * Decimal(left or 0) / 3600).quantize(CENT),
        said_at=at,
    )


def _usd_an_hour(run: Run, prices: OwnPrices) -> Decimal | None:
    """As the plan counts the nodes of the run, else as it has cost until now; None where neither is known."""
    planned = planned_usd(run, prices)
    if planned is not None and run.expected:
        return planned / Decimal(str(run.expected.hours))
    ran, usd = (run.ended - run.began).total_seconds() if run.began else 0.0, spent(run, prices).usd
    return usd * 3600 / Decimal(str(ran)) if usd and ran >= LEAST_SECONDS else None
