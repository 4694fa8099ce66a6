"""Fields of a TrainJob that do not survive a queue, because Kueue writes the whole object with types of its own,
and what a team cannot bring into one. Zero values that mean nothing are left out instead:
trainyard/catalog/kueue_types.py."""

from __future__ import annotations

from collections.abc import Iterator

from trainyard.catalog.job_kinds import ENTRY_KINDS, JOB_KINDS, MORE_KINDS
from trainyard.catalog.kueue_types import unknown_fields
from trainyard.derive.queues import gang_minutes
from trainyard.manifests.context import ManifestContext
from trainyard.manifests.document import TRAINER, mapping
from trainyard.objects.teams.queue_admission import CLEANED
from trainyard.problems import InputError, InputWarning
from trainyard.settings.environment import EnvironmentConfig

CLEAN_PODS = ("spec", "runPolicy", "cleanPodPolicy")
"""Without it, or with None, the operator leaves all pods as they are (training-operator 1.8.1,
pytorch_defaults.go)."""
CLEARED = ("command", "args")
"""Fields of the trainer whose empty list takes away what the runtime has (trainer v2.1.0 and v2.3.0,
plugins/jobset/builder.go: `args != nil`)."""


def queue_field_errors(
    context: ManifestContext, environment: EnvironmentConfig, release: str
) -> Iterator[InputError]:
    """Every field that Kueue would drop, and whose loss is another job or none. `release`: of the
    Trainer."""
    kind = JOB_KINDS.get(context.workload.kind)
    if environment.queues is None or kind is None or not kind.has_runtime:
        return
    for path in unknown_fields(mapping(context.get("spec")), release):
        yield context.error(
            ("spec", *path),
            f"not be set in {path[0]} of a job in a queue: Kueue drops it",
            context.get("spec", *path),
            f"set {path[-1]} in the pods of a TrainingRuntime, and delete it here",
        )
    for field in CLEARED:
        if context.get(*TRAINER, field) == [] and _of_runtime(context, field):
            yield context.error(
                (*TRAINER, field),
                f"not be an empty list in a queue: Kueue drops it, and pods get the runtime's {field}",
                "[]",
                f"take {field} out of the runtime, or write the whole command here",
            )


def _of_runtime(context: ManifestContext, field: str) -> bool:
    return any(each.body.get(field) for pod in context.runtime_pods for each in pod.containers)


def team_problems(
    context: ManifestContext, namespace: str, environment: EnvironmentConfig
) -> Iterator[InputError | InputWarning]:
    """A kind that no team has a right to, and no queue counts; pods that outlive their job in a queue, or that a queue
    does not wait for."""
    if namespace == environment.namespace:
        return
    if context.workload.kind in MORE_KINDS:
        yield context.error(
            ("kind",),
            f"be {' or '.join(ENTRY_KINDS)} in a team, which has no right to other kinds",
            context.workload.kind,
            "write the job into environment.jobs of the environment's stack file",
        )
        return
    kind = JOB_KINDS.get(context.workload.kind)
    cleans = context.get(*CLEAN_PODS)
    if environment.queues is not None and kind and kind.replicas and cleans in (None, "None"):
        yield context.error(
            CLEAN_PODS,
            f"be {' or '.join(CLEANED)} in a team with a queue, which gives the GPUs of a job that has ended to"
            " others: pods that go on keep them",
            cleans or "",
            "write Running",
        )
    if environment.queues is not None:
        yield from _slow_to_run(context, gang_minutes(environment))


def _slow_to_run(context: ManifestContext, minutes: int) -> Iterator[InputWarning]:
    """Containers before the others. A pod is not ready, and a PyTorchJob not Running, while one of them runs
    (Kubernetes, pod lifecycle; Kueue 0.16.9 and 0.19.2, PodsReady of trainjob_controller.go and
    kubeflowjob_controller.go)."""
    pods = [pod for pod in context.workload.pods if pod.role != "override"]
    for container in (each for pod in pods for each in pod.init_containers):
        if container.body.get("restartPolicy") != "Always":
            yield context.warning(
                container.path,
                f"a queue takes the nodes back from a job whose pods do not all run after {minutes} minutes, and then"
                " this container begins again: with more work than that it never ends. Do long work, such as a copy"
                " of data, in the script",
            )
