"""A host at which the nodes of an entry meet is a pod of its job, or is warned about."""

from __future__ import annotations

import pytest

from tests.support.cases.jobs import JOB, SCRIPT, pytorch_job
from tests.support.stackfile import Edit, at, planned

MEETS = "torchrun --nnodes=2 --nproc_per_node=8 --rdzv_backend=c10d --rdzv_endpoint={}:29400 t.py"
OWN = "t5-large-node-0-0.t5-large"


def said(host: str, *edits: Edit) -> list[str]:
    found = planned(*edits, at(SCRIPT, MEETS.format(host)))
    return [each.text for each in found.warnings if "no pod of the job" in each.text]


def test_a_pod_of_the_other_controller_is_no_pod_of_an_entry() -> None:
    [warning] = said("t5-large-master-0")
    assert warning.startswith("the nodes meet at t5-large-master-0, which is no pod of the job")
    assert warning.endswith("leave it out: torchrun reads PET_MASTER_ADDR and PET_MASTER_PORT")
    [warning] = said(OWN, *pytorch_job())
    assert warning.endswith("or meet at t5-large-master-0")
    elastic = at(f"{JOB}.elastic", {"min_nodes": 1, "max_nodes": 2})
    [warning] = said("t5-large-master-0", *pytorch_job(), elastic)
    assert warning.endswith("or meet at t5-large-worker-0")


@pytest.mark.parametrize("host", [OWN, f"{OWN}.training.svc", "${PET_MASTER_ADDR}", "localhost"])
def test_a_pod_of_its_own_is_none_to_warn_about(host: str) -> None:
    assert said(host) == []


def test_pods_of_a_pytorch_job_are_its_own() -> None:
    assert said("t5-large-master-0", *pytorch_job()) == []
    assert said("other-master-0", at(f"{JOB}.nodes", 1)) == []
