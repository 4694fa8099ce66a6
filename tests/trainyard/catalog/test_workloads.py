"""What a Workload of Kueue says of its job."""

from __future__ import annotations

from trainyard.catalog.workloads import evictions, job_of

OWNER = {"kind": "TrainJob", "name": "t5"}
META = {"name": "trainjob-t5-1a2b3", "namespace": "team-vision"}


def test_the_owner_of_a_workload_is_its_job() -> None:
    owned = {"metadata": META | {"ownerReferences": [OWNER]}}
    assert job_of(owned) == ("TrainJob", "team-vision", "t5")
    assert job_of({"metadata": META}) == ("", "team-vision", "")


def test_a_workload_without_a_status_was_never_evicted() -> None:
    stats = {"evictions": [{"reason": "Preempted", "count": 2}]}
    assert evictions({"metadata": META, "status": {"schedulingStats": stats}}) == stats["evictions"]
    assert not evictions({"metadata": META}) and not evictions({"metadata": META, "status": None})
