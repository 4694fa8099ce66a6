"""What becomes of a PyTorchJob or TrainJob in a stack file: its entry of `jobs:`, and a sentence for
everything that changes or has no counterpart."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from catalog import versions
from catalog.quantities import amount
from plans.pytorch import CONTAINER as TRAINS
from stacks.derive.job_view import RESERVED_ENV
from stacks.derive.scripts import saved_in
from stacks.manifests.context import ManifestContext, contexts_of
from stacks.manifests.document import Container, Pod, Workload, items, look, mapping, words
from stacks.manifests.leftovers import left_over
from stacks.manifests.ranks import gpus_and_ranks
from stacks.manifests.target import names_to_fill_in, pool_for
from stacks.manifests.twin import pytorch_job
from stacks.manifests.v2_script import SET_BY_V1, v2_script
from stacks.settings.environment import EnvironmentConfig
from stacks.settings.job import TO_S3
from stacks.settings.problems import InputError
from stacks.settings.secrets import HIDDEN

CHANGED = {
    "nodeSelector": "the pool decides where pods run",
    "affinity": "the pool decides where pods run",
    "podAntiAffinity": (
        "a pod requests a whole node, so no two pods share one, unless gpus_per_node is set"
    ),
    "topologySpreadConstraints": "all nodes are in one zone, and a pod requests a whole node",
    "tolerations": "pods tolerate the taints of the pool's nodes",
    "resources": (
        "GPUs, EFA, CPU and memory follow from the pool's instance type; cpus_per_node and"
        " memory_gib request other amounts"
    ),
    "resourcesPerNode": (
        "GPUs, EFA, CPU and memory follow from the pool's instance type; gpus_per_node,"
        " cpus_per_node and memory_gib request other amounts"
    ),
    "restartPolicy": "a failed rank restarts all ranks if the runtime has max_restarts",
    "namespace": "the namespace of the environment or of the team",
}
"""Field → what replaces it."""
NO_COUNTERPART = {
    "schedulingPolicy": "`make check` ensures that all pods fit into the pool",
    "initContainers": "move its work into the script or the image",
    "securityContext": "the image's user runs the job; EFA needs no privileges",
    "serviceAccountName": "the job uses the namespace's default service account",
    "priorityClassName": (
        "set `priority` in an own runtime or in `pytorch_job`; see environment.priorities"
    ),
    "envFrom": "name each variable in env or secrets",
    "workingDir": "use cd in the script",
    "initializer": "download data in the script, or into a store",
    "suspend": "leave the entry out until the job shall run",
}
"""Field without a counterpart → what to do."""
SHARED_MEMORY_BYTES = 2**36
"""For a volume in memory without a sizeLimit."""


@dataclass(kw_only=True)
class Migration:
    """An entry of `jobs:`, and what became of the other fields."""

    name: str
    entry: dict[str, Any] = field(default_factory=dict)
    """Fields of JobConfig."""
    changed: list[str] = field(default_factory=list)
    no_counterpart: list[str] = field(default_factory=list)
    left_over: list[str] = field(default_factory=list)
    """A sentence for each other field that the entry does not have."""
    pytorch_job: dict[str, Any] = field(default_factory=dict)
    """Settings that replace `runtime` where the job is to stay a PyTorchJob."""


class NotMigrated(Exception):
    """A job cannot become an entry."""

    def __init__(self, error: InputError) -> None:
        self.error = error
        super().__init__(str(error))


def migrate(
    job: Workload,
    others: Sequence[Workload] = (),
    *,
    release: str = next(iter(versions.TRAINERS)),
    environment: EnvironmentConfig | None = None,
) -> Migration:
    """The entry for a job. `others` may contain its runtime and its ConfigMaps; `release`: of the
    Trainer; `environment`: of the stack that the entry is for."""
    context = contexts_of([job, *others], release=release, environment=environment)[0]
    nodes = context.nodes or 1
    pod, container = _training_container(context)
    image = container.body.get("image")
    if not image:
        raise NotMigrated(
            InputError(
                **job.at("spec"),
                must="have an image",
                got="no image",
                fix="write it into the job, or name the file of its runtime too",
            )
        )
    runtime = str(job.get("spec", "runtimeRef", "name") or "torch-distributed")
    pool, changed = pool_for(context, environment)
    migration = Migration(
        name=_setting_name(job.name),
        changed=changed,
        entry={"runtime": runtime, "nodes": nodes, "pool": pool, "image": image},
        pytorch_job=pytorch_job(job) if job.kind == "PyTorchJob" else {},
    )
    counts, explained = gpus_and_ranks(context, container)
    migration.entry |= counts
    migration.changed += explained
    config_maps = {other.name: other for other in others if other.kind == "ConfigMap"}
    _Volumes(migration, pod, container, config_maps).migrate()
    _migrate_variables(migration, job, container)
    _migrate_labels(migration, job)
    _migrate_pull_secrets(migration, job)
    _migrate_command(migration, job, container, nodes)
    _list_other_fields(migration, job, container)
    named = {*CHANGED, *NO_COUNTERPART}
    migration.left_over += left_over(job, pod, container, others, named)
    migration.changed += names_to_fill_in(migration.entry, environment)
    return migration


def _migrate_command(migration: Migration, job: Workload, container: Container, nodes: int) -> None:
    """A command becomes the script. Without one the image's own entrypoint keeps its arguments."""
    if container.body.get("command"):
        script = v2_script(job, container, nodes)
        migration.entry["script"] = script.text
        migration.changed += script.changes
        return
    migration.entry["arguments"] = [*container.command]
    migration.changed.append(
        f"{job.where(*container.runs)}: no command: `arguments` go to the image's own entrypoint,"
        " and nothing of it is known"
    )


