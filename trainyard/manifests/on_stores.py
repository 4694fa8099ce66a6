"""Warnings about the stores that the pods of a YAML file mount: what cannot be done there, and who may
write."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from trainyard.derive.job_view import NODE_DISK, outlives_pods
from trainyard.derive.scripts import saved_in, saved_in_the_container
from trainyard.manifests.context import ManifestContext
from trainyard.manifests.document import (
    Container,
    Path,
    Pod,
    items,
    look,
    mount_path,
)
from trainyard.problems import InputWarning
from trainyard.rules.writes import weak_writes
from trainyard.settings.environment import EnvironmentConfig
from trainyard.stores.kinds import claim_name, kinds_of


def store_warnings(
    context: ManifestContext,
    claims: Mapping[str, str],
    environment: EnvironmentConfig,
    namespace: str,
) -> Iterator[InputWarning]:
    """Every warning. `claims`: what the file calls a claim → what ours is called; `namespace`: of the
    job."""
    named = {
        claim_name(name, store, environment.zone, environment.kms_key_arn): name
        for name, store in environment.storage.items()
    }
    stores = {theirs: named[ours] for theirs, ours in claims.items() if ours in named}
    pods = [(pod, container) for pod in context.all_pods for container in pod.containers]
    found = {path: name for each in pods for path, name in _mounted(*each, stores).items()}
    yield from weak_writes(context.view, found, environment)
    yield from _read_only(context)
    if namespace != environment.namespace:
        return  # directories of a team are open to every user
    for pod in context.workload.pods:
        for container in pod.containers:
            mounted = _mounted(pod, container, stores)
            yield from _not_root(context, pod, container, mounted, environment)


def _mounted(pod: Pod, container: Container, stores: Mapping[str, str]) -> dict[str, str]:
    """Path, with a slash at its end → the store that is mounted there."""
    claims = {
        str(volume.get("name")): str(look(volume, "persistentVolumeClaim", "claimName"))
        for volume in items(pod.spec.get("volumes"))
    }
    found = [
        (mount_path(mount), claims.get(str(mount.get("name")), ""))
        for mount in items(container.body.get("volumeMounts"))
        if not mount.get("readOnly")
    ]
    paths = [path for path, _ in found]
    return {
        path: stores[claim]
        for path, claim in found
        if claim in stores and paths.count(path) == 1  # of two mounts at a path nobody knows which
    }


def _read_only(context: ManifestContext) -> Iterator[InputWarning]:
    """Saves below a mount that pods can only read."""
    mounts = {
        mount_path(mount): mount.get("readOnly") is True
        for pod in context.all_pods
        for container in pod.containers
        for mount in items(container.body.get("volumeMounts"))
    }
    for container in context.view.containers:
        for directory in dict.fromkeys(saved_in(container.script)):
            path = max((p for p in mounts if f"{directory}/".startswith(p)), key=len, default="")
            if mounts.get(path):
                yield container.where("script").warning(
                    f"{directory} is on the mount {path.rstrip('/')}, which is readOnly: the program ends"
                    " when it saves; delete readOnly, or save on another mount"
                )


def _not_root(
    context: ManifestContext,
    pod: Pod,
    container: Container,
    mounted: Mapping[str, str],
    environment: EnvironmentConfig,
) -> Iterator[InputWarning]:
    """A user who cannot write to the root of a new store, which belongs to root."""
    field = ("securityContext", "runAsUser")
    places: list[Path] = [container.at(*field), (*pod.path, *field)]
    place = next((each for each in places if context.get(*each) is not None), None)
    user = context.get(*place) if place else 0
    for path, store in mounted.items():
        is_roots = any(kind.root_is_roots for kind, _ in kinds_of(environment.storage[store]))
        if place and user and is_roots:
            folder = path.rstrip("/")
            yield context.warning(
                place,
                f"user {user} cannot write to {folder}: the root of store {store} belongs to root, and"
                f" fsGroup changes nothing there; let one run as root make a directory (install -d -o"
                f" {user} {folder}/{context.workload.name or 'train'}), and write below it",
            )


def restarts_from_nothing(context: ManifestContext) -> Iterator[InputWarning]:
    """Restarts of a gang with nothing to resume from. What its script saves in the container has a warning of its
    own; what is on a disk of the node, pods find that start again on the same one."""
    containers = [container for pod in context.all_pods for container in pod.containers]
    saves = any(saved_in_the_container(each.script) for each in containers)
    keeps = any(NODE_DISK in kinds for kinds in context.mounts.values())
    if context.restarts and not (keeps or outlives_pods(context.mounts) or saves):
        text = f"{context.restarts} restarts begin at step 0: no claim is mounted to resume from"
        yield context.warning(("spec",), text)
