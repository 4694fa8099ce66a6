"""Queues do not go from under jobs that they hold, and a preview names those that they stop when they come."""

from __future__ import annotations

from typing import Any

from tests.support.stackfile import Edit, at, environment_plan, planned, reading
from trainyard.catalog.job_kinds import resource_of
from trainyard.catalog.workloads import WORKLOADS
from trainyard.objects.queues.queues import KUEUE
from trainyard.plans.controllers import RELEASE
from trainyard.replacing.compared import compared
from trainyard.replacing.deployed import PROVIDER, Deployed, Show
from trainyard.replacing.jobs.queues import queue_errors, queue_warnings

KUBECONFIG = {"kubeconfig": "ours", "clusterIdentifier": "arn"}
TEAM = {"deployer": "arn:aws:iam::123456789012:role/vision"}
ALONE = (at("jobs", {}), at("teams", {"vision": TEAM}))
QUEUES = (*ALONE, at("queues", {}))
WITHOUT = Deployed(resources={(PROVIDER, "cluster"): KUBECONFIG})
WITH = Deployed(resources={**WITHOUT.resources, (RELEASE, KUEUE): {}})


def _workload(job: str, *conditions: str, kind: str = "TrainJob") -> Any:
    shown = [{"type": each, "status": "True"} for each in conditions]
    owner = {"kind": kind, "name": job}
    metadata = {"name": f"w-{job}", "namespace": "team-vision", "ownerReferences": [owner]}
    return {"metadata": metadata, "status": {"conditions": shown}}


def _shows(asked: str, *found: Any) -> Show:
    def show(kubeconfig: str, kind: str, namespace: str | None) -> list[Any]:
        assert (kubeconfig, namespace) == ("ours", None)
        return [*found] if kind == asked else []

    return show


def _refused(*workloads: Any, before: Deployed = WITH, edits: tuple[Edit, ...] = ALONE) -> Any:
    show = _shows(WORKLOADS, *workloads)
    return [str(each) for each in queue_errors(environment_plan(*edits), before, show)]


def test_queues_stay_while_a_job_runs_or_waits_in_them() -> None:
    runs, waits = _workload("long", "Admitted"), _workload("next", kind="PyTorchJob")
    assert _refused(runs, waits, _workload("done", "Admitted", "Finished")) == [
        "environment.queues: must stay while jobs of teams run or wait in them: Kueue keeps the queue of one that runs,"
        " and without Kueue nobody takes its finalizer off the Workload of one that waits, so `pulumi up` fails after"
        " many minutes and leaves half of Kueue; got no queues beside PyTorchJob team-vision/next, TrainJob"
        " team-vision/long. Fix: write queues again, and delete it when they have ended; kubectl --namespace <its"
        " namespace> delete <kind> <name> ends one"
    ]


def test_queues_go_when_every_job_has_ended() -> None:
    assert _refused(_workload("done", "Finished")) == []
    assert _refused() == []


def test_nobody_is_asked_where_queues_stay_or_never_were() -> None:
    runs = _workload("long")
    assert _refused(runs, edits=QUEUES) == []
    assert _refused(runs, before=WITHOUT) == []
    assert _refused(runs, before=Deployed(resources={(RELEASE, KUEUE): {}})) == []


def test_a_preview_refuses_to_take_queues_from_under_a_job() -> None:
    show = _shows(WORKLOADS, _workload("long"))
    found = compared(planned(*ALONE), reading(*ALONE).lines, lambda *_: WITH, show)
    assert [each.path for each in found.errors] == ["environment.queues"]


def _job(name: str, *conditions: str, namespace: str = "team-vision", **spec: Any) -> Any:
    shown = [{"type": each, "status": "True"} for each in conditions]
    metadata = {"name": name, "namespace": namespace}
    return {"metadata": metadata, "spec": spec, "status": {"conditions": shown}}


def _warned(
    *jobs: Any, before: Deployed = WITHOUT, edits: tuple[Edit, ...] = QUEUES, kind: str = "TrainJob"
) -> list[str]:
    show = _shows(resource_of(kind), *jobs)
    return [str(each) for each in queue_warnings(environment_plan(*edits), before, show)]


def test_queues_that_come_stop_each_job_of_a_team_that_runs() -> None:
    waits, ended = _job("waits", suspend=True), _job("done", "Complete")
    elsewhere = _job("own", namespace="training")
    assert _warned(_job("long"), waits, ended, elsewhere) == [
        "environment.queues: this update stops TrainJob team-vision/long: with queues Kueue stops each job of a team"
        " that it has not started, and what the job computed since its last checkpoint is lost. It starts again in its"
        " queue when it has the label kueue.x-k8s.io/queue-name with the name of its team, which the next `pulumi up`"
        " of the team's stack gives its jobs. To lose nothing, let it end before"
    ]
    waits = _job("waits", runPolicy={"suspend": True})
    [said] = _warned(_job("old"), waits, kind="PyTorchJob")
    assert "stops PyTorchJob team-vision/old: " in said


def test_a_trainjob_of_a_later_trainer_that_queues_stop_must_be_made_again() -> None:
    edits = (*QUEUES, at("trainer.version", "2.3.0"))
    [said] = _warned(_job("long"), edits=edits)
    assert (
        "a TrainJob never does: hand it in again after the update, by trainyard again <job>" in said
    )
    [said] = _warned(_job("old"), edits=edits, kind="PyTorchJob")
    assert "a TrainJob" not in said


def test_nothing_is_said_of_jobs_where_queues_were_before_or_do_not_come() -> None:
    assert _warned(_job("long"), before=WITH) == []
    assert _warned(_job("long"), edits=ALONE) == []
    assert _warned(_job("long"), before=Deployed()) == []
    assert _warned(_job("done", "Failed")) == []


def test_a_preview_names_the_jobs_that_new_queues_stop() -> None:
    show = _shows(resource_of("TrainJob"), _job("long"))
    found = compared(planned(*QUEUES), reading(*QUEUES).lines, lambda *_: WITHOUT, show)
    assert any("stops TrainJob team-vision/long" in str(each) for each in found.warnings)
