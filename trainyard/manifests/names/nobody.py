"""Fields that ask somebody for something whom the environment does not have: who resumes a job, who starts a
gang at once, whose queue it is in, who else runs it.

Sources: Trainer v2.1.0 and v2.3.0 (plugins/coscheduling, plugins/volcano: the controller that makes PodGroups
ends with an error for each job where their CRD is missing), training-operator v1.8.1 (common/job.go:
schedulingPolicy is read where --gang-scheduler-name is set, which the chart does not), Kueue 0.16.2 and 0.19.2
(kubeflowjob_controller.go, PriorityClass: it reads the one of schedulingPolicy where a job lacks the label of an
urgency, which all jobs of a stack in queues have; trainyard/objects/teams/queue_admission.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from trainyard.catalog.job_kinds import JOB_KINDS
from trainyard.manifests.context import ManifestContext
from trainyard.manifests.document import Path, mapping
from trainyard.manifests.names.around import Around
from trainyard.objects.queues.queues import DISPATCHER, QUEUE_LABEL, URGENCY_LABEL
from trainyard.problems import InputError, InputWarning
from trainyard.rules.pods import unread_queue

Problems = Iterator[InputError | InputWarning]
SUSPEND = ("spec suspend", "spec runPolicy suspend")
MANAGED = ("spec managedBy", "spec runPolicy managedBy")
MANAGERS = ("trainer.kubeflow.org/trainjob-controller", "kubeflow.org/training-operator")
VOLUMES = {
    **dict.fromkeys(
        ("azureDisk", "azureFile", "cinder", "gcePersistentDisk", "vsphereVolume"),
        "of another cloud",
    ),
    **dict.fromkeys(
        (
            "cephfs",
            "flocker",
            "glusterfs",
            "quobyte",
            "rbd",
            "scaleIO",
            "storageos",
            "photonPersistentDisk",
        ),
        "which Kubernetes has no more",
    ),
    **dict.fromkeys(
        ("awsElasticBlockStore", "fc", "flexVolume", "iscsi", "portworxVolume"),
        "whose driver no node has",
    ),
    "gitRepo": "which Kubernetes turns off: clone in the script",
}
"""Kind of volume that no node mounts → reason (Kubernetes 1.35, core/v1 types.go)."""
RESOURCES = ("cpu", "memory")
WHOLE = "environment.queues starts whole gangs"


def nobody_problems(contexts: Sequence[ManifestContext], around: Around) -> Problems:
    """Every field that nobody answers to."""
    for context in contexts:
        yield from _suspended(context, around)
        yield from _managed(context, around)
        yield from _pod_groups(context, around)
        yield from _scheduling_policy(context, around)
        yield from _queue(context, around)
        yield from _volumes(context, around)
        yield from _gates(context)
        yield from _metrics(context)


def _unserved(
    context: ManifestContext, around: Around, path: Path, must: str, got: str, fix: str
) -> InputError | InputWarning:
    """The error of what nobody serves; a warning in a cluster where somebody else may."""
    if around.others_may_serve:
        return context.warning(path, f"{got} must {must}, unless the cluster has it; if not, {fix}")
    return context.error(path, must, got, fix)


def _suspended(context: ManifestContext, around: Around) -> Problems:
    if around.queue or context.workload.kind not in JOB_KINDS:
        return
    for pattern in SUSPEND:
        for path in context.workload.find(pattern):
            if context.get(*path) is True:
                why = (
                    "its namespace has no queue"
                    if around.environment.queues
                    else "it has no queues"
                )
                yield context.warning(
                    path,
                    f"nobody in the environment resumes the job, as {why}: it starts no pod, and `wait`"
                    " waits in vain; delete it, or resume the job by hand (kubectl edit)",
                )


def _managed(context: ManifestContext, around: Around) -> Problems:
    """A controller that the environment does not have. Jobs of a queue with workers are written so by the
    stack."""
    for pattern in MANAGED:
        for path in context.workload.find(pattern):
            manager = str(context.get(*path))
            if manager in MANAGERS or (manager == DISPATCHER and around.queue):
                continue
            must = f"be {context.controller.split(' ')[0]}'s own: nobody else in the environment runs the job"
            yield _unserved(context, around, path, must, manager, "delete it")


def _pod_groups(context: ManifestContext, around: Around) -> Problems:
    for path in context.workload.find("spec podGroupPolicy *"):
        name = str(path[-1])
        if around.others_may_serve:
            yield context.warning(
                path,
                f"the stack does not install what {name} needs, a scheduler with PodGroups: without it the"
                " Trainer makes no pods",
            )
        else:
            yield context.error(
                path[:-1],
                "not be set: the cluster has no PodGroups, and the Trainer makes no pods without them",
                name,
                f"delete it: {WHOLE}",
            )


def _scheduling_policy(context: ManifestContext, around: Around) -> Problems:
    policy = ("spec", "runPolicy", "schedulingPolicy")
    given = mapping(context.get(*policy))
    if not given:
        return
    path = next(((*policy, key) for key in ("priorityClass", "queue") if given.get(key)), policy)
    instead = "urgency beside `manifest`" if around.queue else "priorityClassName in the pods"
    beside = ", and Kueue reads the urgency that the stack writes" if around.queue else ""
    yield context.warning(
        path,
        f"schedulingPolicy does nothing: the training-operator starts gangs by no scheduler of that kind{beside};"
        f" delete it: {WHOLE}, and {instead} says which goes first",
    )


def _queue(context: ManifestContext, around: Around) -> Problems:
    """Labels by which Kueue finds the queue and the priority of a job. Those of a team's job are written by
    the stack."""
    for path in context.workload.find(f"metadata labels {QUEUE_LABEL}"):
        queue = str(context.get(*path))
        if around.queue and queue != around.queue:
            yield context.warning(
                path, f"the job is in queue {around.queue}, which the stack writes here"
            )
        elif not around.queue and around.environment.queues:
            yield context.warning(
                path,
                f"namespace {around.namespace} has no queue {queue}: the job waits for ever, unless somebody"
                " makes the LocalQueue; delete the label, or move the job to a team",
            )
        elif not around.queue:
            yield context.warning(path, unread_queue(queue))
    for path in context.workload.find(f"metadata labels {URGENCY_LABEL}"):
        urgency = str(context.get(*path))
        if around.queue:
            text = "the stack writes here what urgency says, beside `manifest`; delete the label"
            yield context.warning(path, text)
        elif not context.get("metadata", "labels", QUEUE_LABEL):
            yield context.warning(
                path,
                f"nobody reads the priority {urgency}, as the job is in no queue; delete the label",
            )


def _volumes(context: ManifestContext, around: Around) -> Problems:
    """Kinds of volumes that nodes of the stack cannot mount."""
    for kind, reason in VOLUMES.items():
        for path in context.workload.find(f"** volumes * {kind}"):
            must = f"be a volume that nodes can mount, not one {reason}"
            fix = "write persistentVolumeClaim: {claimName: …}, and `claims` beside `manifest`"
            yield _unserved(context, around, path, must, kind, fix)


def _gates(context: ManifestContext) -> Problems:
    """Gates before scheduling. Kueue adds its own, and takes them away."""
    for path in context.workload.find("** schedulingGates * name"):
        yield context.warning(
            path,
            f"nothing of the stack takes the gate {context.get(*path)} away: its pods stay SchedulingGated"
            " until somebody does; delete it",
        )


def _metrics(context: ManifestContext) -> Problems:
    """Figures by which an elastic job grows. The stack installs nothing that serves them."""
    for path in context.workload.find("spec elasticPolicy metrics * resource name"):
        if (name := str(context.get(*path))) not in RESOURCES:
            must = "be cpu or memory: a HorizontalPodAutoscaler knows no other resource"
            yield context.error(path, must, name, "write cpu")
    for path in context.workload.find("spec elasticPolicy metrics"):
        yield context.warning(
            path,
            "nothing of the stack serves metrics.k8s.io, so the number of pods never changes: install"
            " metrics-server before `pulumi up`, or delete metrics",
        )
