"""What is left of a Capacity Block when a job would begin, for entries and files alike."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from trainyard.rules.blocks import TAIL, hours_errors
from trainyard.settings.job import AnyJob, JobConfig, ManifestConfig
from trainyard.settings.pools import PoolConfig, ReservationConfig

STARTS = datetime(2098, 12, 1, 11, 30, tzinfo=UTC)
ENDS = STARTS + timedelta(hours=48)


def _said(job: AnyJob, now: datetime) -> list[str]:
    block = ReservationConfig(id="cr-0123456789abcdef0", instances=2, starts=STARTS, ends=ENDS)
    pool = PoolConfig(
        instance_types=("p5.48xlarge",), max_nodes=2, capacity="block", reservation=block
    )
    return [str(error) for error in hours_errors("environment.jobs", {"j": job}, {"h": pool}, now)]


def _entry(hours: float) -> JobConfig:
    return JobConfig(nodes=2, pool="h", image="train:1", expected_hours=hours)


def test_before_a_block_begins_all_of_it_counts_but_its_tail() -> None:
    before = STARTS - timedelta(days=30)
    assert _said(_entry(47), before) == []
    [text] = _said(_entry(48), before)
    assert "must be at most the 47.3 h of cr-0123456789abcdef0" in text


@pytest.mark.parametrize("from_file", [False, True])
def test_of_a_block_that_has_begun_only_what_is_left_counts(from_file: bool) -> None:
    def job(hours: float) -> AnyJob:
        return (
            ManifestConfig(manifest="job.yaml", pool="h", expected_hours=hours)
            if from_file
            else _entry(hours)
        )

    now = ENDS - timedelta(hours=10) - TAIL
    assert _said(job(10), now) == []
    [text] = _said(job(11), now)
    assert text.startswith(
        "environment.jobs.j.expected_hours: must be at most the 10.0 h left of cr-0123456789abcdef0:"
    )


def test_a_block_that_is_over_has_an_error_of_its_own() -> None:
    assert _said(_entry(48), ENDS) == []
