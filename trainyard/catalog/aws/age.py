"""Age of a fact that AWS changes without notice."""

from __future__ import annotations

from datetime import date, timedelta

FRESH_FOR = timedelta(days=180)
"""Time for which such a fact is taken for current; a choice of ours."""


def days_old(as_of: str, today: date) -> int:
    """Days since a day, or since the first of a month. Raises ValueError for anything else."""
    return (today - date.fromisoformat(as_of if as_of.count("-") == 2 else f"{as_of}-01")).days


def outdated(as_of: str, today: date) -> str | None:
    """A sentence for a warning where a day or month lies more than 180 days back; None where it
    does not."""
    try:
        days = days_old(as_of, today)
    except ValueError:
        return f"has no readable date ({as_of}): `python -m trainyard.catalog.refresh` gives it one"
    if days <= FRESH_FOR.days:
        return None
    return f"is of {as_of}, {days} days old, and AWS has added since: `python -m trainyard.catalog.refresh`"
