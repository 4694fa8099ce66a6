from __future__ import annotations

from datetime import date

import pytest

from trainyard.catalog.aws import age


@pytest.mark.parametrize(
    ("as_of", "says"),
    [
        ("2026-10", None),
        ("2026-06", None),
        ("2026-05-25", None),
        ("2026-05-24", "181 days old"),
        ("2026-05", "is of 2026-05, 204 days old"),
        ("2027-01", None),
        ("once", "no readable date"),
    ],
)
def test_facts_older_than_180_days_are_said_to_be_old_and_never_stop_anything(
    as_of: str, says: str | None
) -> None:
    said = age.outdated(as_of, date(2026, 11, 21))
    assert (
        said is None
        if says is None
        else says in (said or "") and "python -m trainyard.catalog.refresh" in (said or "")
    )
