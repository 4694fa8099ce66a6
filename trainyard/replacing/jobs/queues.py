"""Queues that an update takes away while Kueue holds jobs of teams, or brings while jobs of teams run.

A ClusterQueue keeps its finalizer while a Workload has quota in it (Kueue 0.16.2 and 0.19.2,
pkg/controller/core/clusterqueue_controller.go, ClusterQueueEmpty), and pulumi-kubernetes waits 10 minutes for its end
(provider/pkg/await/await.go, Deletion). Where jobs only wait, the chart goes with its CRDs: they are templates of it
without a policy that keeps them (charts of 0.16.9 and 0.19.2, templates/crd). Each Workload has a finalizer, which
Kueue alone takes off, when the job has ended or is deleted (pkg/controller/jobframework/interface.go of 0.16.2,
utils.go of 0.19.2, and reconciler.go).

Kueue stops each job of a team that runs and has no Workload, also one without the label of a queue
(manageJobsWithoutQueueName; reconciler.go of both, ensureOneWorkload). 0.19.2 starts no TrainJob that is older than its
webhook (pkg/controller/jobs/trainjob/trainjob_controller.go, kueue runtime patch not found). Tried in
tests/controllers/test_late_kueue.py.
"""

from __future__ import annotations

from collections.abc import Iterator

from trainyard.catalog.job_kinds import JOB_KINDS, is_suspended, true_conditions
from trainyard.catalog.versions import TRAINER_RELEASES
from trainyard.catalog.workloads import FINISHED, WORKLOADS, job_of
from trainyard.objects.queues.queues import KUEUE, QUEUE_LABEL
from trainyard.plan import EnvironmentPlan
from trainyard.plans.controllers import RELEASE
from trainyard.problems import At, InputError, InputWarning, few
from trainyard.replacing.deployed import SHOWN, Deployed, Object, Show, ends_one, going_of_others

TYPES = frozenset({RELEASE})
"""Types of resources that the rule looks at."""
PATH = "environment.queues"
AGAIN = "; a TrainJob never does: hand it in again after the update, by trainyard again <job> and `pulumi up`"


def queue_errors(plan: EnvironmentPlan, deployed: Deployed, show: Show) -> Iterator[InputError]:
    """Queues that go while a job of theirs runs or waits. `show`: what is in the cluster."""
    kubeconfig, there = deployed.kubeconfig, (RELEASE, KUEUE) in deployed.resources
    if kubeconfig is None or plan.queues or not there:
        return
    held = [_name(each) for each in show(kubeconfig, WORKLOADS, None) if not _has_ended(each)]
    if held:
        yield At(PATH).must(
            "stay while jobs of teams run or wait in them: Kueue keeps the queue of one that runs, and without Kueue"
            " nobody takes its finalizer off the Workload of one that waits, so `pulumi up` fails after many minutes"
            " and leaves half of Kueue",
            got=f"no queues beside {few(sorted(held), SHOWN)}",
            fix=f"write queues again, and delete it when they have ended; {ends_one()}",
        )


def queue_warnings(plan: EnvironmentPlan, deployed: Deployed, show: Show) -> Iterator[InputWarning]:
    """Jobs of teams that run when queues come. `show`: what is in the cluster."""
    if plan.queues is None or (RELEASE, KUEUE) in deployed.resources:
        return
    spaces = {team.workspace.namespace for team in plan.teams.values()}
    stopped = [
        (name, kind)
        for name, kind, job in going_of_others(plan, deployed, show)
        if job["metadata"]["namespace"] in spaces and not is_suspended(job)
    ]
    if stopped:
        made_again = any(needs_another(kind, plan.trainer.version) for _, kind in stopped)
        yield At(PATH).warning(
            f"this update stops {few(sorted(name for name, _ in stopped), SHOWN)}: with queues Kueue stops each job of"
            " a team that it has not started, and what the job computed since its last checkpoint is lost. It starts"
            f" again in its queue when it has the label {QUEUE_LABEL} with the name of its team, which the next `pulumi"
            f" up` of the team's stack gives its jobs{AGAIN if made_again else ''}. To lose nothing, let it end before"
        )


def needs_another(kind: str, trainer: str) -> bool:
    """True for a kind of job of which Kueue starts only those that came through its webhook, with a release of the
    Trainer."""
    marked = TRAINER_RELEASES[trainer].pod_changes == "runtimePatches"
    return marked and JOB_KINDS[kind].has_runtime


def _has_ended(workload: Object) -> bool:
    """True for the Workload of a job that has ended: it has neither quota nor the finalizer."""
    return any(each["type"] == FINISHED for each in true_conditions(workload))


def _name(workload: Object) -> str:
    kind, namespace, job = job_of(workload)
    return f"{kind} {namespace}/{job}"
