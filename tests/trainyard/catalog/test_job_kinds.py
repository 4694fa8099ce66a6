"""How a job ended is read in one place from its conditions."""

from __future__ import annotations

from typing import Any

import pytest

from trainyard.catalog.job_kinds import outcome, true_conditions


def _job(*conditions: tuple[str, str]) -> dict[str, Any]:
    return {"status": {"conditions": [{"type": name, "status": true} for name, true in conditions]}}


@pytest.mark.parametrize(
    ("job", "end"),
    [
        ({}, None),
        ({"status": None}, None),
        ({"status": {"conditions": None}}, None),
        (_job(("Created", "True"), ("Running", "True")), None),
        (_job(("Complete", "False")), None),
        (_job(("Failed", "False"), ("Complete", "True")), "Complete"),
        (_job(("Created", "True"), ("Complete", "True")), "Complete"),
        (_job(("Succeeded", "True"), ("Running", "False")), "Succeeded"),
        (_job(("Failed", "True"), ("Suspended", "True")), "Failed"),
    ],
)
def test_the_outcome_of_a_job_is_its_final_condition_that_is_true(
    job: dict[str, Any], end: str | None
) -> None:
    assert outcome(job) == end


def test_conditions_that_are_not_true_are_left_out() -> None:
    job = _job(("Created", "True"), ("Running", "False"), ("Restarting", "Unknown"))
    assert [condition["type"] for condition in true_conditions(job)] == ["Created"]
