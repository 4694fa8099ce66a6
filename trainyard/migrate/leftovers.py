"""Fields of a file that are neither in the entry of its job nor named otherwise: each of them with
its line. `trainyard migrate` prints them, so nothing is lost silently."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

from trainyard.manifests.document import REPLICAS, Container, Path, Pod, Workload, look, mapping
from trainyard.migrate.left_out import NOT_SHOWN
from trainyard.migrate.printed import Printed
from trainyard.migrate.training import Training
from trainyard.settings.reading.secrets import HIDDEN

IN_ENTRY = (
    *("apiVersion", "kind", "metadata name", "metadata namespace"),
    *("spec runtimeRef name", "spec nprocPerNode", "spec pytorchReplicaSpecs * replicas"),
    *(f"spec trainer {name}" for name in ("image", "numNodes", "numProcPerNode")),
    *("spec trainer command **", "spec trainer args **", "spec trainer command"),
    *(
        f"spec runPolicy {name}"
        for name in (
            *("cleanPodPolicy", "backoffLimit", "ttlSecondsAfterFinished"),
            "activeDeadlineSeconds",
        )
    ),
    *(f"spec elasticPolicy {name}" for name in ("minReplicas", "maxReplicas", "maxRestarts")),
    *("spec podTemplateOverrides * targetJobs **", "spec runtimePatches * manager"),
    "** containers # name",
    *("** containers # command **", "** containers # args **", "** containers # command"),
    *("** containers # volumeMounts * name", "** volumes * name"),
    *("spec mlPolicy numNodes", "spec mlPolicy torch numProcPerNode"),
)
"""Fields that become part of an entry, of `pytorch_job`, or of a sentence of their own, or that only
link other fields. #: the number of the container that becomes the entry."""
COMPARED = (
    "metadata labels *",
    *("** env * value", "** env * valueFrom ** name", "** env * valueFrom ** key"),
    *("** env * name", "** imagePullSecrets * name", "** containers # image"),
    *("** containers # volumeMounts * mountPath", "** volumes * emptyDir"),
    *("** volumes * persistentVolumeClaim claimName", "** volumes * hostPath path"),
    *("** volumes * configMap name", "** volumes * configMap items * key"),
)
"""Fields that are in an entry only where their value is printed."""

USUAL = {
    ("** volumes * emptyDir medium", "medium"): "Memory",
    ("** volumes * emptyDir sizeLimit", "medium"): "Memory",
    ("spec runtimeRef kind", "kind"): "ClusterTrainingRuntime",
    ("spec runtimeRef apiGroup", "apiGroup"): "trainer.kubeflow.org",
}
"""(Field, a field beside it) → value of the latter with which the former is in the entry."""
TRAINING_JOBS = {"node", "launcher"}
"""Replicated jobs whose pods become the entry."""


def left_over(
    job: Workload,
    trains: Training,
    others: Sequence[Workload],
    named: Collection[str],
    said: Printed,
) -> list[str]:
    """A line for each field of a job that its entry does not have. `trains`: what becomes the entry.
    `others`: objects of its files. `named`: fields that have a sentence. `said`: what is printed of
    the job."""
    sentences = [
        f"{job.where(*path)}: {_short(value)}"
        for path, value in _not_in_entry(job, trains.container, named, said)
        if not _is_other_replica(path, trains.pod)
    ]
    sentences += _differences(job, trains.pod, named)
    sentences += [
        f"{job.where(*pod.path)}: for the pods of {', '.join(other_jobs)}, and the entry has none"
        for pod in job.pods
        if (other_jobs := sorted({*pod.jobs} - TRAINING_JOBS))
    ]
    if runtime := trains.runtime:
        sentences += [
            f"{runtime.where(*path)}: {_short(value)}: of the runtime;"
            " environment.trainer.own_runtimes describes runtimes"
            for path, value in _not_in_entry(
                runtime, trains.in_runtime or trains.container, (), said
            )
        ]
    beside = [other for other in others if not (other is job or mapping(other.get(*REPLICAS)))]
    return sentences + [
        f"{other.kind or 'object'} {other.name} [{other.file}:{other.at('kind').line}]:"
        " no part of an entry; create it with kubectl where the stack has no such object"
        for other in beside
        if other.kind != "TrainingRuntime"
        and not other.get("spec", "runtimeRef")
        and not _is_mounted(other, job, others)
    ]


