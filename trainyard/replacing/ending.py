"""Jobs and schedules that an update deletes, because the stack file does not have them any more: an entry that is
taken away or called otherwise.

`pulumi preview` and `pulumi up` ask these rules, and `trainyard check` does not: what runs, the cluster knows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from trainyard.catalog.job_kinds import (
    ENGINE_TYPES,
    KIND_OF_ENGINE_TYPE,
    SUCCEEDED,
    outcome,
    resource_of,
)
from trainyard.plan import EnvironmentPlan, TeamPlan
from trainyard.plans.jobs import SCHEDULE, JobPlan, entry_of_sweep
from trainyard.problems import At, InputError, InputWarning, few
from trainyard.replacing.deployed import Deployed, Object, Outputs, Show
from trainyard.replacing.new_runs import (
    CRON_JOB,
    directory_of,
    jobs_path,
    path_of,
    saves_with,
    starting,
)


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
    waits = _awaited(plan, deployed)
    at_the_end = f"only at its end, when it has waited for {few(waits)}" if waits else ""
    for each in ending:
        begun = each.job["metadata"]["creationTimestamp"]
        yield InputWarning(
            path=jobs_path(plan),
            text=(
                f"this update deletes {each.kind} {each.name}, which has not ended (created {begun}): the stack file"
                " has no such entry any more. What it computed since its last checkpoint is lost; its checkpoints stay"
                + (
                    f". The update deletes it {at_the_end}. To end it now, run {_stop(plan, each)}"
                    if waits
                    else ""
                )
            ),
        )
    for name in _schedules(plan, deployed):
        namespace, called = _place(deployed.resources[CRON_JOB, name])
        yield InputWarning(
            path=jobs_path(plan),
            text=f"this update deletes the schedule of {name}, and the runs that it has started"
            + (
                f". It does so {at_the_end}, and the schedule starts runs until then. To delete it now, run"
                f" `kubectl -n {namespace} delete cronjob {called}`"
                if waits
                else ""
            ),
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
                    fix=f"run {_stop(plan, each)} first, and {name} goes on from its checkpoint; or write another"
                    " directory",
                )


def waiting_errors(
    plan: EnvironmentPlan | TeamPlan, deployed: Deployed, ending: Sequence[Ending], show: Show
) -> Iterator[InputError]:
    """Jobs that go on, in an update that holds a run back before it deletes them: the engine deletes when the program
    has ended, and not at all where it ends with an error (pulumi 3.259, deployment_executor.go, performPostSteps).
    So they would be paid for while a chain trains, and beside the runs that `at_most` of their sweep allows."""
    if not ending or not (held := _held(plan, deployed, ending, show)):
        return
    name, path, got = held
    for each in ending:
        yield At(path).must(
            f"not hold a run back while a job goes on that this update deletes: it deletes {each.kind} {each.name} only"
            f" when {name} has begun",
            got=got,
            fix=f"run {_stop(plan, each)} first, or write its entry or value again",
        )


def _held(
    plan: EnvironmentPlan | TeamPlan, deployed: Deployed, ending: Sequence[Ending], show: Show
) -> tuple[str, str, str] | None:
    """The first run that waits before it begins: its name, the path of the setting that holds it, and its value."""
    starts = starting(plan, deployed)
    runs = {name: job for name, job in plan.jobs.items() if not job.schedule}
    states = _states(
        {name: job for name, job in runs.items() if name not in starts}, deployed, show
    )
    ending_of = [entry_of_sweep(each.job) for each in ending]
    going = {*starts, *(name for name, state in states.items() if not state)}
    for name in starts:
        path, job = path_of(plan, name, plan.jobs[name]), plan.jobs[name]
        if late := [each for each in job.after if states.get(each) not in SUCCEEDED]:
            return name, f"{path}.after", few(late)
        if (sweep := job.sweep) and sweep.at_most:
            beside = len(going.intersection(sweep.others)) + ending_of.count(sweep.entry)
            if sweep.others and beside >= sweep.at_most:
                return name, f"{path}.sweep.at_most", str(sweep.at_most)
    return None


def _states(jobs: Mapping[str, JobPlan], deployed: Deployed, show: Show) -> dict[str, str | None]:
    """The conditions with which jobs that are in the cluster have ended; None of those that go on."""
    named = {(job.kind, job.namespace, job.name): name for name, job in jobs.items()}
    kubeconfig = deployed.kubeconfig
    return {
        named[found]: outcome(each)
        for kind, namespace in dict.fromkeys((kind, namespace) for kind, namespace, _ in named)
        for each in (show(kubeconfig, resource_of(kind), namespace) if kubeconfig else ())
        if (found := (kind, namespace, each["metadata"]["name"])) in named
    }


def _awaited(plan: EnvironmentPlan | TeamPlan, deployed: Deployed) -> list[str]:
    """Jobs that can hold the end of the update up."""
    starts = starting(plan, deployed)
    return [
        name
        for name, job in plan.jobs.items()
        if job.wait != "none"
        or (name in starts and (job.after or job.loads or (job.sweep and job.sweep.others)))
    ]


def _stop(plan: EnvironmentPlan | TeamPlan, ending: Ending) -> str:
    """The command that ends a job now."""
    return f"`trainyard stop {ending.name} --stack {plan.identity.stack}`"


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
