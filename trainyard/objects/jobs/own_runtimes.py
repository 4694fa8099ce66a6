"""Runtimes of ours: what no shipped one has is a restart of the whole gang on any failure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from trainyard.catalog.versions import TRAINER_RELEASES, TrainerRelease
from trainyard.objects.jobs.pod_template import (
    SecretKey,
    Training,
    env,
    pod_metadata,
    pod_spec,
    resources,
    secret_variable,
    volume_mounts,
)
from trainyard.objects.jobs.runtime_objects import (
    container,
    mpi_runtime,
    replicated_job,
    torch_runtime,
)
from trainyard.objects.jobs.upstream_runtimes import torchtune_runtime
from trainyard.plans.jobs import Spec

TRAINING_JOBS = ("node", "launcher")
"""Replicated jobs whose pods train; others fetch models and data."""
_NEVER: Spec = {"restartPolicy": "Never"}


@dataclass(frozen=True, kw_only=True)
class Fetched:
    """Files that upstream's torchtune runtimes fetch into a claim before they train, and the claim
    of ours in its place."""

    model: str
    """As upstream's runtime for it ends: qwen2.5-1.5b."""
    store: str
    """Name of the volume in pods: the one that jobs use, so that a job's own mounts of the store
    are of the same volume."""
    claim: str
    directory: str
    token: SecretKey | None = None
    """Token of Hugging Face, for a gated model."""


@dataclass(frozen=True, kw_only=True)
class OwnRuntime:
    """A runtime of ours."""

    kind: Literal["torch", "mpi", "cpu", "torchtune"]
    """torch and mpi: any failed pod restarts the gang. cpu: a pod that fails is started again, the
    others wait. torchtune: upstream's recipe for `fetched`."""
    image: str
    """Image of the containers. With torch and cpu it is a default, which a job replaces. With mpi a
    job replaces the launcher's only, so it must name the same; sshd, and mpiuser with its
    ~/.sshd_config, are in it as in upstream's deepspeed-runtime."""
    max_restarts: int
    """Most restarts of the gang; with cpu, of a node's pod."""
    command: tuple[str, ...] = ()
    """Default command of TrainJobs that set none."""
    env: Mapping[str, str] = field(default_factory=dict)
    """Environment variables of the containers that train."""
    pull_policy: str | None = None
    """Pull policy of the same containers. None: the default of Kubernetes."""
    priority: str | None = None
    """PriorityClass of the pods; a TrainJob cannot name one."""
    fetched: Fetched | None = None
    """Files that torchtune fetches before it trains."""
    node: Training | None = None
    """A pod on a whole node, for TrainJobs that do not say it themselves; None: nothing."""


def own_runtime(version: str, own: OwnRuntime) -> tuple[str, Spec]:
    """(framework, spec) of a runtime of ours for a release of the Trainer."""
    framework, spec = _OWN[own.kind](TRAINER_RELEASES[version], own)
    for job in spec["template"]["spec"]["replicatedJobs"]:
        pod = job["template"]["spec"]["template"]["spec"]
        if own.priority:
            pod["priorityClassName"] = own.priority
        if job["name"] in TRAINING_JOBS:
            for each in pod["containers"]:
                _complete(each, own)
            if own.node:
                _place(job["template"]["spec"]["template"], own.node)
    return framework, spec


def _complete(container: Spec, own: OwnRuntime) -> None:
    """Variables and pull policy of a container that trains."""
    if own.env:
        given = [{"name": name, "value": value} for name, value in sorted(own.env.items())]
        kept = [each for each in container.get("env", []) if each["name"] not in own.env]
        container["env"] = [*kept, *given]
    if own.pull_policy:
        container["imagePullPolicy"] = own.pull_policy


def _place(template: Spec, node: Training) -> None:
    """Node, devices and shared memory of the pods of a template. A variable that a container has stays."""
    pod, wanted = template["spec"], pod_spec(node)
    template["metadata"] = pod_metadata(node)
    template["spec"] = pod | wanted | {"volumes": [*pod.get("volumes", []), *wanted["volumes"]]}
    for each in pod["containers"]:
        known = {variable["name"] for variable in each.get("env", [])}
        added = [variable for variable in env(node) if variable["name"] not in known]
        each["resources"] = resources(node)
        each["volumeMounts"] = [*each.get("volumeMounts", []), *volume_mounts(node)]
        if added:
            each["env"] = [*each.get("env", []), *added]


def _own_torch(release: TrainerRelease, own: OwnRuntime) -> tuple[str, Spec]:
    """Any failed pod fails its Job at once, and JobSet recreates all of them."""
    node = container("node", own.image, **_command(own))
    return "torch", torch_runtime(
        release.torch_policy,
        [replicated_job("node", "trainer", [node], job={"backoffLimit": 0}, pod=_NEVER)],
        failurePolicy={"maxRestarts": own.max_restarts},
    )


def _own_mpi(release: TrainerRelease, own: OwnRuntime) -> tuple[str, Spec]:
    """mpirun waits for every sshd (T9). GPUs go to launcher and nodes, as the launcher is one of
    the nodes (T7)."""
    spec = mpi_runtime(own.image, waits=True, launcher=_command(own))
    for job in spec["template"]["spec"]["replicatedJobs"]:
        job["template"]["spec"] = {"backoffLimit": 0, **job["template"]["spec"]}
        job["template"]["spec"]["template"]["spec"] |= _NEVER
    spec["template"]["spec"]["failurePolicy"] = {"maxRestarts": own.max_restarts}
    return "deepspeed", spec


def _own_cpu(release: TrainerRelease, own: OwnRuntime) -> tuple[str, Spec]:
    node = container(
        "node", own.image, **_command(own), env=[{"name": "PYTHONUNBUFFERED", "value": "1"}]
    )
    # Without ttlSecondsAfterFinished: the log of a failed pod stays until the TrainJob is deleted.
    job: Spec = {"backoffLimit": own.max_restarts}
    return "torch", torch_runtime(
        release.torch_policy, [replicated_job("node", "trainer", [node], job=job, pod=_NEVER)]
    )


def _own_torchtune(release: TrainerRelease, own: OwnRuntime) -> tuple[str, Spec]:
    """On a claim of a store, where upstream's 2.1 needs one that nobody makes and 2.3 a default
    StorageClass. On one node: the recipe meets at localhost, as upstream's."""
    at = own.fetched
    assert at is not None  # own_runtimes has both or neither
    claim: Spec = {"name": at.store, "persistentVolumeClaim": {"claimName": at.claim}}
    spec = torchtune_runtime(release, at.model, own.image, claim, directory=at.directory)
    *fetching, node = spec["template"]["spec"]["replicatedJobs"]
    token = [secret_variable("ACCESS_TOKEN", at.token)] if at.token else []
    for job in fetching:
        [fetch] = job["template"]["spec"]["template"]["spec"]["containers"]
        fetch["env"] += token
    node["template"]["spec"]["backoffLimit"] = 0
    node["template"]["spec"]["template"]["spec"] |= _NEVER
    spec["template"]["spec"]["failurePolicy"] = {"maxRestarts": own.max_restarts}
    return "torchtune", spec


def _command(own: OwnRuntime) -> Spec:
    return {"command": list(own.command)} if own.command else {}


_OWN: dict[str, Callable[[TrainerRelease, OwnRuntime], tuple[str, Spec]]] = {
    "torch": _own_torch,
    "mpi": _own_mpi,
    "cpu": _own_cpu,
    "torchtune": _own_torchtune,
}
