"""New runs of jobs that were changed: what they ask for and the run before did not, and where they begin.

The engine shows a changed job as another digest in an annotation, because it does not compare specs:
controllers write to them.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from trainyard.catalog.job_kinds import ENGINE_TYPES, SUCCEEDED, outcome
from trainyard.plan import EnvironmentPlan, TeamPlan
from trainyard.plans.jobs import RUN, JobPlan, run_number
from trainyard.problems import At, InputError, InputWarning
from trainyard.replacing.changes import CONFIG_MAP, differences, file_changes
from trainyard.replacing.deployed import PROVIDER, Deployed, Show

CRON_JOB = "kubernetes:batch/v1:CronJob"
TYPES = frozenset({*ENGINE_TYPES.values(), PROVIDER, CRON_JOB, CONFIG_MAP})
"""Types of resources that the rules look at."""
ELSE = "its `run` or `after`, or something that its spec does not show, is another one"
"""Said of a run that differs in nothing else, and comes after none that changed."""
_GIVEN = "__inputs"
"""Output in which pulumi-kubernetes keeps what the program gave. Others have what the API server has made of
it, defaults among them."""


def run_warnings(
    plan: EnvironmentPlan | TeamPlan, deployed: Deployed, ended: Mapping[str, str]
) -> Iterator[InputWarning]:
    """Jobs of which the update ends a run, and starts another one. `ended`: what `ended_runs` found."""
    changed = [*_changed(plan, deployed)]
    others = {name for name, *_ in changed}
    for name, job, kind, was in changed:
        differs = _differs(name, job, kind, was, deployed) or counted_on(job, was)
        said = differs or otherwise(job, others)
        run = f"run {name} of its sweep" if job.sweep else "its run"
        before = ended.get(name)
        state = "is complete" if before in SUCCEEDED else "has failed"
        text = f"deletes {run}, which {state}," if before else f"ends {run}"
        yield InputWarning(
            path=path_of(plan, name, job), text=f"this update {text} and starts another one: {said}"
        )


def otherwise(job: JobPlan | None, changed: Collection[str]) -> str:
    """Words about a job that runs again with the same description. `changed`: jobs whose runs are new."""
    before = [name for name in job.after if name in changed] if job else []
    return f"it comes after {' and '.join(before)}, which changed" if before else ELSE


def _differs(name: str, job: JobPlan, kind: str, was: Mapping[str, Any], deployed: Deployed) -> str:
    """Words about what a job asks for and its run before did not; empty where nothing shows it.
    `kind` and `was`: of what is deployed."""
    if kind != job.kind:
        return f"{kind} → {job.kind}"
    files = {
        called: it.get("data") or {}
        for (of, called), it in deployed.resources.items()
        if of == CONFIG_MAP
    }
    return differences(_spec(was), job.spec, job, [*file_changes(name, job, files)])


def counted_on(job: JobPlan, was: Mapping[str, Any]) -> str:
    """Words about `run` of the entry, where it has another number; empty otherwise."""
    before, now = run_number(_run_of(was) or ""), run_number(job.run)
    return f"run: {before} → {now}" if before not in ("", now) else ""


def starting(plan: EnvironmentPlan | TeamPlan, deployed: Deployed) -> tuple[str, ...]:
    """Jobs of which the update starts a run: those that are not deployed, and those whose run it ends. Jobs whose
    schedule it begins: the time then starts the runs."""
    there, schedules = deployed.names(*ENGINE_TYPES.values()), deployed.names(CRON_JOB)
    changed = {name for name, *_ in _changed(plan, deployed)}
    return tuple(
        name
        for name, job in plan.jobs.items()
        if name not in (schedules if job.schedule else there) or name in changed
    )


def run_errors(
    plan: EnvironmentPlan | TeamPlan, deployed: Deployed, ended: Mapping[str, str]
) -> Iterator[InputError]:
    """An error for each job that changes and leaves behind what the run before it saved in a directory of its own;
    and for each that reads the checkpoint of that run, and does not say that it may, where that run is complete.
    `ended`: what `ended_runs` found."""
    yield from _left_behind(plan, deployed)
    changed = [*_changed(plan, deployed)]
    others = {name for name, *_ in changed}
    for name, job, kind, was in changed:
        is_new = _described(_run_of(was) or "") != _described(job.run)
        if ended.get(name) in SUCCEEDED and is_new and _reads_on(job, was):
            differs = _differs(name, job, kind, was, deployed)
            yield _unanswered(
                path_of(plan, name, job), job, "" if differs else otherwise(job, others)
            )


def _left_behind(plan: EnvironmentPlan | TeamPlan, deployed: Deployed) -> Iterator[InputError]:
    """Changed runs that would begin in the directory of the job, where the run before saved in one of its own below
    it (when_changed: afresh). Another number, `run`, says that this is meant."""
    for name, job, _, was in _changed(plan, deployed):
        directory = directory_of(job)
        same_number = run_number(_run_of(was) or "") == run_number(job.run)
        if job.when_changed == "afresh" or not directory or not same_number:
            continue
        if before := _own_directory(directory, was):
            back = f"write {before} to go on from there" if not job.sweep else ""
            anew = "write when_changed: afresh, or another `run`, to begin elsewhere"
            yield At(f"{path_of(plan, name, job)}.checkpoints.directory").must(
                "be where the run before saved: with when_changed: afresh it had a directory of its own, and this"
                f" run would read {directory} in place of it",
                got=directory,
                fix="; or ".join(filter(None, [back, anew])),
            )


def _own_directory(directory: str, was: Mapping[str, Any]) -> str:
    """The directory below that of the job in which a deployed run saves, if it began afresh; empty otherwise."""
    own = re.compile(rf"(?:.*/)?({re.escape(directory)}/[0-9a-f]{{12}})")
    return next((found[1] for found in map(own.fullmatch, _leaves(_spec(was))) if found), "")


def directory_of(job: JobPlan) -> str:
    """Directory of a job's checkpoints in its store; empty where it has none, or only a path in the container."""
    store, _, directory = (job.checkpoints or "").partition("/")
    return directory if store else ""


