"""Jobs and schedules that an update deletes: said while they go on, and refused where a new job would save with one."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import pytest

from tests.support.stackfile import Edit, at, environment_plan, planned, reading, team_plan
from tests.trainyard.replacing.test_new_runs import CLUSTER, JOB, _deployed, _ended
from trainyard.plan import EnvironmentPlan, TeamPlan
from trainyard.plans.jobs import SCHEDULE
from trainyard.problems import InputError
from trainyard.replacing.compared import compared
from trainyard.replacing.deployed import PROVIDER, Deployed
from trainyard.replacing.ending import ending_errors, ending_jobs, ending_warnings
from trainyard.replacing.new_runs import CRON_JOB

BEGAN = "2026-11-29T11:34:00Z"


def jobs(**entries: Any) -> Edit:
    """Entries like one another, each with settings and a directory of its own."""
    return at(
        "jobs",
        {
            name: copy.deepcopy(JOB) | {"checkpoints": saving(name)} | more
            for name, more in entries.items()
        },
    )


def saving(directory: str, **more: str) -> dict[str, str]:
    """Settings of checkpoints."""
    return {"store": "scratch", "directory": directory, **more}


def deployed_with(plan: EnvironmentPlan | TeamPlan) -> Deployed:
    """What the last update left, with the names that the jobs have in the cluster."""
    found: dict[tuple[str, str], Any] = dict(_deployed(plan).resources)
    for (_, name), each in found.items():
        each["metadata"] |= {"name": name, "namespace": plan.jobs[name].namespace}
    return Deployed(resources={**found, (PROVIDER, "cluster"): CLUSTER})


def cluster(*names: str, ended: str = "") -> Any:
    """A cluster with these jobs. `ended`: the condition with which all of them have ended."""

    def show(kubeconfig: str, kind: str, namespace: str | None) -> Sequence[Any]:
        assert kubeconfig == "ours" and namespace
        if kind != "trainjobs.trainer.kubeflow.org":
            return ()
        made = [_ended(name, *filter(None, [ended])) for name in names]
        return [
            {**each, "metadata": each["metadata"] | {"creationTimestamp": BEGAN}} for each in made
        ]

    return show


WAS = deployed_with(environment_plan(jobs(long={}, short={})))


def warned(now: Edit, show: Any, was: Deployed = WAS) -> list[str]:
    plan = environment_plan(now)
    return [str(each) for each in ending_warnings(plan, was, ending_jobs(plan, was, show))]


def test_an_entry_that_is_taken_away_while_its_job_goes_on_is_said() -> None:
    [said] = warned(jobs(short={}), cluster("long", "short"))
    assert said == (
        "environment.jobs: this update deletes TrainJob long, which has not ended (created 2026-11-29T11:34:00Z): the"
        " stack file has no such entry any more. What it computed since its last checkpoint is lost; its checkpoints"
        " stay"
    )


@pytest.mark.parametrize(
    ("now", "show"),
    [
        (jobs(long={}, short={}), cluster("long", "short")),
        (jobs(short={}), cluster("long", "short", ended="Failed")),
        (jobs(short={}), cluster("short")),
    ],
    ids=["it stays", "it has ended", "it was stopped"],
)
def test_nothing_is_said_of_a_job_that_stays_or_does_not_run(now: Edit, show: Any) -> None:
    assert warned(now, show) == []
    assert warned(now, show, Deployed()) == [], "the first update"


def test_a_schedule_that_is_taken_away_is_said() -> None:
    label = {"metadata": {"name": "nightly", "labels": {SCHEDULE: "nightly"}}}
    was = Deployed(resources={(CRON_JOB, "nightly"): label, (CRON_JOB, "of-ours"): {}})
    [said] = warned(jobs(short={}), cluster(), was)
    assert "this update deletes the schedule of nightly" in said
    times = {"cron": "0 3 * * *", "time_zone": "Asia/Seoul"}
    stays = jobs(nightly={"schedule": times, "checkpoints": saving("n", when_changed="resume")})
    assert warned(stays, cluster(), was) == []


LIKE_LONG = {"checkpoints": saving("long")}


def refused(now: Edit, show: Any) -> list[InputError]:
    plan = environment_plan(now)
    return [*ending_errors(plan, WAS, ending_jobs(plan, WAS, show))]


def test_an_entry_that_is_called_otherwise_while_its_job_goes_on_is_refused() -> None:
    """The engine creates before it deletes: two runs wrote into one directory."""
    [error] = refused(jobs(short={}, longer=LIKE_LONG), cluster("long"))
    assert error.path == "environment.jobs.longer.checkpoints.directory"
    assert "must be none in which another job saves: TrainJob long goes on" in str(error)
    assert "Fix: run `trainyard stop long --stack dev` first" in str(error)


@pytest.mark.parametrize(
    ("now", "show"),
    [
        (jobs(short={}), cluster("long")),
        (jobs(short={}, longer=LIKE_LONG), cluster("long", ended="Complete")),
        (jobs(short={}, longer=LIKE_LONG), cluster()),
        (
            jobs(short={}, longer={}),
            cluster("long"),
        ),
        (jobs(long={}, short={}, longer={}), cluster("long", "short")),
    ],
    ids=["no new one", "it has ended", "it was stopped", "another directory", "it stays"],
)
def test_a_new_job_that_saves_with_none_that_goes_is_not_refused(now: Edit, show: Any) -> None:
    assert refused(now, show) == []


def test_a_team_that_takes_its_last_job_away_is_told_so() -> None:
    plan = team_plan()
    was, [name] = deployed_with(plan), [*plan.jobs]
    nothing = at("jobs", {})
    found = compared(
        planned(nothing, stack="team-vision"),
        reading(nothing, stack="team-vision").lines,
        lambda types, other: was,
        cluster(name),
    )
    assert any(f"deletes TrainJob {name}" in str(each) for each in found.warnings)
