"""Causes that keep the Trainer of this cluster from an upgrade (docs/decisions/0002), and TrainJobs that an upgrade
has left behind."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from itertools import groupby

from trainyard.catalog.job_kinds import JOB_KINDS
from trainyard.catalog.logs.symptoms import GRACE_SECONDS
from trainyard.catalog.versions import TRAINER_RELEASES
from trainyard.catalog.workloads import job_of
from trainyard.objects.queues.queues import DISPATCHER, QUEUE_LABEL
from trainyard.operations.reach.served import KIND
from trainyard.operations.reach.snapshot import Job, Object, Snapshot, condition_of
from trainyard.operations.status.finding import Finding
from trainyard.operations.status.job_causes import again_command
from trainyard.replacing.moving import ranks_are_a_string

RELEASE = "kubeflow-trainer"
"""Part of the name of the controller's Deployment."""
PATCHES = "runtimePatches"
"""Field of a TrainJob with what others change of its pods, from Trainer 2.2 on."""
KUEUE = "kueue.x-k8s.io/manager"
"""Manager of Kueue's patch (kueue 0.19.2, trainjob_controller.go). Its webhook adds the patch to a TrainJob that is
created; without it Kueue can neither start the TrainJob nor give back what it had."""


def unreadable(snapshot: Snapshot) -> Iterator[Finding]:
    """TrainJobs that a Trainer of 2.2 or later cannot read: a finding for each namespace."""
    unreadable_jobs = [
        job["metadata"] for job in snapshot.of("trainjobs") if ranks_are_a_string(job)
    ]
    by_namespace = groupby(sorted(unreadable_jobs, key=_place), key=lambda meta: meta["namespace"])
    for namespace, jobs in by_namespace:
        names = [meta["name"] for meta in jobs]
        yield Finding(
            what=f"TrainJobs of {namespace} set numProcPerNode to a string: {', '.join(names)}",
            why=(
                "Trainer 2.1 accepts a string; Trainer 2.2 and later then cannot read any TrainJob,"
                " even if these have finished: it never becomes ready, and its Release fails after"
                " ten minutes"
            ),
            do=(
                f"before you raise trainer.version: kubectl -n {namespace} delete {KIND}"
                f" {' '.join(names)}"
            ),
        )


def left_behind(snapshot: Snapshot) -> Iterator[Finding]:
    """TrainJobs of queues from before the upgrade to Trainer 2.2 or later, which Kueue cannot start."""
    for job in jobs_left_behind(snapshot):
        yield Finding(
            what=(
                f"{job} does not start again: it was made for an older Trainer than the one that runs now,"
                " and Kueue cannot start it"
            ),
            why=(
                f"Kueue starts a TrainJob by a patch of its own in spec.{PATCHES}. A TrainJob gets the patch"
                " when it is created, and the Trainer 2.1 has no such field"
            ),
            do=(
                f"{again_command(snapshot, job)}, then pulumi up, which sends the TrainJob once more."
                f" One that no stack file has: kubectl -n {job.namespace} delete trainjob {job.name}, and send it"
                " again"
            ),
        )


def jobs_left_behind(snapshot: Snapshot) -> list[Job]:
    """Suspended TrainJobs of a queue without Kueue's patch that a newer Trainer has, or of which Kueue has deleted the
    Workload or has admitted it in vain. A Trainer 2.1 knows no patch, and starts what is admitted."""
    if "workloads" in snapshot.unseen | snapshot.unserved:
        return []
    workloads = {job_of(each): each for each in snapshot.of("workloads")}
    return [
        job
        for job in snapshot.jobs()
        if _waits_without_patch(job)
        and snapshot.age(job.body) >= GRACE_SECONDS
        and (
            _is_newer(snapshot)
            or _in_vain(snapshot, workloads.get((job.kind, job.namespace, job.name)))
        )
    ]


def _waits_without_patch(job: Job) -> bool:
    spec, labels = job.body["spec"], job.body["metadata"].get("labels") or {}
    managers = [each.get("manager") for each in spec.get(PATCHES) or []]
    of_queue = QUEUE_LABEL in labels and spec.get("managedBy") != DISPATCHER
    return (
        JOB_KINDS[job.kind].has_runtime
        and of_queue
        and job.suspended
        and not job.ended
        and KUEUE not in managers
    )


def _in_vain(snapshot: Snapshot, workload: Object | None) -> bool:
    """True where a suspended TrainJob has no Workload, or one that was admitted a while ago."""
    if workload is None:
        return True
    admitted = condition_of(workload, "Admitted")
    since = admitted.get("lastTransitionTime")
    if admitted.get("status") != "True" or since is None:
        return False
    return (snapshot.taken_at - datetime.fromisoformat(since)).total_seconds() >= GRACE_SECONDS


def _is_newer(snapshot: Snapshot) -> bool:
    """True where the Trainer that runs has runtimePatches; False where nobody can see it."""
    tags = {each.image_tag for each in TRAINER_RELEASES.values() if each.pod_changes == PATCHES}
    images = [
        container["image"]
        for deployment in snapshot.of("deployments")
        if RELEASE in deployment["metadata"]["name"]
        for container in deployment.get("spec", {})
        .get("template", {})
        .get("spec", {})
        .get("containers", [])
    ]
    return any(image.partition("@")[0].rpartition(":")[2] in tags for image in images)


def stuck(snapshot: Snapshot) -> bool:
    """True where a Trainer does not become ready. The previous Trainer may still run."""
    return any(
        deployment.get("status", {}).get("unavailableReplicas")
        for deployment in snapshot.of("deployments")
        if RELEASE in deployment["metadata"]["name"]
    )


def _place(meta: Object) -> tuple[str, str]:
    return meta["namespace"], meta["name"]