def ended_runs(plan: EnvironmentPlan | TeamPlan, deployed: Deployed, show: Show) -> dict[str, str]:
    """Changed jobs whose run has ended, with the condition that says so. The cluster knows it, and no plan does:
    `show` asks it. Empty where no cluster answers."""
    changed = {
        (kind, job.namespace, job.name): name for name, job, kind, _ in _changed(plan, deployed)
    }
    kubeconfig = deployed.kubeconfig
    if kubeconfig is None:
        return {}
    return {
        name: ended
        for kind, namespace in dict.fromkeys((kind, namespace) for kind, namespace, _ in changed)
        for job in show(kubeconfig, kind.lower(), namespace)
        if (name := changed.get((kind, namespace, job["metadata"]["name"])))
        and (ended := outcome(job))
    }


def _unanswered(path: str, job: JobPlan, why: str) -> InputError:
    """The error of a changed job whose run before is complete. `why`: why it runs again, where nothing that it asks
    for changed; empty otherwise."""
    again = f" (the job runs again: {why})" if why else ""
    return At(f"{path}.checkpoints.when_changed").must(
        f"be set, because the run before is complete: a {'new' if why else 'changed'} run that reads its checkpoint"
        f" in {job.checkpoints} can end at once, without a step{again}",
        got="nothing",
        fix=(
            "write resume if the new run has something left to do, such as more steps; or write afresh:"
            f" it then begins in a directory of its own below {job.checkpoints}, and nothing is deleted"
        ),
    )


def _reads_on(job: JobPlan, was: Mapping[str, Any]) -> bool:
    """True where the new run saves where the run before it did, and nobody has said that it may."""
    return not job.when_changed and _names_directory(job, was)


def saves_with(job: JobPlan, was: Mapping[str, Any]) -> bool:
    """True where a job saves where a deployed run does: in the same directory of the same store."""
    store = (job.checkpoints or "").partition("/")[0]
    in_store = any(text == store or text.startswith(f"{store}-") for text in _leaves(_spec(was)))
    return in_store and _names_directory(job, was)


def _names_directory(job: JobPlan, was: Mapping[str, Any]) -> bool:
    """True where a deployed run names the directory of a job's checkpoints."""
    directory = directory_of(job)
    return bool(directory) and any(
        text == directory or text.endswith(f"/{directory}") for text in _leaves(_spec(was))
    )


def _leaves(value: Any) -> Iterator[str]:
    """Texts of a spec."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _leaves(each)


def _changed(
    plan: EnvironmentPlan | TeamPlan, deployed: Deployed
) -> Iterator[tuple[str, JobPlan, str, Mapping[str, Any]]]:
    """Each job whose run the update ends: name, plan, and kind and outputs of what is deployed."""
    for name, job in plan.jobs.items():
        for kind, of_the_engine in ENGINE_TYPES.items():
            was = deployed.resources.get((of_the_engine, name))
            if was is not None and _run_of(was) not in (None, job.run):
                yield name, job, kind, was


def path_of(plan: EnvironmentPlan | TeamPlan, name: str, job: JobPlan) -> str:
    """Path of the entry of a job in the stack file; of a run of a sweep, that of the sweep's."""
    return f"{jobs_path(plan)}.{job.sweep.entry if job.sweep else name}"


def jobs_path(plan: EnvironmentPlan | TeamPlan) -> str:
    """Path of the jobs in the stack file."""
    return "environment.jobs" if isinstance(plan, EnvironmentPlan) else "team.jobs"


def _spec(resource: Mapping[str, Any]) -> Any:
    return (resource.get(_GIVEN) or resource).get("spec")


def _run_of(resource: Mapping[str, Any]) -> str | None:
    annotations = (resource.get("metadata") or {}).get("annotations") or {}
    return annotations.get(RUN)


def _described(run: str) -> str:
    """The description's part of a run's identity, without its number."""
    return run.rpartition("-")[0]


def resumes(job: JobPlan) -> str:
    """Words about the checkpoint that a run resumes from; empty where the job names none."""
    if job.when_changed == "afresh":
        return (
            f". It keeps its checkpoints in {job.checkpoints}, which only this description of the job has,"
            " and begins afresh unless a run of the same description left one there"
        )
    if job.resumes_from is None:
        if not directory_of(job):
            return ""
        return (
            f". It keeps its checkpoints in {job.checkpoints}: a changed job with the same `run` goes on"
            " from there"
        )
    return (
        f". It resumes from the checkpoint in {job.resumes_from}, if a run before it left one, and ends at"
        " once where that run has finished. To begin afresh, write another checkpoints.directory, such as"
        f" {job.other_directory}, or checkpoints.when_changed: afresh"
    )
