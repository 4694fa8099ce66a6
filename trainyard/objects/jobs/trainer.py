"""A TrainJob as plain data, by release of the Trainer. Pure: what reaches the API server can be
tested without it.

What differs between releases: trainyard/catalog/versions.py, TrainerRelease. The runtimes that a
TrainJob refers to: trainyard/objects/jobs/own_runtimes.py and
trainyard/objects/jobs/upstream_runtimes.py. Field names and what the webhooks refuse:
kubeflow/trainer at the tags v2.1.0 and v2.3.0; `node` is the name the Trainer builds
PET_MASTER_ADDR from, and is not a choice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from trainyard.catalog.versions import TRAINER_RELEASES
from trainyard.objects.jobs.pod_template import (
    Training,
    env,
    pod_metadata,
    pod_spec,
    resources,
    starts,
    volume_mounts,
)
from trainyard.plans.jobs import Spec

MANAGER = "trainyard.io/program"
"""Manager of our entry of runtimePatches; Kueue and the SDK have their own beside it."""


def train_job_spec(
    version: str, runtime: str, training: Training, *, jobs: tuple[str, ...] = ("node",)
) -> Spec:
    """TrainJob.spec for a release of the Trainer; KeyError for an unknown release. `jobs`:
    pod_jobs(runtime)."""
    release, limit = TRAINER_RELEASES[version], training.time_limit_minutes
    if limit and not release.line.time_limit:
        raise ValueError(
            f"Trainer {version} has no time limit: it would drop the field without a word"
        )
    return {
        "runtimeRef": {"name": runtime},
        "trainer": _trainer(training),
        release.pod_changes: _POD_CHANGES[release.pod_changes](training, jobs),
        **({"activeDeadlineSeconds": limit * 60} if limit else {}),
    }


def pod_jobs(runtime: Spec) -> tuple[str, ...]:
    """The replicated jobs of a runtime that train, whose pods all need mounts, devices and
    tolerations: with MPI the launcher as well as the others."""
    return ("launcher", "node") if "mpi" in runtime["mlPolicy"] else ("node",)


def pod_name_end(jobs: Iterable[str], nodes: int) -> str:
    """The longest end that JobSet gives the name of a pod: that of its job, of both numbers, and five letters (v0.10.1,
    pkg/webhooks/jobset_webhook.go). `jobs`: names of replicated jobs, of which `node` has so many nodes."""
    last = {job: max(nodes - 1, 0) if job == "node" else 0 for job in jobs}
    return max((f"-{job}-0-{number}-abcde" for job, number in last.items()), key=len)


def _pod_template_overrides(training: Training, jobs: tuple[str, ...]) -> list[Spec]:
    return [
        {
            "targetJobs": [{"name": job} for job in jobs],
            "metadata": pod_metadata(training),
            "spec": _pod(training),
        }
    ]


def _runtime_patches(training: Training, jobs: tuple[str, ...]) -> list[Spec]:
    patches = [
        {
            "name": job,
            "template": {
                "spec": {"template": {"metadata": pod_metadata(training), "spec": _pod(training)}}
            },
        }
        for job in jobs
    ]
    return [_patch(patches)]


def changed_pods(field: str, specs: Mapping[str, Spec]) -> list[Spec]:
    """Entries of `field`, podTemplateOverrides or runtimePatches, that change the pods of each
    replicated job. `specs`: parts of a PodSpec, by replicated job."""
    if field == "podTemplateOverrides":
        return [{"targetJobs": [{"name": job}], "spec": spec} for job, spec in specs.items()]
    patches = [
        {"name": job, "template": {"spec": {"template": {"spec": spec}}}}
        for job, spec in specs.items()
    ]
    return [_patch(patches)]


def _patch(jobs: list[Spec]) -> Spec:
    """Our entry of runtimePatches."""
    return {
        "manager": MANAGER,
        "trainingRuntimeSpec": {"template": {"spec": {"replicatedJobs": jobs}}},
    }


_POD_CHANGES: dict[str, Callable[[Training, tuple[str, ...]], list[Spec]]] = {
    "podTemplateOverrides": _pod_template_overrides,
    "runtimePatches": _runtime_patches,
}
"""Field of a TrainJob that changes the pods of its runtime → what stands in it."""


def _trainer(training: Training) -> Spec:
    """`auto` is what the Trainer does unasked. As a word in the object it is refused with MPI, and
    since 2.2 by the schema: one such job, left from 2.1, keeps a controller of 2.3 from reading any
    job at all."""
    ranks = training.processes_per_node
    return {
        "image": training.image,
        **starts(training),
        "numNodes": training.nodes,
        **({} if ranks == "auto" else {"numProcPerNode": ranks}),
        "resourcesPerNode": resources(training),
        "env": env(training),
    }


def _pod(training: Training) -> Spec:
    container = {"name": "node", "volumeMounts": volume_mounts(training)}
    return {**pod_spec(training), "containers": [container]}
