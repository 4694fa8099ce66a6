"""Names that must be in the file itself: keys of its ConfigMaps, jobs of its runtime, containers and labels of
its pods.

Sources: Kubernetes 1.35 (pkg/apis/core/validation: fieldPath, resourceFieldRef; kubelet: keys), JobSet v0.10.1
(jobset_webhook.go: targetReplicatedJobs, dependsOn, coordinator).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from trainyard.manifests.context import ManifestContext
from trainyard.manifests.document import (
    JOBS,
    Container,
    Path,
    items,
    look,
    mapping,
    mount_path,
)
from trainyard.manifests.names.around import Around
from trainyard.problems import InputError, InputWarning, one_of

Problems = Iterator[InputError | InputWarning]
FIELDS = (
    *("metadata.name", "metadata.namespace", "metadata.uid", "spec.nodeName"),
    *(
        "spec.serviceAccountName",
        "status.hostIP",
        "status.hostIPs",
        "status.podIP",
        "status.podIPs",
    ),
)
"""Fields of a pod that a variable can have."""
OF_VOLUMES = ("metadata.labels", "metadata.annotations")
"""Fields that only a file of a downwardAPI volume can have."""
KEYED = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")
AMOUNTS = re.compile(r"(limits|requests)\.(cpu|memory|ephemeral-storage|hugepages-\S+)")
OF_CONTROLLERS = re.compile(
    r"(?:^|\.)(?:kubeflow\.org|k8s\.io|kubernetes\.io|k8s\.aws|trainyard\.io)/"
)
"""Labels and annotations that controllers write into pods."""
OF_JOBS = {
    "failurePolicy rules * targetReplicatedJobs *": "JobSet's webhook refuses others",
    "successPolicy targetReplicatedJobs *": "JobSet's webhook refuses others",
    "startupPolicy targetReplicatedJobs *": "JobSet's webhook refuses others",
    "coordinator replicatedJob": "JobSet's webhook refuses others",
    "replicatedJobs * dependsOn * name": "the job that waits for another one never starts",
}
"""Field of a JobSet that names one of its jobs → what becomes of another name."""


def inside_problems(contexts: Sequence[ManifestContext], around: Around) -> Problems:
    """Every name of something in the file that the file does not have."""
    for context in contexts:
        yield from _keys(context, around)
        yield from _items(context, around)
        yield from _below(context, around)
        yield from _programs(context, around)
        yield from _jobs(context)
        yield from _injected(context)
        yield from _mounts(context, contexts)
        yield from _fields(context)
        yield from _amounts(context)
        yield from _group(context)


def _data(around: Around, name: Any) -> Mapping[str, Any] | None:
    """Keys of a ConfigMap of the file; None where they are not known."""
    found = around.in_file("ConfigMap").get(str(name))
    if found is None:
        return None
    return {**mapping(found.get("data")), **mapping(found.get("binaryData"))}


def _keys(context: ManifestContext, around: Around) -> Problems:
    for path in context.workload.find("** configMapKeyRef key"):
        keys = _data(around, context.get(*path[:-1], "name"))
        if context.get(*path[:-1], "optional") is not True:
            yield from _key(context, path, keys, "the container does not start without it")


def _items(context: ManifestContext, around: Around) -> Problems:
    for path in context.workload.find("** configMap items * key"):
        holder = path[:-3]
        keys = _data(around, context.get(*holder, "name"))
        if context.get(*holder, "optional") is not True:
            yield from _key(context, path, keys, "pods wait in ContainerCreating without it")


def _below(context: ManifestContext, around: Around) -> Problems:
    """Mounts of one file of a ConfigMap. kubelet makes an empty folder for another name."""
    for pod in context.workload.pods:
        maps = {
            str(volume.get("name")): mapping(volume.get("configMap"))
            for volume in items(pod.spec.get("volumes"))
            if volume.get("configMap")
        }
        for container in pod.containers:
            for number, mount in enumerate(items(container.body.get("volumeMounts"))):
                held = maps.get(str(mount.get("name")))
                if held is None or not mount.get("subPath"):
                    continue
                keys = _data(around, held.get("name"))
                if keys is not None and held.get("items"):
                    keys = {str(each.get("path")): 1 for each in items(held["items"])}
                path = container.at("volumeMounts", number, "subPath")
                yield from _key(context, path, keys, "pods get an empty folder for another name")


PROGRAM = re.compile(
    r"(?:^|[\s;&|(])(?:python[\d.]*|torchrun|bash|sh|accelerate launch|deepspeed)\b(?:[^\n;&|]{0,200}?\s)??"
    r"(?P<path>/[\w./-]+\.(?:py|sh))(?=$|[\s;&|)\"'])"
)
"""A program that a script starts by its whole path."""


def _programs(context: ManifestContext, around: Around) -> Problems:
    """Programs in the folder of a ConfigMap, which shows nothing else that the image has there."""
    for path, name in _folders(context).items():
        keys = _data(around, name)
        for container in context.workload.containers if keys is not None else ():
            for program in dict.fromkeys(
                each["path"] for each in PROGRAM.finditer(container.script)
            ):
                folder, _, file = program.rpartition("/")
                if f"{folder}/" == path and file not in (keys or {}):
                    yield context.error(
                        container.runs,
                        f"start a file of ConfigMap {name}, which has {', '.join(keys or ()) or 'none'}: its"
                        f" mount at {folder} hides what the image has there",
                        program,
                        f"write {folder}/{one_of(keys or (), 'a key that you add')}",
                    )


def _folders(context: ManifestContext) -> dict[str, str]:
    """Path of each folder that is a whole ConfigMap, with a slash at its end → its name."""
    volumes = {
        str(volume.get("name")): mapping(volume.get("configMap"))
        for pod in context.all_pods
        for volume in items(pod.spec.get("volumes"))
    }
    return {
        mount_path(mount): str(held.get("name"))
        for pod in context.all_pods
        for container in pod.containers
        for mount in items(container.body.get("volumeMounts"))
        if (held := volumes.get(str(mount.get("name"))))
        and not held.get("items")
        and not mount.get("subPath")
    }


def _key(
    context: ManifestContext, path: Path, keys: Mapping[str, Any] | None, otherwise: str
) -> Problems:
    key = str(context.get(*path))
    if keys is not None and key.split("/")[0] not in keys:
        known = ", ".join(keys) or "none"
        yield context.error(
            path,
            f"be a key of the ConfigMap, which has {known}: {otherwise}",
            key,
            f"write {one_of(keys, 'a key that you add to it')}",
        )


def _jobs(context: ManifestContext) -> Problems:
    """Names of replicated jobs, in a runtime. A fragment has other jobs elsewhere."""
    jobs = [str(each.get("name")) for each in items(look(context.workload.body, *JOBS))]
    if context.workload.kind != "TrainingRuntime" or "kind" not in context.workload.body:
        return
    for pattern, otherwise in OF_JOBS.items():
        for path in context.workload.find(f"spec template spec {pattern}"):
            if (name := str(context.get(*path))) not in jobs:
                must = f"be a job of this runtime: {otherwise}"
                yield context.error(path, must, name, f"write {one_of(jobs, 'a job that you add')}")


def _injected(context: ManifestContext) -> Problems:
    """Containers beside the one that trains that get PET_* too (Trainer 2.3)."""
    containers = {
        pod.role: [str(each.body.get("name")) for each in (*pod.containers, *pod.init_containers)]
        for pod in context.workload.pods
    }
    for path in context.workload.find("spec mlPolicy torch envInjection targets * jobName"):
        names = containers.get(job := str(context.get(*path)))
        if names is None:
            must, fix = (
                "be a job of this runtime",
                f"write {one_of(containers, 'one that you add')}",
            )
            yield context.error(path, f"{must}: the Trainer's webhook refuses others", job, fix)
        for place in context.workload.find(f"{' '.join(map(str, path[:-1]))} containerNames *"):
            if names is not None and (name := str(context.get(*place))) not in names:
                must, fix = f"be a container of job {job}", f"write {one_of(names, 'one of it')}"
                yield context.error(place, f"{must}: the Trainer refuses others", name, fix)


def _mounts(context: ManifestContext, contexts: Sequence[ManifestContext]) -> Problems:
    """Mounts in a runtime of volumes that neither it nor its job has. JobSet gives some volumes itself."""
    users = [each for each in contexts if each.runtime is context.workload.body]
    is_fragment = "kind" not in context.workload.body
    if context.workload.kind != "TrainingRuntime" or is_fragment or len(users) < 2:
        return
    if "volumeClaimPolicies" in str(context.workload.body):
        return
    for pod in context.workload.pods:
        names = list(_volumes(pod.role, users))
        for container in (*pod.containers, *pod.init_containers):
            yield from _mounted(context, container, names)


def _volumes(role: str, users: Sequence[ManifestContext]) -> Iterator[str]:
    """Volumes of the pods of a replicated job, by the runtime itself and by its job."""
    for pod in (pod for user in users for pod in user.workload.pods):
        if role in (pod.role, *pod.jobs):
            yield from (str(volume.get("name")) for volume in items(pod.spec.get("volumes")))


def _mounted(context: ManifestContext, container: Container, names: Sequence[str]) -> Problems:
    for number, mount in enumerate(items(container.body.get("volumeMounts"))):
        if (name := str(mount.get("name") or "")) and name not in names:
            path = container.at("volumeMounts", number, "name")
            fix = f"write {one_of(dict.fromkeys(names), 'a volume that you add')}"
            yield context.error(path, "be a volume of the pod", name, fix)


def _fields(context: ManifestContext) -> Problems:
    """Fields of the pod that a variable or a file gets."""
    for path in context.workload.find("** fieldRef fieldPath"):
        field, in_file = str(context.get(*path)), "valueFrom" not in path
        if field in FIELDS or (in_file and field in OF_VOLUMES):
            continue
        found = KEYED.fullmatch(field)
        if found is None:
            must = "be a field that pods can hand on: the API server refuses the pods"
            fix = f"write one of {', '.join(FIELDS)}, or metadata.labels['…']"
            yield context.error(path, must, field, fix)
        elif not OF_CONTROLLERS.search(found[2]) and not _is_set(context, found[1], found[2]):
            yield context.warning(
                path,
                f"neither the pods of the file nor a controller have {found[1]} {found[2]}: the value is"
                f" empty; write it into the metadata of the pods",
            )


def _is_set(context: ManifestContext, part: str, key: str) -> bool:
    """True where something in the object, or in its runtime, sets the label or the annotation."""
    shown = f"{context.workload.body} {context.runtime}"
    return bool(re.search(rf"'{part}': \{{[^{{}}]*'{re.escape(key)}':", shown))


def _amounts(context: ManifestContext) -> Problems:
    for path in context.workload.find("** resourceFieldRef resource"):
        if not AMOUNTS.fullmatch(resource := str(context.get(*path))):
            must = "be limits or requests of cpu, memory or ephemeral-storage: the API server refuses the pods"
            yield context.error(path, must, resource, "write limits.memory, or requests.cpu")
    for path in context.workload.find("** resourceFieldRef containerName"):
        names = [str(each.body.get("name")) for pod in context.all_pods for each in pod.containers]
        if names and (name := str(context.get(*path))) not in names:
            must = "be a container of the pod"
            yield context.error(path, must, name, f"write {one_of(dict.fromkeys(names), 'it')}")


def _group(context: ManifestContext) -> Problems:
    """The group of a runtime, which the Trainer's webhook knows no other of."""
    for path in context.workload.find("spec runtimeRef apiGroup"):
        if (group := context.get(*path)) not in ("trainer.kubeflow.org", ""):
            must = "be trainer.kubeflow.org: no other group has runtimes"
            yield context.error(path, must, group, "delete it")
