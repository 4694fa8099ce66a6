"""The reason of a failed run, on its job."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from trainyard.catalog.logs.cause import Cause
from trainyard.catalog.logs.noted import WHY, note_of, noted, noted_at


def test_what_is_noted_is_read_as_it_was() -> None:
    cause = Cause('node rank 0 ended: ValueError: "a" = {b}', "write it otherwise")
    job = {"metadata": {"annotations": {WHY: note_of(cause)}}}
    at = noted_at(job)
    assert noted(job) == cause and at and abs(datetime.now(UTC) - at) < timedelta(minutes=1)


def test_a_job_without_a_note_has_no_reason() -> None:
    assert noted({"metadata": {"name": "mine"}}) is None
    assert noted_at({"metadata": {"name": "mine"}}) is None
    assert noted({"metadata": {"annotations": None}}) is None
