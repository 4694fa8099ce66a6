"""Controllers that an update moves to another release, and what that does to jobs that are there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trainyard.catalog.job_kinds import outcome, resource_of
from trainyard.catalog.versions import TRAINER_RELEASES
from trainyard.catalog.workloads import WORKLOADS, evictions, job_of
from trainyard.objects.queues.queues import QUEUE_LABEL
from trainyard.plan import EnvironmentPlan
from trainyard.plans.controllers import RELEASE
from trainyard.problems import At, InputError, InputWarning, few
from trainyard.replacing.deployed import SHOWN, Deployed, Object, Show

TRAINER, SETTING = "kubeflow-trainer", "environment.trainer.version"
TYPES = frozenset({RELEASE})
"""Types of resources that the rules look at."""
WAITS = "waits"
STOPPED = "its queue stopped it once"
RUNS = "its queue would stop it"
COMPARED = ("containers", "initContainers")
"""Parts of a pod that Kueue compares with what it admitted, whenever a TrainJob changes (0.16.2,
pkg/util/equality/podset.go). A CRD without the field changes every TrainJob."""


def moving_errors(plan: EnvironmentPlan, deployed: Deployed, show: Show) -> Iterator[InputError]:
    """TrainJobs that a Trainer with another field for their pods would start without their stores, or that their
    queue would stop, now or later, for good."""
    releases, kubeconfig = _releases(plan, deployed), deployed.kubeconfig
    if releases is None or kubeconfig is None:
        return
    was, to = releases
    jobs = show(kubeconfig, resource_of("TrainJob"), None)
    workloads = show(kubeconfig, WORKLOADS, None) if jobs and plan.queues else ()
    field = TRAINER_RELEASES[was].pod_changes
    lost = list(losing(jobs, workloads, field))
    if lost:
        yield At(SETTING).must(
            f"stay {was} until these TrainJobs have ended or are deleted: Trainer {to} does not know their field"
            f" {field}, so a job that waits would start without its stores, and Kueue would stop one of a queue that"
            " mounts something, or that it stopped once, for good",
            got=f"{to} beside {few(lost, SHOWN)}",
            fix=(
                "let them end; or delete each with kubectl --namespace <its namespace> delete trainjob <its name>,"
                " and hand it in again after the update: trainyard again <job>, then pulumi up of its stack"
            ),
        )
    yield from _unreadable(jobs, was, to)


def _unreadable(jobs: Sequence[Object], was: str, to: str) -> Iterator[InputError]:
    """TrainJobs with a word where a later Trainer reads a number: it then reads no TrainJob at all."""
    named = sorted(_name(job) for job in jobs if ranks_are_a_string(job))
    if named:
        yield At(SETTING).must(
            f"stay {was} while TrainJobs set numProcPerNode to a string, even if they have ended: Trainer {to} then"
            " reads no TrainJob, and never becomes ready",
            got=f"{to} beside {', '.join(named)}",
            fix="delete each with kubectl --namespace <its namespace> delete trainjob <its name>",
        )


def moving_warnings(plan: EnvironmentPlan, deployed: Deployed) -> Iterator[InputWarning]:
    """A Trainer whose TrainJobs have another field for their pods, where queues start and stop TrainJobs."""
    releases = _releases(plan, deployed)
    if releases is None or plan.queues is None:
        return
    was, to = releases
    yield At(SETTING).warning(
        f"this update moves the Trainer from {was} to {to}, whose TrainJobs have no"
        f" {TRAINER_RELEASES[was].pod_changes}. Kueue stops each TrainJob of a queue that mounts something, at once"
        " and for good, and one that it stops later does not start again. Before `pulumi up` let TrainJobs of queues"
        " end; `trainyard runs` names them"
    )


def losing(jobs: Sequence[Object], workloads: Sequence[Object], field: str) -> Iterator[str]:
    """TrainJobs of a cluster that have not ended and do not outlive the loss of `field`, with the reason of each.
    `workloads`: those of Kueue."""
    stopped = {job_of(each) for each in workloads if evictions(each)}
    for job in sorted(jobs, key=_name):
        if outcome(job):
            continue
        if ("TrainJob", job["metadata"]["namespace"], job["metadata"]["name"]) in stopped:
            yield f"{_name(job)} ({STOPPED})"
        elif job["spec"].get("suspend") and job["spec"].get(field):
            yield f"{_name(job)} ({WAITS})"
        elif _is_stopped(job, field):
            yield f"{_name(job)} ({RUNS})"


def _is_stopped(job: Object, field: str) -> bool:
    """True for a TrainJob of a queue that Kueue takes for another one as soon as it lacks the field."""
    changes = job["spec"].get(field) or ()
    changed = {part for each in changes for part in each.get("spec") or ()}
    return QUEUE_LABEL in (job["metadata"].get("labels") or {}) and not changed.isdisjoint(COMPARED)


def ranks_are_a_string(job: Object) -> bool:
    """True for a TrainJob that a Trainer of 2.2 or later cannot read (docs/decisions/0002)."""
    return isinstance(job["spec"].get("trainer", {}).get("numProcPerNode"), str)


def _releases(plan: EnvironmentPlan, deployed: Deployed) -> tuple[str, str] | None:
    """The Trainer's release of before and the one that the update moves it to, where TrainJobs of the one have another
    field for their pods than those of the other."""
    was, to = deployed.output(RELEASE, TRAINER, "version"), plan.trainer.version
    before = TRAINER_RELEASES.get(was)
    if before is None or before.pod_changes == TRAINER_RELEASES[to].pod_changes:
        return None
    return was, to


def _name(job: Object) -> str:
    return f"{job['metadata']['namespace']}/{job['metadata']['name']}"
