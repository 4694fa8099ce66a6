"""Training in a job: its container, with what the runtime and the overrides give it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from trainyard.manifests.context import ManifestContext
from trainyard.manifests.document import JOBS, Container, Pod, Workload, items, look, words
from trainyard.migrate.result import NotMigrated
from trainyard.objects.jobs.pytorch import CONTAINER as TRAINS

NODE = "node"
"""Replicated job and container of a runtime that the Trainer's own runtimes have."""
STEP = "trainer.kubeflow.org/trainjob-ancestor-step"
"""Label of the replicated job whose pods the Trainer gives the job's own fields; its value is
`trainer` (pkg/constants of the Trainer)."""


@dataclass(frozen=True, kw_only=True)
class Training:
    """The container that becomes an entry. For a TrainJob: with the fields of its runtime."""

    pod: Pod
    """Its pod, with the volumes of all that describe it."""
    container: Container
    variables: tuple[Mapping[str, Any], ...]
    """One for each name."""
    pull_secrets: tuple[str, ...]
    runtime: Workload | None
    """The runtime, where it is in the files."""
    in_runtime: Container | None
    """The container in it."""
    has_more_variables: bool
    """Variables come from elsewhere: envFrom, or a runtime that is not in the files."""

    def may_have(self, variable: str) -> bool:
        """True where the container has the variable. Of what is not in the files only names in capitals count."""
        is_in_capitals = bool(re.fullmatch(r"[A-Z][A-Z0-9_]*", variable))
        own = {str(each.get("name")) for each in self.variables}
        return variable in own or self.has_more_variables and is_in_capitals


def training(context: ManifestContext, others: Sequence[Workload]) -> Training:
    """Training in the job. `others`: the objects of its files."""
    job = context.workload
    pairs = [(pod, container) for pod in job.pods for container in pod.containers]
    if not pairs:
        raise NotMigrated(
            job.at("spec").must(
                "have a container",
                got="no container",
                fix="write a pod template with a container that trains",
            )
        )
    if job.kind == "PyTorchJob":
        pairs = [pair for pair in pairs if pair[1].body.get("name") == TRAINS] or pairs
        pod, container = next((pair for pair in pairs if _does_something(pair[1])), pairs[0])
        alike = [it for _, it in pairs if it.body.get("name") == container.body.get("name")]
        return Training(
            pod=pod,
            container=container,
            variables=_variables([*alike, container]),
            pull_secrets=_pull_secrets(job),
            runtime=None,
            in_runtime=None,
            has_more_variables=bool(container.body.get("envFrom")),
        )
    return _with_its_runtime(context, *pairs[0], others)


def _does_something(container: Container) -> bool:
    """True where the script has more than comments."""
    return bool(re.sub(r"(?m)^[ \t]*#.*", "", container.script).strip())


def _with_its_runtime(
    context: ManifestContext, pod: Pod, trainer: Container, others: Sequence[Workload]
) -> Training:
    """The trainer of a TrainJob where it sets a field, else the container that trains in its runtime;
    with the volumes and mounts of both and of the overrides."""
    job = context.workload
    of_runtime = _training_pods(context)
    base = _training_container(of_runtime) or replace(trainer, body={"name": NODE})
    of_job = (trainer, *_patches(job, base.body.get("name")))
    layers = (base, *of_job)
    body = {
        **base.body,
        **{key: value for key, value in trainer.body.items() if value is not None},
        "volumeMounts": [it for layer in layers for it in items(layer.body.get("volumeMounts"))],
    }
    pods = (*of_runtime, *job.pods)
    volumes = [volume for template in pods for volume in items(template.spec.get("volumes"))]
    runtime = next((other for other in others if other.body is context.runtime), None)
    command = (*words(body.get("command")), *words(body.get("args")))
    # The stack has the runtimes that are not in the files, with their variables.
    return Training(
        pod=replace(pod, spec={"volumes": volumes}),
        container=replace(trainer, body=body, command=command),
        variables=_variables(layers if runtime else of_job),
        pull_secrets=(*_pull_secrets(runtime), *_pull_secrets(job)),
        runtime=runtime,
        in_runtime=base if runtime else None,
        has_more_variables=runtime is None or bool(body.get("envFrom")),
    )


def _training_pods(context: ManifestContext) -> list[Pod]:
    """The pods of the runtime that train: those that its label names, or `node`, or the only ones."""
    labelled = {
        str(job.get("name"))
        for job in items(look(context.runtime, *JOBS))
        if look(job, "template", "metadata", "labels", STEP) == "trainer"
    }
    found = [pod for pod in context.runtime_pods if pod.role in (labelled or {NODE})]
    return found or [*context.runtime_pods[:1]]


def _training_container(pods: Sequence[Pod]) -> Container | None:
    """The container of a runtime that the Trainer gives the job's own fields."""
    containers = [container for pod in pods for container in pod.containers]
    named = [container for container in containers if container.body.get("name") == NODE]
    return next(iter([*named, *containers]), None)


def _patches(job: Workload, name: Any) -> list[Container]:
    """Overrides of a TrainJob for the container of this name."""
    return [each for each in job.containers if each.body.get("name") == name]


def _variables(layers: Sequence[Container]) -> tuple[Mapping[str, Any], ...]:
    """The variables of containers; of two with one name the later one."""
    found = {str(it.get("name")): it for layer in layers for it in items(layer.body.get("env"))}
    return tuple(found.values())


def _pull_secrets(workload: Workload | None) -> tuple[str, ...]:
    if workload is None:
        return ()
    found = [str(workload.get(*path)) for path in workload.find("** imagePullSecrets * name")]
    return tuple(dict.fromkeys(found))
