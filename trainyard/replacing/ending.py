"""Jobs and schedules that an update deletes, because the stack file does not have them any more: an entry that is
taken away or called otherwise.

`pulumi preview` and `pulumi up` ask these rules, and `trainyard check` does not: what runs, the cluster knows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from trainyard.catalog.job_kinds import ENGINE_TYPES, KIND_OF_ENGINE_TYPE, outcome, resource_of
from trainyard.plan import EnvironmentPlan, TeamPlan
from trainyard.plans.jobs import SCHEDULE, JobPlan
from trainyard.problems import At, InputError, InputWarning
from trainyard.replacing.deployed import Deployed, Object, Outputs, Show
from trainyard.replacing.new_runs import CRON_JOB, directory_of, jobs_path, saves_with


@dataclass(frozen=True, kw_only=True)
class Ending:
    """A job of the stack that goes on in the cluster, and that the update deletes."""

    name: str
    """Its entry, as it was."""
    kind: str
    was: Outputs
    """Outputs of the resource."""
    job: Object
    """The job in the cluster."""


def ending_warnings(
    plan: EnvironmentPlan | TeamPlan, deployed: Deployed, ending: Iterable[Ending]
) -> Iterator[InputWarning]:
    """Jobs that go on, and schedules, which the update deletes. `ending`: the jobs."""
    for each in ending:
        begun = each.job["metadata"]["creationTimestamp"]
        yield InputWarning(
            path=jobs_path(plan),
            text=(
                f"this update deletes {each.kind} {each.name}, which has not ended (created {begun}): the stack file"
                " has no such entry any more. What it computed since its last checkpoint is lost; its checkpoints stay"
            ),
        )
    for name in _schedules(plan, deployed):
        yield InputWarning(
            path=jobs_path(plan),
            text=f"this update deletes the schedule of {name}, and the runs that it has started",
        )


def ending_errors(
    plan: EnvironmentPlan | TeamPlan, deployed: Deployed, ending: Iterable[Ending]
) -> Iterator[InputError]:
    """New jobs that would save where a job does that goes on until the update deletes it: the engine creates before
    it deletes, so both would run at once. `ending`: the jobs that go on."""
    there = deployed.names(*ENGINE_TYPES.values())
    new = {name: job for name, job in plan.jobs.items() if name not in there}
    for each in ending:
        for name, job in new.items():
            if saves_with(job, each.was):
                yield At(f"{jobs_path(plan)}.{name}.checkpoints.directory").must(
                    f"be none in which another job saves: {each.kind} {each.name} goes on, and this update deletes it"
                    f" only after {name} has begun",
                    got=directory_of(job),
                    fix=f"run `trainyard stop {each.name} --stack {plan.identity.stack}` first, and {name} goes on"
                    " from its checkpoint; or write another directory",
                )


def ending_jobs(plan: EnvironmentPlan | TeamPlan, deployed: Deployed, show: Show) -> list[Ending]:
    """The jobs of the stack that go on, and that the plan does not have. None where no cluster answers."""
    kubeconfig = deployed.kubeconfig
    if kubeconfig is None:
        return []
    gone = {
        (KIND_OF_ENGINE_TYPE[of], *_place(was)): (name, was)
        for (of, name), was in deployed.resources.items()
        if of in KIND_OF_ENGINE_TYPE and _has_no_run(plan.jobs.get(name))
    }
    found = list[Ending]()
    for kind, namespace in dict.fromkeys((kind, namespace) for kind, namespace, _ in gone):
        for job in show(kubeconfig, resource_of(kind), namespace):
            was = gone.get((kind, namespace, job["metadata"]["name"]))
            if was and not outcome(job):
                found.append(Ending(name=was[0], kind=kind, was=was[1], job=job))
    return found


def _place(was: Outputs) -> tuple[str | None, str | None]:
    """Namespace and name of a deployed job."""
    meta: Any = was.get("metadata") or {}
    return meta.get("namespace"), meta.get("name")


def _has_no_run(job: JobPlan | None) -> bool:
    """True where the stack file has no such job, or one with a schedule, which makes its runs."""
    return job is None or job.schedule is not None


def _schedules(plan: EnvironmentPlan | TeamPlan, deployed: Deployed) -> list[str]:
    """Entries whose schedule the update deletes."""
    return [
        name
        for (of, name), was in deployed.resources.items()
        if of == CRON_JOB
        and SCHEDULE in ((was.get("metadata") or {}).get("labels") or {})
        and (name not in plan.jobs or plan.jobs[name].schedule is None)
    ]
