"""Errors about what the API server takes in no pod, where the CRD of the job does not say so: the
object is accepted, and none of its pods is ever created."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from trainyard.catalog.job_kinds import JOB_KINDS, MORE_KINDS
from trainyard.manifests.context import ManifestContext
from trainyard.manifests.document import REPLICA_FIELDS, TRAINER, Path, Pod, items, mapping
from trainyard.problems import InputError, write_one_of

ALWAYS, ON_FAILURE, NEVER = "Always", "OnFailure", "Never"
WORDS: dict[str, tuple[str, ...]] = {
    "** containers * imagePullPolicy": (ALWAYS, "IfNotPresent", NEVER),
    "** initContainers * imagePullPolicy": (ALWAYS, "IfNotPresent", NEVER),
    "** template spec restartPolicy": (ALWAYS, ON_FAILURE, NEVER),
    **{
        f"spec {field} * restartPolicy": (ALWAYS, ON_FAILURE, NEVER, "ExitCode")
        for field in REPLICA_FIELDS
    },
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
SERVED, V1_SERVED = (JOB_KINDS[kind].api_version for kind in ("TrainJob", "PyTorchJob"))
API_VERSIONS = {
    "TrainJob": SERVED,
    "TrainingRuntime": SERVED,
    "PyTorchJob": V1_SERVED,
    "ConfigMap": "v1",
    **dict.fromkeys(MORE_KINDS, V1_SERVED),
}
"""Kind → its apiVersion, which the API server wants as it wants a spec."""
EMPTY: tuple[Any, ...] = (None, "", {}, [])
REQUIRED: dict[str, dict[str, tuple[str, ...]]] = {
    "": {
        "** env * valueFrom secretKeyRef": ("name",),
        "** env * valueFrom configMapKeyRef": ("name",),
    },
    **{
        name: {
            "spec": (kind.replicas,),
            f"spec {kind.replicas} *": ("template",),
            f"spec {kind.replicas} * template": ("spec",),
            f"spec {kind.replicas} * template spec containers *": ("image",),
            f"spec {kind.replicas} * template spec initContainers *": ("image",),
        }
        for name, kind in JOB_KINDS.items()
        if kind.replicas
    },
    "TrainingRuntime": {
        "spec": ("template",),
        "spec template": ("spec",),
        "spec template spec": ("replicatedJobs",),
        "spec template spec replicatedJobs * template": ("spec",),
        "spec template spec replicatedJobs * template spec": ("template",),
        "spec template spec replicatedJobs * template spec template": ("spec",),
    },
}
"""Kind, or none for any → object → fields without which it makes no pod, and which its CRD does not ask for."""
NAMES = (
    "** containers * name",
    "** initContainers * name",
    "** volumes * name",
    "** ports * name",
    "** replicatedJobs * name",
)
"""Labels of DNS (k8s.io/apimachinery, IsDNS1123Label)."""


def shape_errors(context: ManifestContext) -> Iterator[InputError]:
    """Every error of words, missing fields, names and mounts without a volume."""
    yield from _words(context)
    yield from _missing(context)
    yield from _names(context)
    yield from _no_pods(context)
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


VALUES = {"runtimeRef": "{name: torch-distributed}"}
"""Field that an object must have → a value that it takes."""


def missing(
    context: ManifestContext, path: Path, given: Mapping[str, Any], names: Sequence[str]
) -> Iterator[InputError]:
    """Fields that an object must have and has not, where it is no fragment, which has no kind; one that is misspelt
    is an error of its own."""
    others = [*map(str, given.keys() - {*names})]
    for name in names:
        if given.get(name) in EMPTY and not get_close_matches(name, others, 1):
            got = f"only {', '.join(map(str, given))}" if given else "nothing"
            known = API_VERSIONS[context.workload.kind] if name == "apiVersion" else "…"
            value = VALUES.get(name, known)
            yield context.error(path, f"have the field {name}", got, f"add {name}: {value}")


def _missing(context: ManifestContext) -> Iterator[InputError]:
    kind = context.workload.kind if "kind" in context.workload.body else ""
    for pattern, names in {**REQUIRED[""], **REQUIRED.get(kind, {})}.items():
        for path in context.workload.find(pattern):
            if _is_of_no_role(kind, path):
                continue  # the role is an error of its own
            yield from missing(context, path, mapping(context.get(*path)), names)


def _is_of_no_role(kind: str, path: Path) -> bool:
    """True of a place in replicas whose role the kind has not."""
    known, steps = JOB_KINDS.get(kind), [str(step) for step in path]
    if known is None or len(steps) < 3 or steps[1] != known.replicas:
        return False
    return steps[2] not in known.roles


def _names(context: ManifestContext) -> Iterator[InputError]:
    for pattern in NAMES:
        for path in context.workload.find(pattern):
            name = str(context.get(*path) or "a")
            if not re.fullmatch(r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?", name):
                must = "be at most 63 of a-z, 0-9 and -, as Kubernetes takes names"
                mounts = ", also in the volumeMounts that mean it" * ("volumes" in path)
                yield context.error(path, must, name, f"write {_sound(name)}{mounts}")


def _sound(name: str) -> str:
    """A name as Kubernetes takes it, of one that it does not."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower())[:63].strip("-") or "main"


def _no_pods(context: ManifestContext) -> Iterator[InputError]:
    """A PyTorchJob whose replicas are none at all."""
    paths = [*context.workload.find("spec pytorchReplicaSpecs Worker replicas")]
    if paths and len(context.workload.pods) == 1 and context.get(*paths[0]) == 0:
        must = "be at least 1: the job has no other pods"
        yield context.error(paths[0], must, 0, "write 1 or more")


def _mounts(context: ManifestContext, pod: Pod) -> Iterator[InputError]:
    """Mounts of a volume that the pod does not have. A TrainJob has no such field, which is an error of its own; so
    is a name that no volume can have."""
    names = _volumes(context, pod)
    sound = sorted(name for name in names or () if name == _sound(name))
    if names is None or pod.path == TRAINER or (names and not sound):
        return
    for container in (*pod.containers, *pod.init_containers):
        for number, mount in enumerate(items(container.body.get("volumeMounts"))):
            name = str(mount.get("name") or "")
            if name and name not in names:
                yield context.error(
                    container.at("volumeMounts", number, "name"),
                    "be a volume of the pod",
                    name,
                    write_one_of(sound, "add it under volumes"),
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
