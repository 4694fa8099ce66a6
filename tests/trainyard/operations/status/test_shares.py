"""A gang of which a quota holds back a part."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.trainyard.operations.finished import pod, train_job
from trainyard.operations.reach.snapshot import Snapshot
from trainyard.operations.status.shares import exceeded

REFUSED = (
    'Error creating: pods "t5-node-0-1-x7k2p" is forbidden: exceeded quota: gpus, requested:'
    " requests.nvidia.com/gpu=8, used: requests.nvidia.com/gpu=12, limited:"
    " requests.nvidia.com/gpu=16"
)
"""As the API server 1.35 writes it into an event of a Job."""


def _snapshot(*pods: Any, ended: float | None = None, about: str = "t5-node-0") -> Snapshot:
    event = {
        "metadata": {"namespace": "training"},
        "involvedObject": {"kind": "Job", "name": about},
        "reason": "FailedCreate",
        "message": REFUSED,
    }
    jobs = [train_job(ended=ended)]
    return Snapshot(objects={"trainjobs": jobs, "pods": [*pods], "events": [event]})


def test_half_a_gang_beyond_the_share_of_its_namespace_is_told_with_the_numbers() -> None:
    [finding] = exceeded(_snapshot(pod(0)))
    assert str(finding) == (
        "TrainJob t5 has 1 of 2 pods: the next one would exceed the share of namespace training\n"
        "    requests.nvidia.com/gpu: 12 of 16 are requested, and the pod requests 8. The pods that"
        " run wait for the others, and their nodes are paid for\n"
        "    → wait until another job of the namespace ends, end this one (trainyard stop t5), or raise"
        " max_gpus of the team"
    )


@pytest.mark.parametrize(
    ("entries", "command"),
    [
        ({}, "trainyard stop training/t5 --stack team-vision"),
        (
            {"big": {"kind": "TrainJob", "namespace": "training", "name": "t5"}},
            "trainyard stop big --stack team-vision",
        ),
    ],
    ids=["sent by hand", "an entry"],
)
def test_the_command_that_ends_the_job_means_this_job_of_this_stack(
    entries: Any, command: str
) -> None:
    """Without --stack it means dev, where an entry of that name can be another job."""
    [finding] = exceeded(replace(_snapshot(pod(0)), stack="team-vision", entries=entries))
    assert f"({command}), or" in finding.do


@pytest.mark.parametrize(
    "snapshot",
    [_snapshot(pod(0), pod(1)), _snapshot(pod(0), ended=70), _snapshot(pod(0), about="t5x")],
    ids=["has all pods since", "has ended", "another job"],
)
def test_a_share_that_holds_back_nothing_is_not_told(snapshot: Snapshot) -> None:
    assert [*exceeded(snapshot)] == []


def test_the_share_of_a_job_whose_name_begins_like_this_one_is_not_told() -> None:
    snapshot = _snapshot(pod(0), about="t5-big-node-0")
    snapshot.objects["trainjobs"].append(train_job("t5-big", ended=None))
    assert [*exceeded(snapshot)] == []