def _list_other_fields(migration: Migration, job: Workload, container: Container) -> None:
    if re.search(r"\bs3://", container.script):
        migration.no_counterpart.append(
            f"{job.where(*container.runs)}: s3://…: {TO_S3}; or AWS_ACCESS_KEY_ID and its key in"
            " secrets"
        )
    first = {path[-1]: path for path in reversed([*job.lines]) if path}
    for sentences, table in (
        (migration.changed, CHANGED),
        (migration.no_counterpart, NO_COUNTERPART),
    ):
        sentences += [
            f"{job.where(*first[name])}: {text}" for name, text in table.items() if name in first
        ]


def _migrate_variables(migration: Migration, job: Workload, trains: Container) -> None:
    """Variables of the container that trains, in each pod, become env and secrets."""
    names = (None, trains.body.get("name"))  # a TrainJob's trainer has no name
    for container in job.containers:
        if container.body.get("name") in names:
            for variable in items(container.body.get("env")):
                _migrate_variable(migration, variable)


def _migrate_pull_secrets(migration: Migration, job: Workload) -> None:
    secrets = {str(job.get(*path)): None for path in job.find("** imagePullSecrets * name")}
    migration.entry |= {"pull_secrets": [*secrets]} if secrets else {}


def _migrate_labels(migration: Migration, job: Workload) -> None:
    labels = {str(key): str(value) for key, value in mapping(job.get("metadata", "labels")).items()}
    if labels:
        migration.entry["labels"] = labels
        migration.changed.append(
            f"{job.where('metadata', 'labels')}: the pods have the labels of the job, too"
        )


def _migrate_variable(migration: Migration, variable: Mapping[str, Any]) -> None:
    name, secret = str(variable.get("name")), look(variable, "valueFrom", "secretKeyRef")
    if name in (*RESERVED_ENV, *SET_BY_V1):
        migration.changed.append(f"env.{name}: removed; the Trainer or the script sets it")
    elif secret:
        migration.entry.setdefault("secrets", {})[name] = {
            "secret": secret.get("name"),
            "key": secret.get("key"),
        }
    elif source := mapping(variable.get("valueFrom")):
        migration.no_counterpart.append(
            f"env.{name}: {', '.join(map(str, source))} has no setting; set the variable in the script"
        )
    elif HIDDEN in str(variable.get("value")):
        migration.no_counterpart.append(
            f"env.{name}: keep it in a Secret: secrets: {{{name}: {{secret: …, key: …}}}}"
        )
    else:
        migration.entry.setdefault("env", {})[name] = str(variable.get("value") or "")


def _training_container(context: ManifestContext) -> tuple[Pod, Container]:
    """The container that trains, and its pod. For a TrainJob: with the fields of its runtime."""
    pairs = [(pod, container) for pod in context.workload.pods for container in pod.containers]
    if not pairs:
        raise NotMigrated(
            InputError(
                **context.workload.at("spec"),
                must="have a container",
                got="no container",
                fix="write a pod template with a container that trains",
            )
        )
    if context.workload.kind == "PyTorchJob":
        pairs = [pair for pair in pairs if pair[1].body.get("name") == TRAINS] or pairs
        return next((pair for pair in pairs if _does_something(pair[1])), pairs[0])
    return _with_its_runtime(context, *pairs[0])


def _does_something(container: Container) -> bool:
    """Whether the script has more than comments."""
    return bool(re.sub(r"(?m)^\s*#.*", "", container.script).strip())


def _with_its_runtime(
    context: ManifestContext, pod: Pod, trainer: Container
) -> tuple[Pod, Container]:
    """The trainer of a TrainJob where it sets a field, else the container `node` of its runtime;
    with the volumes and mounts of both and of the overrides."""
    of_runtime = [base for base in context.runtime_pods if base.role == "node"]
    containers = [container for base in of_runtime for container in base.containers]
    node = next((it for it in containers if it.body.get("name") == "node"), trainer)
    pods = [*of_runtime, *context.workload.pods]
    mounts = [
        mount
        for template in pods
        for container in items(template.spec.get("containers"))
        for mount in items(container.get("volumeMounts"))
    ]
    own = {name: value for name, value in trainer.body.items() if value is not None}
    body = {**node.body, **own, "volumeMounts": mounts}
    volumes = [volume for template in pods for volume in items(template.spec.get("volumes"))]
    return replace(pod, spec={"volumes": volumes}), replace(
        trainer,
        body=body,
        command=(*words(body.get("command")), *words(body.get("args"))),
    )


