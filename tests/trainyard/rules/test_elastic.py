"""Warnings about elastic jobs. Their errors: tests/support/cases/jobs.py."""

from __future__ import annotations

import pytest

from tests.support.cases.jobs import JOB, SCRIPT, pytorch_job
from tests.support.stackfile import Edit, at, planned, without

ELASTIC = at(f"{JOB}.elastic", {"min_nodes": 1, "max_nodes": 4})
SPOT = at("pools.g6e.capacity", "spot")
REPAIR = at("repair", {})
ETCD = [
    without(SCRIPT),
    at(f"{JOB}.torchrun", {"script": "/app/train.py", "rendezvous": {"etcd": "etcd:2379"}}),
]


def warnings(*edits: Edit) -> dict[str, str]:
    """Path → text, of this file's warnings."""
    found = planned(*edits).warnings
    ours = ("worker-0", "ends this elastic job", "nobody tells its ranks")
    return {
        each.path.removeprefix("environment."): each.text
        for each in found
        if any(word in each.text for word in ours)
    }


def test_an_elastic_job_without_restarts_is_named() -> None:
    said = warnings(*pytorch_job(), ELASTIC)
    assert [*said] == [f"{JOB}.pytorch_job.restarts"]
    assert "write restarts: 10" in said[f"{JOB}.pytorch_job.restarts"]


def test_an_elastic_job_on_spot_is_told_what_the_loss_of_its_first_node_costs() -> None:
    said = warnings(*pytorch_job(restarts=2), ELASTIC, SPOT, REPAIR)
    assert [*said] == [f"{JOB}.elastic"] and "pool g6e is spot" in said[f"{JOB}.elastic"]


def test_an_elastic_job_on_spot_without_repair_is_told_that_nobody_tells_its_ranks() -> None:
    said = warnings(*pytorch_job(restarts=2), ELASTIC, SPOT, *ETCD)
    assert [*said] == [f"{JOB}.pool"] and "write repair: {} under environment" in said[
        f"{JOB}.pool"
    ]


@pytest.mark.parametrize(
    "edits",
    [
        [*pytorch_job(restarts=2), ELASTIC],
        [*pytorch_job(restarts=2), ELASTIC, SPOT, REPAIR, *ETCD],
        [*pytorch_job(restarts=2), SPOT],
        [*pytorch_job()],
    ],
    ids=["on demand", "spot with etcd", "spot, not elastic", "neither"],
)
def test_other_jobs_are_not_warned(edits: list[Edit]) -> None:
    assert warnings(*edits) == {}
