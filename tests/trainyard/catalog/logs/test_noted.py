"""The reason of a failed run, on its job."""

from __future__ import annotations

from trainyard.catalog.logs.cause import Cause
from trainyard.catalog.logs.noted import WHY, note, noted


def test_what_is_noted_is_read_as_it_was() -> None:
    cause = Cause('node rank 0 ended: ValueError: "a" = {b}', "write it otherwise")
    assert noted({"metadata": {"annotations": {WHY: note(cause)}}}) == cause


def test_a_job_without_a_note_has_no_reason() -> None:
    assert noted({"metadata": {"name": "mine"}}) is None
    assert noted({"metadata": {"annotations": None}}) is None
