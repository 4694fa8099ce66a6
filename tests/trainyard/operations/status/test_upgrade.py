"""What would keep a newer Trainer from coming up is named before it is tried, and where it has
been."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.tool import run_word
from trainyard.operations.reach.snapshot import Snapshot
from trainyard.operations.reach.updates import History
from trainyard.operations.status import status
from trainyard.operations.status.diagnosis import diagnose
from trainyard.operations.status.upgrade import unreadable

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
    monkeypatch.setattr(status, "look", lambda *_: (snapshot, []))
    assert run_word("status", ["dev"]) == int(wrong)
    output = capsys.readouterr().out
    assert output.count("numProcPerNode to a string: x") == 1
    assert ("Not a problem until you upgrade the Trainer" in output) != wrong


def test_a_cluster_without_such_jobs_hears_nothing():
    assert [*unreadable(_snapshot(*WORDS[2:3]))] == []
    assert diagnose(_snapshot(*WORDS[2:3], unavailable=1)) == []
