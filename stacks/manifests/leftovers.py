"""What of a file is neither in the entry of its job nor named otherwise: every such field, with its
line. `make migrate` prints it, so nothing is lost silently."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import chain
from typing import Any

from stacks.manifests.document import REPLICAS, Container, Path, Pod, Workload, look, mapping

IN_ENTRY = (
    *("apiVersion", "kind", "metadata name", "metadata namespace", "metadata labels *"),
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
    *("spec elasticPolicy minReplicas", "spec elasticPolicy maxReplicas"),
    *("spec podTemplateOverrides * targetJobs **", "spec runtimePatches * manager"),
    *("** replicatedJobs * name", "** containers # name", "** containers # image"),
    *("** containers # command **", "** containers # args **", "** containers # command"),
    *("** env * name", "** env * value", "** env * valueFrom secretKeyRef name"),
    *("** env * valueFrom secretKeyRef key", "** imagePullSecrets * name"),
    *("** containers # volumeMounts * name", "** containers # volumeMounts * mountPath"),
    *("** volumes * name", "** volumes * persistentVolumeClaim claimName"),
    *("spec mlPolicy numNodes", "spec mlPolicy torch numProcPerNode"),
    *("** volumes * emptyDir", "** volumes * hostPath path"),
    *("** volumes * configMap name", "** volumes * configMap items * key"),
)
"""Fields that become part of an entry, of `pytorch_job`, or of a sentence of their own. #: the number
of the container that becomes the entry."""

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
    trains: Pod,
    container: Container,
    others: Sequence[Workload],
    named: Collection[str],
) -> list[str]:
    """A line for each field of a job that its entry does not have. `trains`, `container`: the pod
    and its container that become the entry. `others`: objects of its files. `named`: fields that have
    a sentence."""
    sentences = [
        f"{job.where(*path)}: {_short(value)}"
        for path, value in _not_in_entry(job, container, named)
        if not _is_other_replica(path, trains)
    ]
    sentences += _differences(job, trains, named)
    sentences += [
        f"{job.where(*pod.path)}: for the pods of {', '.join(other_jobs)}, and the entry has none"
        for pod in job.pods
        if (other_jobs := sorted({*pod.jobs} - TRAINING_JOBS))
    ]
    for other in others:
        if other is job or mapping(other.get(*REPLICAS)) or other.get("spec", "runtimeRef"):
            continue
        if other.kind == "TrainingRuntime":
            if other.name in ("", job.get("spec", "runtimeRef", "name")):
                sentences += [
                    f"{other.where(*path)}: {_short(value)}: of the runtime;"
                    " environment.trainer.own_runtimes describes runtimes"
                    for path, value in _not_in_entry(other, container, ())
                ]
        elif not _is_mounted(other, job, others):
            sentences.append(
                f"{other.kind or 'object'} {other.name} [{other.file}:{other.at('kind')['line']}]:"
                " no part of an entry; create it with kubectl where the stack has no such object"
            )
    return sentences


def _not_in_entry(
    workload: Workload, container: Container, named: Collection[str]
) -> Iterator[tuple[Path, Any]]:
    """(path, value) of fields; what is not in the entry as a whole comes as a whole."""
    number = container.path[-1] if isinstance(container.path[-1], int) else 0
    patterns = (pattern.replace("#", str(number)) for pattern in IN_ENTRY)
    covered = {path for pattern in patterns for path in workload.find(pattern)}
    covered |= {
        path
        for (pattern, sibling), usual in USUAL.items()
        for path in workload.find(pattern)
        if workload.get(*path[:-1], sibling) == usual
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
    """Whether a path leads into another replica than the one that becomes the entry."""
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
    """Where the pods of another replica differ from those that become the entry: the entry makes
    all alike. Devices, CPU and memory count although resources have a sentence."""
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
    """Whether a volume of the job or its runtime is the ConfigMap."""
    return any(
        workload.get(*path) == config_map.name
        for workload in (job, *others)
        for path in workload.find("** volumes * configMap name")
    )


def _short(value: Any) -> str:
    return "nothing" if value is None else " ".join(str(value).split())[:60]
