"""Result for a PyTorchJob or TrainJob in a stack file: its entry of `jobs:`, and a sentence for
everything that changes or has no counterpart."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from trainyard.catalog import versions
from trainyard.derive.policies import RESERVED_ENV
from trainyard.manifests.context import ManifestContext, contexts_of
from trainyard.manifests.document import (
    Container,
    Path,
    Workload,
    look,
    mapping,
)
from trainyard.migrate.hosts import meeting_of_variable
from trainyard.migrate.leftovers import differences, left_over
from trainyard.migrate.names import entry_name
from trainyard.migrate.printed import Printed
from trainyard.migrate.ranks import gpus_and_ranks
from trainyard.migrate.replicas import in_any_replica
from trainyard.migrate.result import Migration, NotMigrated
from trainyard.migrate.secrets_left_out import leave_out_secrets, without_secrets
from trainyard.migrate.target import names_to_fill_in, pool_for
from trainyard.migrate.time_limit import keep_time_limit
from trainyard.migrate.training import Training, training
from trainyard.migrate.twin import fixed_nodes, pytorch_job, restarts_of_a_gang
from trainyard.migrate.v2_script import SET_BY_V1, v2_script
from trainyard.migrate.volumes import Volumes
from trainyard.settings.environment import EnvironmentConfig
from trainyard.settings.reading.secrets.secrets import HIDDEN
from trainyard.settings.training.no_settings import TO_S3

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
    "schedulingPolicy": "`trainyard check` ensures that all pods fit into the pool",
    "initContainers": "move its work into the script or the image",
    "securityContext": "the image's user runs the job; EFA needs no privileges",
    "serviceAccountName": "the job uses the namespace's default service account",
    "priorityClassName": (
        "set `priority` in an own runtime or in `pytorch_job`; see environment.priorities"
    ),
    "envFrom": "name each variable in env or secrets",
    "workingDir": "use cd in the script",
    "initializer": "download data in the script, or into a store",
    "ttlSecondsAfterFinished": "a job that has ended holds no node; it stays until its entry is deleted",
    "suspend": "leave the entry out until the job shall run",
}
"""Field without a counterpart → what to do."""
TEXTS = {"labels", "annotations", "matchLabels", "data"}
"""Fields whose keys are words of people, and no fields."""


def migrate(
    job: Workload,
    others: Sequence[Workload] = (),
    *,
    release: str = next(iter(versions.TRAINERS)),
    environment: EnvironmentConfig | None = None,
    taken: Collection[str] = (),
) -> Migration:
    """The entry for a job. `others`: the objects of its files, with its runtime and its ConfigMaps;
    `release`: of the Trainer; `environment`: of the stack that the entry is for; `taken`: names of other
    entries."""

    def converted(job: Workload, others: Sequence[Workload]) -> Migration:
        context = contexts_of([job, *others], release=release, environment=environment)[0]
        return _converted(context, others, environment, taken)[0]

    context = contexts_of([job, *others], release=release, environment=environment)[0]
    migration, trains, named = _converted(context, others, environment, taken)
    beside = [other for other in others if other is not job]
    said = Printed(job=job, others=beside, convert=converted)
    migration.left_over += left_over(job, trains, beside, named, said)
    leave_out_secrets(migration)
    return migration


def _converted(
    context: ManifestContext,
    others: Sequence[Workload],
    environment: EnvironmentConfig | None,
    taken: Collection[str],
) -> tuple[Migration, Training, set[Path]]:
    """The entry for a job with the sentences about it, the container that it comes from, and the paths of
    the fields that have a sentence for all jobs."""
    job = context.workload
    nodes = context.nodes or 1
    trains = training(context, others)
    container, left = without_secrets(job, trains.container)
    image = container.body.get("image")
    if not image:
        raise NotMigrated(
            job.at("spec").must(
                "have an image",
                got="no image",
                fix="write it into the job, or name the file of its runtime too",
            )
        )
    runtime = str(job.get("spec", "runtimeRef", "name") or "torch-distributed")
    name, renamed = entry_name(job, taken)
    pool, changed = pool_for(context, environment)
    migration = Migration(
        name=name,
        changed=[*renamed, *changed],
        no_counterpart=left,
        entry={"runtime": runtime, "nodes": nodes, "pool": pool, "image": image},
        pytorch_job=pytorch_job(job) if job.kind == "PyTorchJob" else {},
    )
    counts, explained = gpus_and_ranks(context, container)
    migration.entry |= counts
    migration.changed += explained
    config_maps = {other.name: other for other in others if other.kind == "ConfigMap"}
    Volumes(migration, trains.pod, container, config_maps).migrate()
    for variable in trains.variables:
        _migrate_variable(migration, job, variable)
    _migrate_labels(migration, job)
    if trains.pull_secrets:
        migration.entry["pull_secrets"] = [*dict.fromkeys(trains.pull_secrets)]
    _migrate_command(migration, job, replace(trains, container=container), nodes)
    named = _list_other_fields(migration, job, container)
    migration.changed += names_to_fill_in(migration.entry, environment)
    migration.changed += restarts_of_a_gang(job, migration.pytorch_job)
    migration.no_counterpart += fixed_nodes(job, migration.pytorch_job, nodes)
    keep_time_limit(migration, context)
    migration.left_over += differences(job, trains, named)
    return migration, trains, named


def _migrate_command(migration: Migration, job: Workload, trains: Training, nodes: int) -> None:
    """A command becomes the script. Without one the image's own entrypoint keeps its arguments."""
    container = trains.container
    if container.body.get("command"):
        script = v2_script(job, container, nodes, trains.may_have)
        migration.entry["script"] = script.text
        migration.changed += script.changes
        return
    migration.entry["arguments"] = [*container.command]
    migration.changed.append(
        f"{job.where(*container.runs)}: no command: `arguments` go to the image's own entrypoint,"
        " and nothing of it is known"
    )


