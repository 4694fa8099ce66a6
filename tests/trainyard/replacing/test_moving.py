"""An update that moves the Trainer says what that does to TrainJobs in queues."""

from __future__ import annotations

from typing import Any

from tests.support.recording import Graph
from tests.support.stackfile import Edit, at, environment_plan
from trainyard.objects.queues.queues import QUEUE_LABEL
from trainyard.plans.controllers import RELEASE
from trainyard.replacing.deployed import PROVIDER, Deployed
from trainyard.replacing.moving import TRAINER, moving_errors, moving_warnings

NEWER, KUEUE = at("trainer.version", "2.3.0"), at("queues", {})
TEAM = {"deployer": "arn:aws:iam::123456789012:role/vision"}
QUEUES = (at("jobs", {}), at("teams", {"vision": TEAM}), KUEUE)


SPEC = {"suspend": True, "podTemplateOverrides": [{"targetJobs": [{"name": "node"}]}]}
RUNS = SPEC | {"suspend": False}
KUBECONFIG = {"kubeconfig": "ours", "clusterIdentifier": "arn"}


def _before(dev: Graph) -> Deployed:
    release = {(RELEASE, TRAINER): dev[f"Release {TRAINER}"].inputs}
    return Deployed(resources=release | {(PROVIDER, "cluster"): KUBECONFIG})


def _job(name: str, spec: Any, *conditions: str) -> Any:
    shown = [{"type": each, "status": "True"} for each in conditions]
    metadata = {"name": name, "namespace": "team-vision"}
    return {"metadata": metadata, "spec": spec, "status": {"conditions": shown}}


def _workload(job: str, evictions: list[Any] | None = None, kind: str = "TrainJob") -> Any:
    owner = {"kind": kind, "name": job}
    metadata = {"name": f"w-{job}", "namespace": "team-vision", "ownerReferences": [owner]}
    status = {"schedulingStats": {"evictions": evictions}} if evictions else {}
    return {"metadata": metadata, "status": status}


def _refused(dev: Graph, *jobs: Any, edits: tuple[Edit, ...] = QUEUES) -> list[str]:
    once = [{"reason": "Preempted", "count": 1}]
    of_another_kind = _workload("calm", once, "PyTorchJob")
    workloads = [_workload("calm"), of_another_kind, _workload("again", once)]
    there = {"trainjobs.trainer.kubeflow.org": [*jobs], "workloads.kueue.x-k8s.io": workloads}

    def show(kubeconfig: str, kind: str, namespace: str | None) -> list[Any]:
        assert (kubeconfig, namespace) == ("ours", None)
        return there[kind]

    return [str(one) for one in moving_errors(environment_plan(*edits, NEWER), _before(dev), show)]


def test_a_trainer_does_not_move_while_jobs_wait_or_were_stopped_by_their_queue(dev: Graph) -> None:
    jobs = (_job("waits", SPEC), _job("again", RUNS), _job("calm", RUNS))
    [error] = _refused(dev, *jobs)
    assert error.startswith("environment.trainer.version: must stay 2.1.0 until these TrainJobs")
    assert (
        "got 2.3.0 beside team-vision/again (its queue stopped it once), team-vision/waits ("
        in error
    )
    assert "calm" not in error and "trainyard again" in error


def test_a_trainer_does_not_move_under_a_job_of_a_queue_that_mounts_something(dev: Graph) -> None:
    """The typed entry writes mounts into each TrainJob. Without a queue nobody compares."""
    pod = {"containers": [{"name": "node", "volumeMounts": []}]}
    spec = RUNS | {"podTemplateOverrides": [{"targetJobs": [{"name": "node"}], "spec": pod}]}
    queued = _job("long", spec)
    queued["metadata"]["labels"] = {QUEUE_LABEL: "vision"}
    [error] = _refused(dev, queued, _job("calm", spec))
    assert "got 2.3.0 beside team-vision/long (its queue would stop it)." in error
    assert not _refused(dev, _job("long", spec, "Complete"))
    bare = _job("long", RUNS | {"podTemplateOverrides": [{"spec": {"nodeSelector": {}}}]})
    bare["metadata"]["labels"] = queued["metadata"]["labels"]
    assert not _refused(dev, bare)


def test_jobs_that_ended_or_have_nothing_to_lose_do_not_hold_the_trainer(dev: Graph) -> None:
    assert not _refused(dev, _job("waits", SPEC, "Complete"), _job("again", SPEC, "Failed"))
    assert not _refused(dev, _job("plain", {"suspend": True}), _job("calm", RUNS))


def test_a_suspended_job_holds_the_trainer_without_queues_too(dev: Graph) -> None:
    [error] = _refused(dev, _job("waits", SPEC), _job("again", RUNS), edits=())
    assert "beside team-vision/waits (waits)." in error


def test_a_job_that_a_later_trainer_cannot_read_holds_it_even_when_it_has_ended(dev: Graph) -> None:
    spec = {"trainer": {"numProcPerNode": "auto"}}
    [error] = _refused(dev, _job("word", spec, "Complete"), _job("number", {"trainer": {}}))
    assert "numProcPerNode" in error and "got 2.3.0 beside team-vision/word." in error


def test_nobody_is_asked_where_the_trainer_stays_or_is_new(dev: Graph) -> None:
    def show(*_: Any) -> list[Any]:
        raise AssertionError

    assert not [*moving_errors(environment_plan(*QUEUES), _before(dev), show)]
    assert not [*moving_errors(environment_plan(*QUEUES, NEWER), Deployed(), show)]


def test_a_trainer_that_moves_under_queues_is_said_before_the_update(dev: Graph) -> None:
    before = Deployed(resources={(RELEASE, TRAINER): dev[f"Release {TRAINER}"].inputs})
    [warning] = moving_warnings(environment_plan(*QUEUES, NEWER), before)
    assert warning.path == "environment.trainer.version"
    assert (
        "from 2.1.0 to 2.3.0" in warning.text
        and "Before `pulumi up` let TrainJobs of queues end" in warning.text
    )


def test_a_trainer_that_stays_or_is_new_or_has_no_queues_is_not_said(dev: Graph) -> None:
    before = Deployed(resources={(RELEASE, TRAINER): dev[f"Release {TRAINER}"].inputs})
    assert [*moving_warnings(environment_plan(*QUEUES), before)] == []
    assert [*moving_warnings(environment_plan(*QUEUES, NEWER), Deployed())] == []
    assert [*moving_warnings(environment_plan(NEWER), before)] == []
