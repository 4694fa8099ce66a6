"""Errors about what the API server takes in no pod, where the CRD of the job does not say so: the
object is accepted, and none of its pods is ever created."""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches

from trainyard.manifests.context import ManifestContext
from trainyard.manifests.document import TRAINER, Pod, items, mapping
from trainyard.problems import InputError, write_one_of

ALWAYS, ON_FAILURE, NEVER = "Always", "OnFailure", "Never"
WORDS: dict[str, tuple[str, ...]] = {
    "** containers * imagePullPolicy": (ALWAYS, "IfNotPresent", NEVER),
    "** initContainers * imagePullPolicy": (ALWAYS, "IfNotPresent", NEVER),
    "** template spec restartPolicy": (ALWAYS, ON_FAILURE, NEVER),
    "spec pytorchReplicaSpecs * restartPolicy": (ALWAYS, ON_FAILURE, NEVER, "ExitCode"),
    "spec runPolicy cleanPodPolicy": ("All", "Running", "None"),
    "** tolerations * operator": ("Exists", "Equal"),
    "** tolerations * effect": ("NoSchedule", "PreferNoSchedule", "NoExecute"),
    "** nodeSelectorTerms * matchExpressions * operator": (
        *("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"),
    ),
    "** topologySpreadConstraints * whenUnsatisfiable": ("DoNotSchedule", "ScheduleAnyway"),
    "** emptyDir medium": ("Memory", "", "HugePages", "HugePages-2Mi", "HugePages-1Gi"),
    "** hostPath type": (
        *("", "Directory", "DirectoryOrCreate", "File", "FileOrCreate"),
        *("Socket", "CharDevice", "BlockDevice"),
    ),
}
"""Field → its values (k8s.io/api/core/v1 v0.34, types.go; training-operator v1.8.1,
common_types.go)."""
REQUIRED: dict[str, tuple[str, ...]] = {
    "** env * valueFrom secretKeyRef": ("name", "key"),
    "** env * valueFrom configMapKeyRef": ("name", "key"),
    "** env * valueFrom fieldRef": ("fieldPath",),
    "** env *": ("name",),
    "** volumeMounts *": ("name", "mountPath"),
    "** volumes *": ("name",),
    "** persistentVolumeClaim": ("claimName",),
    "** hostPath": ("path",),
}
"""Object → fields that it must have."""


def shape_errors(context: ManifestContext) -> Iterator[InputError]:
    """Every error of words, missing fields and mounts without a volume."""
    yield from _words(context)
    yield from _missing(context)
    for pod in context.workload.pods:
        yield from _mounts(context, pod)


def _words(context: ManifestContext) -> Iterator[InputError]:
    for pattern, known in WORDS.items():
        for path in context.workload.find(pattern):
            word = str(context.get(*path))
            if word not in known:
                meant = next((each for each in known if each.lower() == word.lower()), known[0])
                must = f"be one of {', '.join(filter(None, known))}"
                yield context.error(path, must, word, f"write {meant}")


def _missing(context: ManifestContext) -> Iterator[InputError]:
    """Fields that are not there; one that is misspelt is an error of its own."""
    for pattern, names in REQUIRED.items():
        for path in context.workload.find(pattern):
            given = mapping(context.get(*path))
            others = [*map(str, given.keys() - {*names})]
            for name in names if given else ():
                if given.get(name) in (None, "") and not get_close_matches(name, others, 1):
                    got = f"only {', '.join(map(str, given))}"
                    yield context.error(path, f"have a {name}", got, f"add {name}: …")


def _mounts(context: ManifestContext, pod: Pod) -> Iterator[InputError]:
    """Mounts of a volume that the pod does not have."""
    names = _volumes(context, pod)
    if pod.path == TRAINER:
        return  # a TrainJob has no such field, which is the error
    for container in (*pod.containers, *pod.init_containers) if names is not None else ():
        for number, mount in enumerate(items(container.body.get("volumeMounts"))):
            name = str(mount.get("name") or "")
            if name and name not in (names or ()):
                yield context.error(
                    container.at("volumeMounts", number, "name"),
                    "be a volume of the pod",
                    name,
                    write_one_of(sorted(names or ()), "add it under volumes"),
                )


def _volumes(context: ManifestContext, pod: Pod) -> set[str] | None:
    """Names of a pod's volumes; None where they are not all known: a job gives some to the pods of
    its runtime, and JobSet others."""
    base, is_override = context.runtime_pods, pod.role == "override"
    if context.workload.kind == "TrainingRuntime" or (is_override and not base):
        return None
    if "volumeClaimPolicies" in str(context.runtime):
        return None
    parts = [*base, *context.workload.pods] if is_override else [pod]
    return {str(volume.get("name")) for part in parts for volume in items(part.spec.get("volumes"))}
