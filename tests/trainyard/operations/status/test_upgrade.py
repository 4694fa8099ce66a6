"""What would keep a newer Trainer from coming up is named before it is tried, and where it has
been."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from tests.support.tool import run_word
from trainyard.objects.queues.queues import QUEUE_LABEL
from trainyard.operations.reach.snapshot import Snapshot
from trainyard.operations.reach.updates import History
from trainyard.operations.status import status
from trainyard.operations.status.diagnosis import diagnose
from trainyard.operations.status.upgrade import jobs_left_behind, unreadable

COMPLETE = {"conditions": [{"type": "Complete", "status": "True"}]}


def _job(space: str, name: str, **trainer: Any) -> dict[str, Any]:
    return {
        "kind": "TrainJob",
        "metadata": {"namespace": space, "name": name},
        "status": COMPLETE,
        "spec": {"runtimeRef": {"name": "torch"}, "trainer": trainer},
    }


def _snapshot(*jobs: dict[str, Any], unavailable: int = 0) -> Snapshot:
    found = {
        "trainjobs": [*jobs],
        "deployments": [
            {
                "metadata": {
                    "name": "kubeflow-trainer-controller-manager",
                    "namespace": "kubeflow-system",
                },
                "status": {"availableReplicas": 1, "unavailableReplicas": unavailable},
            }
        ],
    }
    return Snapshot(objects=found)


WORDS = (
    _job("b", "z", numProcPerNode="auto"),
    _job("a", "x", numProcPerNode="gpu"),
    _job("a", "n", numProcPerNode=8),
    _job("b", "y", numProcPerNode="4"),
    _job("b", "none"),
)


def test_finished_jobs_that_it_could_not_read_are_named_with_the_command_that_removes_them():
    texts = [str(finding) for finding in unreadable(_snapshot(*WORDS))]
    assert [line.rpartition("kubectl ")[2] for line in texts] == [
        "-n a delete trainjobs.trainer.kubeflow.org x",
        "-n b delete trainjobs.trainer.kubeflow.org y z",
    ]
    assert "TrainJobs of b set numProcPerNode to a string: y, z" in texts[1]


@pytest.mark.parametrize("unavailable, wrong", [(0, False), (1, True)])
def test_they_are_wrong_only_once_the_newer_trainer_does_not_come_up(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    unavailable: int,
    wrong: bool,
):
    snapshot = _snapshot(*WORDS, unavailable=unavailable)
    assert bool(diagnose(snapshot)) == wrong
    monkeypatch.setattr(status, "deployment", lambda stack: {"deployment": {}})
    monkeypatch.setattr(status, "history_of", lambda stack: History(entries=()))
    monkeypatch.setattr(status, "look", lambda *_, **__: (snapshot, [], []))
    assert run_word("status", ["dev"]) == int(wrong)
    output = capsys.readouterr().out
    assert output.count("numProcPerNode to a string: x") == 1
    assert ("Not a problem until you upgrade the Trainer" in output) != wrong


def test_a_cluster_without_such_jobs_hears_nothing():
    assert [*unreadable(_snapshot(*WORDS[2:3]))] == []
    assert diagnose(_snapshot(*WORDS[2:3], unavailable=1)) == []


def _left(
    *conditions: str, patch: str = "", created: str = "11:55:00", **more: Any
) -> dict[str, Any]:
    """A TrainJob in the queue of team nlp that the Trainer 2.1 had; its Workload has `conditions`."""
    job = _job("team-nlp", "borrower")
    job["metadata"] |= {
        "creationTimestamp": f"2026-11-22T{created}Z",
        "labels": {QUEUE_LABEL: "nlp"},
    }
    patches = {"runtimePatches": [{"manager": patch}]} if patch else {}
    job |= {"status": {}, "spec": job["spec"] | {"suspend": True} | patches | more}
    workload = {
        "metadata": {
            "name": "trainjob-borrower-1",
            "namespace": "team-nlp",
            "creationTimestamp": "2026-11-22T11:00:00Z",
            "ownerReferences": [{"kind": "TrainJob", "name": "borrower"}],
        },
        "spec": {"queueName": "nlp"},
        "status": {
            "conditions": [
                {"type": each, "status": "True", "lastTransitionTime": "2026-11-22T11:30:00Z"}
                for each in conditions
            ]
        },
    }
    return {"trainjobs": [job], "workloads": [workload] if conditions else []}


def _said_of(objects: dict[str, Any], tag: str = "", **more: Any) -> list[str]:
    image = {"spec": {"template": {"spec": {"containers": [{"image": f"reg:5000/trainer:{tag}"}]}}}}
    [trainer] = _snapshot().of("deployments")
    event = {
        "reason": "TrainJobResourcesCreationFailed",
        "metadata": {"namespace": "team-nlp"},
        "involvedObject": {"name": "borrower"},
        "message": 'JobSet.jobset.x-k8s.io "borrower" is invalid: metadata: Invalid value: "null"',
    }
    seen = objects | {"deployments": [trainer | image] if tag else [], "events": [event]}
    now = datetime(2026, 11, 22, 12, tzinfo=UTC)
    found = diagnose(Snapshot(objects=seen, taken_at=now, **more))
    return [str(each) for each in found if "borrower" in each.what]


LEFT = (
    "TrainJob borrower does not start again: it was made for an older Trainer than the one that runs"
    " now, and Kueue cannot start it\n"
    "    Kueue starts a TrainJob by a patch of its own in spec.runtimePatches. A TrainJob gets the patch"
    " when it is created, and the Trainer 2.1 has no such field\n"
    "    → trainyard again borrower, with --stack and the stack that has it, then pulumi up, which sends the"
    " TrainJob once more. One that no stack file has: kubectl -n team-nlp delete trainjob borrower, and send it again"
)


@pytest.mark.parametrize("conditions", [(), ("QuotaReserved", "Admitted")])
def test_a_trainjob_that_kueue_left_behind_says_how_it_goes_on(conditions: tuple[str, ...]) -> None:
    """Kueue deleted its Workload ("Deleted not matching Workload"), or has admitted it and cannot start it
    (both seen, the second in tests/controllers/test_kueue.py). The advice was a pod-security label."""
    assert _said_of(_left(*conditions)) == [LEFT]


def test_a_trainjob_that_waits_is_left_behind_as_soon_as_the_newer_trainer_runs() -> None:
    waits = _left("Evicted")
    assert _said_of(waits, "v2.3.0") == [LEFT]
    assert all("waits in the queue" in said for said in _said_of(waits, "v2.1.0"))


@pytest.mark.parametrize(
    "objects",
    [
        _left("QuotaReserved", "Admitted", patch="kueue.x-k8s.io/manager"),
        _left("QuotaReserved", "Admitted", suspend=False),
        _left(managedBy="kueue.x-k8s.io/multikueue"),
        _left(created="12:00:00"),
    ],
    ids=["has the patch", "runs", "runs on a worker", "is new"],
)
def test_a_trainjob_that_kueue_can_start_is_not_left_behind(objects: dict[str, Any]) -> None:
    assert LEFT not in _said_of(objects)


def test_a_pytorchjob_needs_no_patch() -> None:
    objects = _left("Evicted")
    [job] = objects.pop("trainjobs")
    spec = {"runPolicy": {"suspend": True}, "pytorchReplicaSpecs": {}}
    old = Snapshot(objects={"pytorchjobs": [job | {"kind": "PyTorchJob", "spec": spec}]})
    assert jobs_left_behind(old) == [] and old.jobs()[0].suspended


def test_where_workloads_cannot_be_seen_nothing_is_said_of_them() -> None:
    assert LEFT not in _said_of(_left(), unseen=frozenset({"workloads"}))
    assert LEFT not in _said_of(_left(), unserved=frozenset({"workloads"}))


def test_a_suspended_job_is_to_have_no_pods() -> None:
    """The Trainer 2.3 writes such an event about each TrainJob that Kueue stops."""
    stopped = _left("Evicted", patch="kueue.x-k8s.io/manager")
    assert not [said for said in _said_of(stopped) if "pod-security label" in said]