def _not_in_entry(
    workload: Workload, container: Container, named: Collection[str], said: Printed
) -> Iterator[tuple[Path, Any]]:
    """(path, value) of fields; what is not in the entry as a whole comes as a whole."""
    number = container.path[-1] if isinstance(container.path[-1], int) else 0

    def find(patterns: Iterable[str]) -> Iterator[Path]:
        for pattern in patterns:
            yield from workload.find(pattern.replace("#", str(number)))

    covered = {*find(IN_ENTRY), *(path for path in find(COMPARED) if said.has(workload, path))}
    covered |= {
        path
        for (pattern, sibling), usual in USUAL.items()
        for path in workload.find(pattern)
        if workload.get(*path[:-1], sibling) == usual
        and (path[-2:-1] == ("runtimeRef",) or said.has(workload, path))
    }
    covered |= {
        path
        for path in workload.find("** replicatedJobs * name")
        if workload.get(*path) in TRAINING_JOBS
    }
    for path in _missing(workload.body, (), covered, named):
        yield path, workload.get(*path)


def _missing(
    value: Any, path: Path, covered: Collection[Path], named: Collection[str]
) -> list[Path]:
    if (path and path[-1] in named) or value is None:
        return []
    inside = dict(enumerate(value)) if isinstance(value, list) else value
    if not inside or not isinstance(inside, dict):
        return [] if path in covered else [path]
    below = {
        (*path, step): _missing(inside[step], (*path, step), covered, named) for step in inside
    }
    is_whole = all(found == [step] for step, found in below.items())
    return [path] if is_whole and len(path) > 1 else list(chain.from_iterable(below.values()))


def _is_other_replica(path: Path, trains: Pod) -> bool:
    """True where a path leads into another replica than the one that becomes the entry."""
    depth = len(REPLICAS) + 1
    in_template = path[: len(REPLICAS)] == REPLICAS and path[depth : depth + 1] == ("template",)
    return in_template and path[:depth] != trains.path[:depth]


def _leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every value that has no values inside it."""
    if isinstance(value, list):
        value = dict(enumerate(value)) or value
    if value and isinstance(value, dict):
        for step, each in value.items():
            yield from _leaves(each, (*path, step))
    elif value is not None:
        yield path, value


def _differences(job: Workload, trains: Pod, named: Collection[str]) -> Iterator[str]:
    """Differences of another replica's pods from those that become the entry: the entry makes all
    alike. Devices, CPU and memory count although resources have a sentence."""
    ignored = {*named} - {"resources"}
    for pod in job.pods:
        if pod.path == trains.path or pod.path[: len(REPLICAS)] != REPLICAS:
            continue
        ours, theirs = (dict(_leaves(look(job.body, *each.path[:-1]))) for each in (trains, pod))
        for path in {**ours, **theirs}:
            if ours.get(path) != theirs.get(path) and not ignored & {*map(str, path)}:
                yield (
                    f"{job.where(*pod.path[:-1], *path)}: {_short(theirs.get(path))} in"
                    f" {pod.role}, {_short(ours.get(path))} in {trains.role}: the pods of an entry"
                    f" are all like {trains.role}"
                )


def _is_mounted(config_map: Workload, job: Workload, others: Sequence[Workload]) -> bool:
    """True where a volume of the job or its runtime is the ConfigMap."""
    return any(
        workload.get(*path) == config_map.name
        for workload in (job, *others)
        for path in workload.find("** volumes * configMap name")
    )


def _short(value: Any) -> str:
    if HIDDEN in str(value):
        return NOT_SHOWN
    return "nothing" if value is None else " ".join(str(value).split())[:60]