def _list_other_fields(migration: Migration, job: Workload, container: Container) -> set[Path]:
    """The paths of all fields that one sentence explains for every job. A field of several pods has a
    sentence for each; replicas with the same value have one."""
    if re.search(r"\bs3://", container.script):
        migration.no_counterpart.append(
            f"{job.where(*container.runs)}: s3://…: {TO_S3}; or AWS_ACCESS_KEY_ID and its key in"
            " secrets"
        )
    named, seen = set[Path](), list[tuple[Path, Any]]()
    for sentences, table in (
        (migration.changed, CHANGED),
        (migration.no_counterpart, NO_COUNTERPART),
    ):
        for name, text in table.items():
            paths = [
                path for path in job.lines if path[-1:] == (name,) and not TEXTS & {*path[:-1]}
            ]
            named |= {*paths}
            for path in paths:
                field = (in_any_replica(path), job.get(*path))
                if field not in seen:
                    sentences.append(f"{job.where(*path)}: {text}")
                    seen.append(field)
    return named


def _migrate_labels(migration: Migration, job: Workload) -> None:
    labels = {str(key): str(value) for key, value in mapping(job.get("metadata", "labels")).items()}
    if labels:
        migration.entry["labels"] = labels
        migration.changed.append(
            f"{job.where('metadata', 'labels')}: the pods have the labels of the job, too"
        )


def _migrate_variable(migration: Migration, job: Workload, variable: Mapping[str, Any]) -> None:
    name, secret = str(variable.get("name")), look(variable, "valueFrom", "secretKeyRef")
    if name in (*RESERVED_ENV, *SET_BY_V1):
        migration.changed.append(f"env.{name}: removed; the Trainer or the script sets it")
    elif secret:
        migration.entry.setdefault("secrets", {})[name] = {
            "secret": secret.get("name"),
            "key": secret.get("key"),
        }
    elif source := mapping(variable.get("valueFrom")):
        named = ", ".join(f"{kind} {_words(value)}".strip() for kind, value in source.items())
        migration.no_counterpart.append(
            f"env.{name}: {named} has no setting; set the variable in the script"
        )
    elif HIDDEN in str(variable.get("value")):
        migration.no_counterpart.append(
            f"env.{name}: keep it in a Secret: secrets: {{{name}: {{secret: …, key: …}}}}"
        )
    else:
        written = str(variable.get("value") or "")
        value, changes = meeting_of_variable(job, migration.name, name, written)
        migration.entry.setdefault("env", {})[name] = value
        migration.changed += changes


def _words(value: Any) -> str:
    """The values in a source of a variable: `train-conf lr`."""
    return " ".join(map(str, mapping(value).values()))
