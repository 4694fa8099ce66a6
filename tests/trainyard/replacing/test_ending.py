"""Jobs and schedules that an update deletes: said while they go on, and refused where a new job would save with one."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import pytest

from tests.support.stackfile import Edit, at, environment_plan, planned, reading, team_plan
from tests.trainyard.derive.test_sweep import tune
from tests.trainyard.replacing.test_new_runs import CLUSTER, JOB, _deployed, _ended
from trainyard.plan import EnvironmentPlan, TeamPlan
from trainyard.plans.jobs import SCHEDULE
from trainyard.problems import InputError
from trainyard.replacing.compared import compared
from trainyard.replacing.deployed import PROVIDER, Deployed
from trainyard.replacing.ending import (
    ending_errors,
    ending_jobs,
    ending_warnings,
    waiting_errors,
)
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


def held(was: Edit, now: Edit, **states: str) -> list[str]:
    """What is refused of an update. `states`: jobs in the cluster, with the condition with which each has ended, or
    nothing."""
    before, plan = environment_plan(was), environment_plan(now)
    deployed = deployed_with(before)

    def show(kubeconfig: str, kind: str, namespace: str | None) -> Sequence[Any]:
        return [
            {
                **job,
                "metadata": job["metadata"]
                | {"annotations": dict(before.jobs[job["metadata"]["name"]].annotations)},
            }
            for name, ended in states.items()
            for job in cluster(name.replace("_", "-"), ended=ended)(kubeconfig, kind, namespace)
        ]

    ending = ending_jobs(plan, deployed, show)
    return [str(each) for each in waiting_errors(plan, deployed, ending, show)]


AFTER_SHORT = {"after": ["short"]}
TWO = jobs(long={}, short={})


def test_a_job_that_goes_on_and_would_end_only_behind_a_chain_is_refused() -> None:
    """It was paid for until the chain had trained, and not deleted at all where a run of the chain failed."""
    [error] = held(TWO, jobs(short={}, last=AFTER_SHORT), long="", short="")
    assert error == (
        "environment.jobs.last.after: must not hold a run back while a job goes on that this update deletes: it deletes"
        " TrainJob long only when last has begun; got short. Fix: run `trainyard stop long --stack dev` first, or write"
        " its entry or value again"
    )


@pytest.mark.parametrize(
    ("now", "states"),
    [
        (jobs(short={}, last=AFTER_SHORT), {"long": "Complete", "short": ""}),
        (jobs(short={}, last=AFTER_SHORT), {"short": ""}),
        (jobs(short={}, last=AFTER_SHORT), {"long": "", "short": "Complete"}),
        (jobs(long={}, short={}, last=AFTER_SHORT), {"long": "", "short": ""}),
        (jobs(short={}, last={}), {"long": "", "short": ""}),
    ],
    ids=["it has ended", "it was stopped", "the one before is complete", "it stays", "none waits"],
)
def test_a_job_that_goes_on_and_ends_at_once_is_not_refused(
    now: Edit, states: dict[str, str]
) -> None:
    assert held(TWO, now, **states) == []


def test_a_preview_refuses_a_job_that_would_end_only_behind_a_chain() -> None:
    now = jobs(short={}, last=AFTER_SHORT)
    found = compared(
        planned(now), reading(now).lines, lambda types, other: WAS, cluster("long", "short")
    )
    assert any("not hold a run back while" in str(each) for each in found.errors)


def test_a_chain_that_would_end_with_a_failed_run_holds_the_end_of_a_job_back() -> None:
    assert held(TWO, jobs(short={}, last=AFTER_SHORT), long="", short="Failed")


def test_a_chain_that_has_begun_holds_no_end_back() -> None:
    chain = jobs(long={}, short={}, last=AFTER_SHORT)
    assert held(chain, jobs(short={}, last=AFTER_SHORT), long="", short="", last="") == []


def swept(*values: float) -> Edit:
    return tune({"lr": [*values]}, sweep={"at_most": 2})


def test_a_value_that_is_taken_away_counts_in_its_sweep_while_it_goes_on() -> None:
    """A sweep of two at once had three."""
    was, now = swept(0.001, 0.0003, 0.01), swept(0.0003, 0.01, 0.002)
    [error] = held(was, now, tune_0_001="", tune_0_0003="", tune_0_01="Complete")
    assert error.startswith("environment.jobs.tune.sweep.at_most: must not hold a run back while")
    assert "TrainJob tune-0-001 only when tune-0-002 has begun; got 2. Fix: run `trainyard" in error
    assert held(was, now, tune_0_001="", tune_0_0003="Failed", tune_0_01="Complete") == []
    assert held(was, swept(0.0003, 0.01), tune_0_001="", tune_0_0003="", tune_0_01="") == []


def test_a_sweep_that_waits_holds_the_end_of_any_job_back() -> None:
    def both(settings: dict[str, Any]) -> None:
        jobs(short={})(settings)
        settings["jobs"]["t5-large"] = settings["jobs"]["short"]
        swept(0.1, 0.2, 0.3)(settings)
        del settings["jobs"]["t5-large"]

    [error] = held(TWO, both, long="", short="")
    assert "TrainJob long only when tune-0-1 has begun" in error


def test_a_warning_says_what_the_end_of_a_job_waits_for() -> None:
    [said] = warned(jobs(short={"wait": "complete"}), cluster("long", "short"))
    assert said.endswith(
        "its checkpoints stay. The update deletes it only at its end, when it has waited for short. To end it now, run"
        " `trainyard stop long --stack dev`"
    )
    label = {"name": "nightly-x", "namespace": "ml", "labels": {SCHEDULE: "nightly"}}
    was = Deployed(resources={(CRON_JOB, "nightly"): {"metadata": label}})
    [of_schedule] = warned(jobs(short={}, last=AFTER_SHORT), cluster(), was)
    assert of_schedule.endswith(
        ". It does so only at its end, when it has waited for last, and the schedule starts runs until then. To delete"
        " it now, run `kubectl -n ml delete cronjob nightly-x`"
    )
