"""Memory that a job leaves to what mounts its stores."""

from __future__ import annotations

from typing import Any

from tests.support.stackfile import Edit, at, planned

JOB = "jobs.t5-large"
SETS = at("storage.sets", {"s3": {"bucket": "my-sets"}})
MOUNTED = at(f"{JOB}.storage.sets", {"path": "/sets"})


def warnings(*edits: Edit) -> list[str]:
    found = planned(SETS, *edits).warnings
    return [str(one) for one in found if "Transport endpoint" in one.text]


def memory(gib: int) -> Any:
    return at(f"{JOB}.memory_gib", gib)


def test_a_request_that_leaves_a_mount_of_s3_too_little_is_a_warning() -> None:
    [warning] = warnings(MOUNTED, memory(1400))
    assert warning.startswith(f"environment.{JOB}.memory_gib: it leaves ")
    assert "of a g6e.48xlarge" in warning and "take 16 GiB under load" in warning


def test_the_share_by_default_and_a_job_without_the_store_have_none() -> None:
    assert warnings(MOUNTED) == []
    assert warnings(memory(1400)) == []
    assert warnings(MOUNTED, memory(1000)) == []