def _setting_name(text: str) -> str:
    """The text as a name of a setting."""
    name = re.sub(r"[^a-z0-9]+", "-", text.lower())[:32]
    return re.sub(r"^[^a-z]+|[^a-z0-9]+$", "", name) or "job"


class _Volumes:
    """The volumes that the training container mounts: claims become stores, ConfigMaps files, and
    folders of the node host_paths. A directory for checkpoints on a claim becomes `checkpoints`."""

    def __init__(
        self,
        migration: Migration,
        pod: Pod,
        container: Container,
        config_maps: Mapping[str, Workload],
    ) -> None:
        self.migration, self.entry = migration, migration.entry
        self.container, self.config_maps = container, config_maps
        self.volumes = {volume.get("name"): volume for volume in items(pod.spec.get("volumes"))}
        self.stores: dict[str, str] = {}
        """Store → where it is mounted."""

    def migrate(self) -> None:
        for mount in items(self.container.body.get("volumeMounts")):
            path = str(mount.get("mountPath")).rstrip("/")
            volume = self.volumes.get(mount.get("name"), {})
            if not (
                self._store(volume, path)
                or self._empty_dir(volume, path)
                or self._host_path(volume, path)
                or self._files(volume, path, mount)
            ):
                kinds = ", ".join({*volume} - {"name"})
                self.migration.no_counterpart.append(
                    f"{path}: {kinds}: put its files into the image or a store"
                )
        self._checkpoints()
        # Stores are mounted at /checkpoints by `checkpoints`.
        mounted = {
            name: {"path": path} for name, path in self.stores.items() if path != "/checkpoints"
        }
        self.entry |= {"storage": mounted} if mounted else {}

    def _store(self, volume: Mapping[str, Any], path: str) -> bool:
        claim = look(volume, "persistentVolumeClaim", "claimName")
        if claim:
            store = _setting_name(re.sub(r"-(pvc|claim)$", "", str(claim)))
            self.stores.setdefault(store, path)
            self.migration.changed.append(
                f"storage: claim {claim} is now store {store}; name a store of your stack and copy"
                " the data"
            )
        return bool(claim)

    def _empty_dir(self, volume: Mapping[str, Any], path: str) -> bool:
        """Shared memory, and the first other folder that is empty at the start."""
        empty_dir = look(volume, "emptyDir")
        if path == "/dev/shm" or look(empty_dir, "medium") == "Memory":
            size = amount(look(empty_dir, "sizeLimit")) or SHARED_MEMORY_BYTES
            self.entry["shared_memory_gib"] = math.ceil(size / 2**30)
            if path != "/dev/shm":
                self.migration.changed.append(
                    f"shared_memory_gib: the memory at {path} is /dev/shm"
                )
            return True
        if empty_dir is None or "local_scratch" in self.entry:
            return False
        self.entry["local_scratch"] = path
        return True

    def _host_path(self, volume: Mapping[str, Any], path: str) -> bool:
        host = look(volume, "hostPath", "path")
        if host:
            name = _setting_name(str(volume["name"]))
            self.entry.setdefault("host_paths", {})[name] = {"host": host, "path": path}
        return bool(host)

    def _files(self, volume: Mapping[str, Any], path: str, mount: Mapping[str, Any]) -> bool:
        """The first ConfigMap."""
        name = look(volume, "configMap", "name")
        if not name or "files" in self.entry:
            return False
        self.entry["files"] = {
            "sources": self._keys(str(name), volume),
            "path": path.rpartition("/")[0] if mount.get("subPath") else path,
        }
        return True

    def _keys(self, name: str, volume: Mapping[str, Any]) -> list[str]:
        """The keys of a ConfigMap: those that the volume lists, else those of the ConfigMap in the
        files, else the names of the Python files that the script runs."""
        config_map = self.config_maps.get(name)
        keys = [str(item.get("key")) for item in items(look(volume, "configMap", "items"))]
        keys = keys or [*mapping(config_map.get("data") if config_map else None)]
        keys = keys or re.findall(r"/([\w.-]+\.py)", self.container.script) or [f"{name}.py"]
        for key in keys:
            source = (
                config_map.where("data", key)
                if config_map
                else f"kubectl get configmap {name} -o yaml"
            )
            self.migration.changed.append(f"files: write {key} from {source}")
        return keys

    def _checkpoints(self) -> None:
        saves = saved_in(self.container.script)
        if not saves:
            return
        paths = self.stores.items()
        store = next((name for name, path in paths if f"{saves[0]}/".startswith(f"{path}/")), None)
        if not store:
            return
        directory = saves[0][len(self.stores[store]) :].strip("/") or self.migration.name
        self.entry["checkpoints"] = {"store": store, "directory": directory}
        self.migration.changed.append(
            f"checkpoints: {directory} of store {store}; CHECKPOINT_DIR in the script names it too"
        )
        if self.entry["runtime"] == "torch-distributed":
            self.entry["runtime"] = "torch-distributed-resilient"
            self.migration.changed.append(
                "runtime: use one of your own_runtimes with max_restarts, which restarts all ranks"
                " from the checkpoint"
            )
